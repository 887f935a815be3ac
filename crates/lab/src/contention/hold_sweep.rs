//! *Locks aren't slow; lock contention is* (J. Preshing, November 2011): threads hold a lock for 0
//! to 100% of their time, with 1 thread up to more threads than CPUs.

use threadtoll_record::{Share, Work};

use super::{Load, Scenario, budget, up_to_one_beyond};

/// Acquisitions per second of an uncontended thread, from the article.
const RATE_PER_S: f64 = 15_000.0;
/// Acquisitions per second of a thread that sleeps instead of computing. The rate is low because
/// sleeps are accurate to a few microseconds only.
const ASLEEP_PER_S: f64 = 100.0;
/// In percent.
const SHARES: [u32; 12] = [0, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100];

/// The scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "hold-sweep",
    sentence: "speed-up of threads that hold a lock for 0 to 100% of their time",
    locks: &["std-mutex"],
    loads: || loads(None, None, None),
    threads: up_to_one_beyond,
    budget,
};

/// Loads with these hold shares and this rate; `None` for the defaults. A hold share is the hold
/// time divided by the cycle time. The rate is in cycles per second of an uncontended thread.
pub fn loads(
    work: Option<Work>,
    hold_shares: Option<&[Share]>,
    rate_per_s: Option<f64>,
) -> Vec<Load> {
    let work = work.unwrap_or(Work::Spin);
    let usual = if work == Work::Sleep { ASLEEP_PER_S } else { RATE_PER_S };
    let cycle_ns = 1e9 / rate_per_s.unwrap_or(usual);
    let usual = || SHARES.iter().filter_map(|percent| Share::new(f64::from(*percent) / 100.0));
    let shares = hold_shares.map_or_else(|| usual().collect(), <[Share]>::to_vec);
    shares.into_iter().map(|share| Load::of_cycle(work, cycle_ns, share)).collect()
}
