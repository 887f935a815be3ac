//! Callers arrive from outside, whether or not others wait, and for a while more of them than the
//! lock can serve: the second advice of *A lock is a queue* (A. Sukhovitsky) is to put a bound on
//! that queue.
//!
//! ```text
//!                                ┌─▶ refused
//!   callers, each when it is due ┴─▶ waiting ──▶ a thread ──▶ the lock
//! ```
//!
//! Before and after the overload, arrivals are half of what the lock can serve. A free thread takes
//! the next caller, sleeps until that caller is due, and asks for the lock. A wait counts from the
//! due time, so it includes the time for which all threads wait and nobody takes the caller: there
//! is no "coordinated omission" (G. Tene, *How NOT to Measure Latency*, 2013).
//!
//! Unless the lock has a bound of its own, a `Door` in front of it counts those who
//! wait. Threads notice a deadline that has passed once they turn to the caller or get the lock:
//! locks do not let their waiters go.
//!
//! All cells have the same arrivals, block by block, and their predictions are made for the very
//! same arrivals.

pub(crate) mod door;
mod predict;

use threadtoll_model::overload::{Outcome, Phases, Rules};
use threadtoll_record::{
    Budget, Histogram, MAX_ROUNDS, Overload, OverloadBlock, Ratio, Scale, Spread, Work,
};

use super::{Load, Scenario};

pub use predict::OverloadCalibration;
pub(crate) use predict::predict;

/// Shortest and longest hold time in nanoseconds. A sleeping thread notices its caller only after
/// some tens of microseconds; a block lasts for some hundred hold times.
pub const HOLDS_NS: [u64; 2] = [100_000, 1_000_000_000];
/// Maximum rate of arrivals, as a multiple of the lock's capacity.
pub const MAX_ARRIVALS: f64 = 10.0;
/// Maximum number of callers that may wait.
pub const MAX_BOUND: u32 = 1000;

const ASLEEP_NS: u64 = 5_000_000;
const COMPUTING_NS: u64 = 1_000_000;
const ARRIVALS: [f64; 5] = [0.5, 1.0, 1.5, 2.0, 3.0];
const BOUND: u32 = 8;
/// In hold times: longer than the wait for all callers that [`BOUND`] lets in.
const DEADLINE: u64 = 10;
/// Rate of arrivals before and after the overload, as a multiple of the lock's capacity.
const USUAL: f64 = 0.5;
/// Times before and during the overload, in hold times.
const BEFORE: f64 = 20.0;
const DURING: f64 = 60.0;
/// Time after the overload: this number of hold times, and this multiple of the time in which the
/// longest queue should drain.
const AFTER: f64 = 30.0;
const DRAINING: f64 = 1.5;
/// Number of rounds if no measuring time is given, and minimum for a usable confidence interval.
const ROUNDS: u64 = 8;
const MIN_ROUNDS: u64 = 6;
/// Any number: the same for all cells, so that all have the same arrivals.
const SEED: u64 = 0x0DE0;

/// The scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "overload",
    sentence: "callers arrive from outside, for a while faster than the lock can serve them: how \
               many get it in time, and how long recovery takes",
    locks: &["std-mutex"],
    loads: || loads(None, None, None, None, None),
    threads: |work, _| vec![threads(work)],
    budget,
};

/// Callers who compute share few CPUs, so most of them wait in front of the lock. Callers who sleep
/// can all wait at the lock, up to the default bound.
fn threads(work: Work) -> u32 {
    match work {
        Work::Spin => 2,
        Work::Sleep => 2 * BOUND,
    }
}

/// Loads with this work and hold time, at these rates of arrival (multiples of the capacity). For
/// each rate and deadline, callers wait without a bound, are refused beyond each of the bounds, or
/// give up. `None` for the defaults.
pub fn loads(
    work: Option<Work>,
    hold_ns: Option<u64>,
    arrivals: Option<&[Scale]>,
    bounds: Option<&[u32]>,
    deadlines_ns: Option<&[u64]>,
) -> Vec<Load> {
    let usual = || ARRIVALS.into_iter().filter_map(Scale::new).collect();
    let arrivals: Vec<Scale> = arrivals.map_or_else(usual, <[Scale]>::to_vec);
    let bounds = bounds.unwrap_or(&[BOUND]);
    let works = work.map_or_else(|| vec![Work::Sleep, Work::Spin], |work| vec![work]);
    let mut loads = Vec::new();
    for work in works {
        let hold_ns = hold_ns.unwrap_or(hold_ns_of(work));
        let deadlines = deadlines_ns.map_or_else(|| vec![DEADLINE * hold_ns], <[u64]>::to_vec);
        for arrivals in &arrivals {
            for deadline_ns in &deadlines {
                let waits = Overload {
                    arrivals: *arrivals,
                    bound: None,
                    deadline_ns: *deadline_ns,
                    gives_up: false,
                    by_lock: false,
                };
                let bounded = |bound: &u32| Overload { bound: Some(*bound), ..waits };
                let gives_up = Overload { gives_up: true, ..waits };
                let all = [waits].into_iter().chain(bounds.iter().map(bounded)).chain([gives_up]);
                loads.extend(all.map(|overload| Load {
                    work,
                    spread: Spread::Fixed,
                    hold_ns,
                    think_ns: 0,
                    tasks: None,
                    overload: Some(overload),
                }));
            }
        }
    }
    loads
}

/// Default hold time.
pub fn hold_ns_of(work: Work) -> u64 {
    match work {
        Work::Sleep => ASLEEP_NS,
        Work::Spin => COMPUTING_NS,
    }
}

/// Returns the same load for a lock that has a bound of its own, and how many threads it needs at
/// least: one that holds the lock, as many waiters as the bound allows, and one that is refused.
pub(crate) fn by_lock(overload: Overload) -> (Overload, u32) {
    (Overload { by_lock: overload.bound.is_some(), ..overload }, overload.bound.unwrap_or(0) + 2)
}

/// Returns `true` if a lock that is held for this time can be overloaded in this way.
pub(crate) fn is_possible(hold_ns: u64, overload: &Overload) -> bool {
    let [shortest, longest] = HOLDS_NS;
    (shortest..=longest).contains(&hold_ns)
        && overload.deadline_ns >= hold_ns
        && overload.arrivals.value() <= MAX_ARRIVALS
        && overload.bound.is_none_or(|bound| bound <= MAX_BOUND)
}

pub(crate) fn phases(hold_ns: u64, overload: &Overload) -> Phases {
    let hold = hold_ns as f64;
    let arrivals = overload.arrivals.value();
    let usual = USUAL.min(arrivals);
    // In callers, each of whom takes one hold time.
    let grown = (arrivals - 1.0).max(0.0) * DURING;
    let longest = match overload.bound {
        Some(bound) => grown.min(bound.into()),
        None if overload.gives_up => grown.min(arrivals * overload.deadline_ns as f64 / hold),
        None => grown,
    };
    Phases {
        capacity_per_s: 1e9 / hold,
        usual,
        overload: arrivals,
        before_ns: BEFORE * hold,
        overload_ns: DURING * hold,
        after_ns: (AFTER + DRAINING * longest / (1.0 - USUAL)) * hold,
    }
}

pub(crate) fn rules(overload: &Overload) -> Rules {
    Rules {
        bound: overload.bound,
        deadline_ns: overload.deadline_ns as f64,
        gives_up: overload.gives_up,
    }
}

/// Times at which callers arrive in the `nth` block of a cell, in nanoseconds.
pub(crate) fn due_ns(phases: &Phases, nth: u64) -> Vec<f64> {
    phases.due_ns(SEED ^ nth)
}

/// Length of a block.
pub(crate) fn length_ns(hold_ns: u64, overload: &Overload) -> u64 {
    phases(hold_ns, overload).length_ns() as u64
}

/// A block has a fixed length, so more time gives more blocks.
fn budget(time_ns: Option<u64>, load: &Load) -> Budget {
    let length_ns = load.overload.as_ref().map_or(1, |overload| length_ns(load.hold_ns, overload));
    let rounds = time_ns.map_or(ROUNDS, |time_ns| time_ns / length_ns.max(1));
    Budget {
        rounds: rounds.clamp(MIN_ROUNDS, u64::from(MAX_ROUNDS)) as u32,
        stretch_ns: 0,
        stamped_ns: length_ns,
        stamped_count: None,
    }
}

/// The figures of a block that are written to files. `hold_ns` is the mean hold time.
pub(crate) fn block(
    outcome: &Outcome,
    phases: &Phases,
    hold_ns: f64,
    lateness: Histogram,
) -> OverloadBlock {
    let count = |number: u32| u64::from(number).into();
    OverloadBlock {
        arrived: count(outcome.arrived),
        in_time: count(outcome.in_time),
        late: count(outcome.late),
        refused: count(outcome.refused),
        gave_up: count(outcome.gave_up),
        in_front: count(outcome.in_front),
        queue_mean: rounded(outcome.queue_mean).into(),
        queue_max: outcome.queue_max,
        recovery_ns: outcome.recovery_ns.map(|ns| ns.round().into()),
        hold_ns: hold_ns.round().into(),
        overload_ns: [phases.before_ns, phases.overload_end_ns()].map(|ns| (ns as u64).into()),
        length_ns: (phases.length_ns() as u64).into(),
        queue: ratios(&outcome.queue),
        lateness: lateness.packed(),
    }
}

/// Rounds to thousandths, because a file has many numbers of waiting callers.
fn rounded(callers: f64) -> f64 {
    (callers * 1000.0).round() / 1000.0
}

fn ratios(queue: &[f64]) -> Vec<Ratio> {
    queue.iter().map(|mean| rounded(*mean).into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_long_enough_to_recover_and_not_much_longer() {
        for load in (SCENARIO.loads)() {
            let overload = load.overload.unwrap();
            assert!(is_possible(load.hold_ns, &overload), "{load:?}");
            let phases = phases(load.hold_ns, &overload);
            let hold = load.hold_ns as f64;
            let grown = (phases.overload - 1.0).max(0.0) * phases.overload_ns / hold;
            let left = match (overload.bound, overload.gives_up) {
                (None, false) => grown,
                (Some(bound), _) => grown.min(bound.into()),
                (None, true) => grown.min(30.0),
            };
            let drained_ns = left / (1.0 - phases.usual) * hold;
            assert!(phases.after_ns > 1.2 * drained_ns, "{load:?}");
            assert!(phases.after_ns <= 1.5 * drained_ns + 31.0 * hold, "{load:?}");
        }
    }

    #[test]
    fn all_rules_see_the_same_callers() {
        let loads = loads(Some(Work::Sleep), None, None, Some(&[2, 30]), None);
        let due = |load: &Load| {
            let phases = phases(load.hold_ns, &load.overload.unwrap());
            let mut due = due_ns(&phases, 3);
            due.retain(|at| *at < phases.overload_end_ns());
            due
        };
        for rules in loads.chunks(4) {
            assert!(rules.iter().all(|load| due(load) == due(&rules[0])), "{rules:?}");
        }
        assert_ne!(due(&loads[0]), due(&loads[4]), "at another rate");
    }
}
