//! The longest samples of a cell, with their likely causes.

use threadtoll_record::limits::WORST;
use threadtoll_record::{BlockCost, Cause, Disturbance, Worst};
use threadtoll_stats::upper_median;

use crate::samples::{RoundTrips, Waited};

/// Minimum excess over the median for which a cause is named. Switches, faults and hypervisor exits
/// all take longer; shorter excesses come from the caches.
const MIN_CAUSE_PS: u64 = 1_000_000;

pub(super) struct Excess<'a> {
    pub(super) disturbance: &'a Disturbance,
    pub(super) cost: &'a BlockCost,
    pub(super) pinned: bool,
}

impl Excess<'_> {
    /// `None` if no counter explains the excess. A cause whose time is measured must have cost the
    /// block at least half the excess. Run-queue delays of threads that are not pinned belong to
    /// the mechanism and are never a cause.
    fn likely_cause(&self, excess_ps: u64) -> Option<Cause> {
        let Excess { disturbance, cost, pinned } = *self;
        let enough_ns = excess_ps / 2000;
        let took = |ns: Option<u64>| ns.is_some_and(|ns| ns > 0 && ns >= enough_ns);
        if excess_ps < MIN_CAUSE_PS {
            return None;
        }
        if took(disturbance.steal_ns.map(u64::from)) {
            Some(Cause::Steal)
        } else if pinned
            && cost.involuntary_switches > 0
            && took(disturbance.run_queue_ns.map(u64::from))
        {
            Some(Cause::InvoluntarySwitch)
        } else if pinned && took(disturbance.run_queue_ns.map(u64::from)) {
            Some(Cause::RunQueueDelay)
        } else if disturbance.throttled.is_some_and(|times| times > 0) {
            Some(Cause::Throttled)
        } else if took(disturbance.gap_ns.map(u64::from)) {
            Some(Cause::Gap)
        } else if disturbance.page_faults > 0 {
            Some(Cause::PageFault)
        } else {
            None
        }
    }
}

#[derive(Clone, Default)]
pub(super) struct Longest(Vec<u64>);

impl Longest {
    /// Returns `true` if the sample is among the longest so far.
    pub(super) fn take(&mut self, ps: u64) -> bool {
        if self.0.len() < WORST {
            self.0.push(ps);
            return true;
        }
        let Some(shortest) = self.0.iter_mut().min() else { return false };
        let longer = ps > *shortest;
        if longer {
            *shortest = ps;
        }
        longer
    }
}

pub(super) fn of_round_trips(
    round_trips: &RoundTrips,
    excess: &Excess<'_>,
    longest: &mut Longest,
) -> Vec<Worst> {
    let RoundTrips { stretches, began_s, lead_cpus: cpus, .. } = round_trips;
    let Some(first) = cpus.first() else { return Vec::new() };
    let mut ended = 0;
    let waits = stretches.lengths_ps.iter().enumerate().map(|(at, ps)| {
        ended += ps;
        let cpu = *cpus.get(at + 1).unwrap_or(first);
        Waited { ps: *ps, at_s: began_s + ended as f64 / 1e12, cpu }
    });
    of_waits(waits.collect(), excess, longest)
}

pub(super) fn of_waits(
    mut waits: Vec<Waited>,
    excess: &Excess<'_>,
    longest: &mut Longest,
) -> Vec<Worst> {
    let mut all: Vec<u64> = waits.iter().map(|wait| wait.ps).collect();
    let median = upper_median(&mut all, u64::cmp).unwrap_or(0);
    let longer_or_earlier =
        |a: &Waited, b: &Waited| b.ps.cmp(&a.ps).then(a.at_s.total_cmp(&b.at_s));
    if waits.len() > WORST {
        waits.select_nth_unstable_by(WORST, longer_or_earlier);
        waits.truncate(WORST);
    }
    waits.sort_by(longer_or_earlier);
    waits.retain(|wait| longest.take(wait.ps));
    let worst = |wait: Waited| Worst {
        at_s: ((wait.at_s * 1e6).round() / 1e6).into(),
        ns: (wait.ps as f64 / 1000.0).into(),
        cpu: wait.cpu,
        cause: excess.likely_cause(wait.ps.saturating_sub(median)),
    };
    waits.into_iter().map(worst).collect()
}
