//! *Locks aren't slow; lock contention is* (J. Preshing, November 2011): sweeps the hold share from
//! 0 to 100%, on one thread up to more threads than CPUs.

use threadtoll_record::{Share, Work};

use super::{Load, Overrides, Scenario, budget, up_to_one_beyond};

/// Acquisitions per second of an uncontended thread, from the article.
const RATE_PER_S: f64 = 15_000.0;
/// The rate for sleeping threads: sleeps are accurate to a few microseconds.
const ASLEEP_PER_S: f64 = 100.0;
/// In percent.
const SHARES: [u32; 12] = [0, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100];

pub(super) const SCENARIO: Scenario = Scenario {
    name: "hold-sweep",
    sentence: "speed-up of threads that hold a lock for 0 to 100% of their time",
    locks: &["std-mutex"],
    options: &["threads", "hold-share", "rate", "work", "read-share"],
    loads,
    threads: up_to_one_beyond,
    budget,
};

fn loads(overrides: &Overrides) -> Vec<Load> {
    let work = overrides.work.unwrap_or(Work::Spin);
    let usual = if work == Work::Sleep { ASLEEP_PER_S } else { RATE_PER_S };
    let cycle_ns = 1e9 / overrides.rate_per_s.unwrap_or(usual);
    let shares = overrides.hold_shares.clone().unwrap_or_else(|| {
        SHARES.iter().filter_map(|percent| Share::new(f64::from(*percent) / 100.0)).collect()
    });
    shares.into_iter().map(|share| Load::of_cycle(work, cycle_ns, share)).collect()
}
