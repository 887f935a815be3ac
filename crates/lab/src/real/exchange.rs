//! A cell whose two threads exchange messages.

use std::time::Duration;

use threadtoll_machine::clock::Clock;
use threadtoll_machine::disturbance::{SystemCounters, account};
use threadtoll_record::{BlockKind, Placement, PlannedCell, fold};

use crate::LabError;
use crate::backend::OpenCell;
use crate::budget::MAX_BLOCK_SAMPLES;
use crate::error::Make;
use crate::exchange::Ends;
use crate::mechanism::Class;
use crate::samples::{BlockSamples, Counters, RoundTrips, Samples, Stretches};
use crate::stalls::stalled_ps;

use super::environment::Environment;
use super::pair::{Job, Pair, PairSpec, Report, Watch};
use super::{
    GroupState, MAX_BLOCK_NS, Opening, PILOT_NS, RealCell, WARM_UP_FREE_NS, WARM_UP_NS, per_stretch,
};

pub(super) struct Exchange {
    planned: PlannedCell,
    class: Class,
    clock: Clock,
    spec: PairSpec,
    pair: Pair,
    environment: Environment,
    /// Mean round trip in the latest stretches.
    mean_ns: f64,
    stamp_ns: f64,
    next_seq: u64,
    one_way_bound_ns: Option<f64>,
    patience: Duration,
    start_ticks: u64,
}

impl Exchange {
    pub(super) fn open(
        opening: Opening<'_>,
        make: Make<Ends>,
        class: Class,
    ) -> Result<Self, LabError> {
        let Opening { clock, planned, allowed, stamp_ns, patience, start_ticks } = opening;
        let cell = &planned.cell;
        let (lead_cpus, follow_cpus) = match (cell.placement, cell.cpus.as_slice()) {
            (Placement::Pinned, &[a, b]) => (vec![a], vec![b]),
            (Placement::Free, cpus) => (cpus.to_vec(), cpus.to_vec()),
            (_, cpus) => (vec![cpus[0]], vec![cpus[0]]),
        };
        let spec = PairSpec::new(clock, cell.name(), make, cell.placement, lead_cpus, follow_cpus);
        let pair = spec.start(patience)?;
        Ok(Exchange {
            planned: planned.clone(),
            class,
            clock: *clock,
            spec,
            pair,
            environment: Environment::start(cell, allowed)?,
            mean_ns: 1000.0,
            stamp_ns,
            next_seq: 1,
            one_way_bound_ns: None,
            patience,
            start_ticks,
        })
    }

    /// Estimates the round trip: first with a stamp for each, which overestimates cheap mechanisms,
    /// then without.
    fn pilot(&mut self) -> Result<(), LabError> {
        let stamped = self.run(PILOT_NS, MAX_BLOCK_SAMPLES, 1, PILOT_NS / 2.0, Watch::Nothing)?;
        self.learn(&stamped, 1);
        // The cheapest hand-offs cost a tenth of a stamp; stretches that are ten times too long are
        // harmless here.
        let long = per_stretch(self.stamp_ns, self.mean_ns) * 10;
        let long = long.min((PILOT_NS / self.mean_ns).ceil() as u64);
        let stretches = self.run(0.0, MAX_BLOCK_SAMPLES, long, PILOT_NS, Watch::Nothing)?;
        self.learn(&stretches, long);
        Ok(())
    }

    fn learn(&mut self, report: &Report, per_stretch: u64) {
        let round_trips = report.times.len().saturating_sub(1) as u64 * per_stretch;
        if round_trips > 0 {
            self.mean_ns = (self.elapsed_ns(report) / round_trips as f64).max(0.1);
        }
    }

    fn elapsed_ns(&self, report: &Report) -> f64 {
        match (report.times.first(), report.times.last()) {
            (Some(first), Some(last)) => self.clock.ns(last.saturating_sub(*first)),
            _ => 0.0,
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
        let job = Job {
            first: self.next_seq,
            warm_up: self.clock.ticks(warm_up_ns),
            stretches,
            per_stretch,
            length: self.clock.ticks(length_ns),
            watch,
        };
        // A block ends after its time or its number of samples; one that takes many times longer is
        // stuck.
        let round_trips = stretches.saturating_mul(per_stretch) as f64;
        let foreseen_ns = length_ns.min(round_trips * (self.mean_ns + self.stamp_ns) * 10.0);
        let patience = self.patience + Duration::from_nanos((foreseen_ns * 5.0) as u64);
        let report = self.pair.run(job, patience)?;
        self.next_seq = report.next;
        Ok(report)
    }

    fn samples(
        &self,
        report: Report,
        per_stretch: u64,
        system: SystemCounters,
        watch: Watch,
    ) -> BlockSamples {
        let stretches = stretches(&self.clock, &report.times, per_stretch);
        let spins = self.class == Class::Spin;
        let gap_ns = spins.then(|| stalled_ps(&stretches.lengths_ps) / 1000);
        let (cost, disturbance) = account(&report.threads, system, gap_ns);
        let one_way_ps = match watch {
            Watch::OneWay => self.one_way_ps(&report),
            Watch::Nothing | Watch::Cpus => Vec::new(),
        };
        let began = report.times.first().map_or(0, |first| first.saturating_sub(self.start_ticks));
        let lead_cpus =
            if report.cpus.is_empty() { vec![self.planned.cell.cpus[0]] } else { report.cpus };
        BlockSamples {
            counters: Counters {
                cost,
                operations: report.accounted,
                disturbance,
                spins,
                grows: false,
            },
            samples: Samples::Exchange(RoundTrips {
                stretches,
                began_s: self.clock.ns(began) / 1e9,
                lead_cpus,
                follow_cpus: report.follow_cpus,
                one_way_ps,
                clock_bound_ns: self.one_way_bound_ns.unwrap_or(0.0),
            }),
        }
    }

    /// Both directions of each round trip, from the stamps of both ends.
    fn one_way_ps(&self, report: &Report) -> Vec<i64> {
        let difference = |later: u64, earlier: u64| {
            let ticks = later.wrapping_sub(earlier) as i64;
            self.clock.ps(ticks.unsigned_abs()) as i64 * ticks.signum()
        };
        report
            .times
            .windows(2)
            .zip(&report.follow_times)
            .flat_map(|(round, arrival)| {
                [difference(*arrival, round[0]), difference(round[1], *arrival)]
            })
            .collect()
    }
}

impl RealCell for Exchange {
    fn prepare(&mut self, group: &mut GroupState) -> Result<(), LabError> {
        self.pilot()?;
        if let &[a, b] = self.planned.cell.cpus.as_slice() {
            // Half a round trip approximates the median one-way time well enough for this decision.
            let enough_ns = fold::AGREEMENT * self.mean_ns / 2.0;
            let bound_ns = group.bounds_ns.get(&(a, b)).copied();
            self.one_way_bound_ns = bound_ns.filter(|bound_ns| *bound_ns < enough_ns);
        }
        Ok(())
    }
}

impl OpenCell for Exchange {
    fn reopen(&mut self) -> Result<(), LabError> {
        self.pair = self.spec.start(self.patience)?;
        self.next_seq = 1;
        Ok(())
    }

    fn block(&mut self, kind: BlockKind) -> Result<BlockSamples, LabError> {
        let free = self.planned.cell.placement == Placement::Free;
        let budget = &self.planned.budget;
        let (stretches, per_stretch, length_ns, watch) = match kind {
            BlockKind::Stretch => {
                let length_ns = budget.stretch_ns as f64;
                // Uses longer stretches if the block would overflow its marks. There is room for
                // twice the expected number, in case the machine is faster than before.
                let fits = length_ns / self.mean_ns;
                let least = (2.0 * fits / MAX_BLOCK_SAMPLES as f64).ceil() as u64;
                (
                    MAX_BLOCK_SAMPLES,
                    per_stretch(self.stamp_ns, self.mean_ns).max(least),
                    length_ns,
                    Watch::Nothing,
                )
            }
            BlockKind::Stamped => {
                let watch = match (free, self.one_way_bound_ns) {
                    (true, _) => Watch::Cpus,
                    (false, Some(_)) => Watch::OneWay,
                    (false, None) => Watch::Nothing,
                };
                match budget.stamped_count {
                    // A requested number of samples may take any time, up to the limit.
                    Some(count) => (count.min(MAX_BLOCK_SAMPLES), 1, MAX_BLOCK_NS, watch),
                    None => (MAX_BLOCK_SAMPLES, 1, budget.stamped_ns as f64, watch),
                }
            }
        };
        let warm_up_ns = if free { WARM_UP_FREE_NS } else { WARM_UP_NS };

        let before = self.environment.begin()?;
        let report = self.run(warm_up_ns, stretches, per_stretch, length_ns, watch);
        let system = self.environment.end(&before);
        let report = report?;

        if kind == BlockKind::Stretch {
            self.learn(&report, per_stretch);
        }
        Ok(self.samples(report, per_stretch, system, watch))
    }
}

pub(super) fn stretches(clock: &Clock, times: &[u64], operations_each: u64) -> Stretches {
    let lengths_ps = times.windows(2).map(|pair| clock.ps(pair[1].saturating_sub(pair[0])));
    Stretches { lengths_ps: lengths_ps.collect(), operations_each }
}
