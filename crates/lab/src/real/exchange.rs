//! A cell whose two threads exchange messages.

use std::time::Duration;

use threadtoll_machine::disturbance::SystemCounters;
use threadtoll_record::{BlockKind, Placement, fold};

use crate::LabError;
use crate::backend::OpenCell;
use crate::budget::MAX_BLOCK_SAMPLES;
use crate::error::Make;
use crate::exchange::Ends;
use crate::mechanism::Class;
use crate::samples::{BlockSamples, RoundTrips, Samples};

use super::pair::pair;
use super::passes::{Pass, Passes, Report, Watch};
use super::{CellContext, GroupState, MAX_BLOCK_NS, PILOT_NS, RealCell, per_stretch};

pub(super) struct Exchange {
    context: CellContext,
    class: Class,
    pair: Passes,
    /// Mean time of a round trip in the latest stretches.
    mean_ns: f64,
    one_way_bound_ns: Option<f64>,
}

impl Exchange {
    pub(super) fn open(
        context: CellContext,
        make: Make<Ends>,
        class: Class,
    ) -> Result<Self, LabError> {
        let cell = &context.planned.cell;
        let cpus = match (cell.placement, cell.cpus.as_slice()) {
            (Placement::Pinned, &[a, b]) => [vec![a], vec![b]],
            (Placement::Free, cpus) => [cpus.to_vec(), cpus.to_vec()],
            (_, cpus) => [vec![cpus[0]], vec![cpus[0]]],
        };
        let (clock, patience) = (&context.clock, context.patience);
        let pair = pair(clock, cell.name(), make, cell.placement, cpus, patience)?;
        Ok(Exchange { context, class, pair, mean_ns: 1000.0, one_way_bound_ns: None })
    }

    /// Estimates the time of a round trip, first with a stamp for each round trip, then without.
    /// The stamps make the first estimate too high for cheap mechanisms.
    fn pilot(&mut self) -> Result<(), LabError> {
        let stamped = self.run(PILOT_NS, MAX_BLOCK_SAMPLES, 1, PILOT_NS / 2.0, Watch::Nothing)?;
        self.learn(&stamped, 1);
        // The cheapest round trips cost a tenth of a stamp, so the estimate may be ten times too
        // high. Stretches that are ten times too long are harmless here.
        let long = per_stretch(self.context.stamp_ns, self.mean_ns) * 10;
        let long = long.min((PILOT_NS / self.mean_ns).ceil() as u64);
        let stretches = self.run(0.0, MAX_BLOCK_SAMPLES, long, PILOT_NS, Watch::Nothing)?;
        self.learn(&stretches, long);
        Ok(())
    }

    fn learn(&mut self, report: &Report, per_stretch: u64) {
        if let Some(mean_ns) = report.mean_ns(&self.context.clock, per_stretch) {
            self.mean_ns = mean_ns.max(0.1);
        }
    }

    /// Runs both ends once: a warm-up, then stretches until the requested number or time is
    /// reached.
    fn run(
        &mut self,
        warm_up_ns: f64,
        stretches: u64,
        per_stretch: u64,
        length_ns: f64,
        watch: Watch,
    ) -> Result<Report, LabError> {
        let CellContext { clock, stamp_ns, patience, .. } = &self.context;
        let (warm_up, length) = (clock.ticks(warm_up_ns), clock.ticks(length_ns));
        let pass = Pass { warm_up, stretches, per_stretch, length, watch };
        // A block ends after its time or after its number of samples. A block that takes many times
        // longer is stuck.
        let round_trips = stretches.saturating_mul(per_stretch) as f64;
        let foreseen_ns = length_ns.min(round_trips * (self.mean_ns + stamp_ns) * 10.0);
        self.pair.run(pass, *patience + Duration::from_nanos((foreseen_ns * 5.0) as u64))
    }

    fn samples(
        &self,
        report: Report,
        per_stretch: u64,
        system: SystemCounters,
        watch: Watch,
    ) -> BlockSamples {
        let CellContext { clock, planned, start_ticks, .. } = &self.context;
        let stretches = report.stretches(clock, per_stretch);
        let counters = report.counters(&stretches, self.class, system);
        let one_way_ps = match watch {
            Watch::OneWay => self.one_way_ps(&report),
            Watch::Nothing | Watch::Cpus => Vec::new(),
        };
        let began = report.lead.times.first().map_or(0, |first| first.saturating_sub(*start_ticks));
        let lead_cpus = match report.lead.cpus {
            none if none.is_empty() => vec![planned.cell.cpus[0]],
            cpus => cpus,
        };
        let samples = Samples::Exchange(RoundTrips {
            stretches,
            began_s: clock.ns(began) / 1e9,
            lead_cpus,
            follow_cpus: report.follow.cpus,
            one_way_ps,
            clock_bound_ns: self.one_way_bound_ns.unwrap_or(0.0),
        });
        BlockSamples { counters, samples }
    }

    /// Computes the one-way times in both directions of each round trip, from the stamps of both
    /// ends.
    fn one_way_ps(&self, report: &Report) -> Vec<i64> {
        let difference = |later: u64, earlier: u64| {
            let ticks = later.wrapping_sub(earlier) as i64;
            self.context.clock.ps(ticks.unsigned_abs()) as i64 * ticks.signum()
        };
        let rounds = report.lead.times.windows(2).zip(&report.follow.times);
        let both = rounds.map(|(round, arrival)| {
            [difference(*arrival, round[0]), difference(round[1], *arrival)]
        });
        both.flatten().collect()
    }
}

impl RealCell for Exchange {
    fn prepare(&mut self, group: &mut GroupState) -> Result<(), LabError> {
        self.pilot()?;
        // Half a round trip approximates the median one-way time well enough for this decision.
        let enough_ns = fold::AGREEMENT * self.mean_ns / 2.0;
        let bound_ns = group.bound_ns(&self.context.planned.cell);
        self.one_way_bound_ns = bound_ns.filter(|bound_ns| *bound_ns < enough_ns);
        Ok(())
    }
}

impl OpenCell for Exchange {
    fn reopen(&mut self) -> Result<(), LabError> {
        self.pair.reopen(self.context.patience)
    }

    fn block(&mut self, kind: BlockKind) -> Result<BlockSamples, LabError> {
        let free = self.context.planned.cell.placement == Placement::Free;
        let budget = self.context.planned.budget;
        let (stretches, per_stretch, length_ns, watch) = match kind {
            BlockKind::Stretch => {
                let length_ns = budget.stretch_ns as f64;
                // Stretches are longer if the block's stamps would not fit otherwise. There is room
                // for twice the expected number of stamps, because the machine may be faster than
                // before.
                let fits = length_ns / self.mean_ns;
                let least = (2.0 * fits / MAX_BLOCK_SAMPLES as f64).ceil() as u64;
                let per_stretch = per_stretch(self.context.stamp_ns, self.mean_ns).max(least);
                (MAX_BLOCK_SAMPLES, per_stretch, length_ns, Watch::Nothing)
            }
            BlockKind::Stamped => {
                let watch = match (free, self.one_way_bound_ns) {
                    (true, _) => Watch::Cpus,
                    (false, Some(_)) => Watch::OneWay,
                    (false, None) => Watch::Nothing,
                };
                match budget.stamped_count {
                    // If a number of samples was requested, the block may take any time up to
                    // `MAX_BLOCK_NS`.
                    Some(count) => (count.min(MAX_BLOCK_SAMPLES), 1, MAX_BLOCK_NS, watch),
                    None => (MAX_BLOCK_SAMPLES, 1, budget.stamped_ns as f64, watch),
                }
            }
        };
        let warm_up_ns = self.context.warm_up_ns();
        let before = self.context.environment.begin()?;
        let report = self.run(warm_up_ns, stretches, per_stretch, length_ns, watch);
        let system = self.context.environment.end(&before);
        let report = report?;
        if kind == BlockKind::Stretch {
            self.learn(&report, per_stretch);
        }
        Ok(self.samples(report, per_stretch, system, watch))
    }
}
