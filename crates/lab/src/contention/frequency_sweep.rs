//! The second half of *Locks aren't slow* (J. Preshing, 2011): two threads take a lock for a short
//! time, at increasing rates, until the lock costs more than the work. A single thread shows the
//! uncontended cost.

use threadtoll_record::{Share, Work};

use super::{Load, Scenario, budget};

/// Times between acquisitions of an uncontended thread.
const INTERVALS_NS: [u64; 8] = [10, 31, 100, 310, 1_000, 3_100, 10_000, 31_000];
/// Our choice: the article says only that holds are short.
const HOLD_SHARE: f64 = 0.1;

/// The scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "frequency-sweep",
    sentence: "two threads that take a lock every 10 ns to 31 us, and the uncontended cost of the lock",
    locks: &[
        "std-mutex",
        "parking-lot",
        "pthread",
        "spin",
        "ticket",
        "mcs",
        "kernel-eventfd",
        "counter-locked",
        "counter-atomic",
        "counter-sharded",
    ],
    loads: || loads(None, None, None),
    threads: |_, cpus| if cpus > 1 { vec![1, 2] } else { vec![1] },
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
    let intervals: Vec<f64> = match rate_per_s {
        Some(rate) => vec![1e9 / rate],
        None if work == Work::Sleep => vec![1e6, 3.1e6, 1e7],
        None => INTERVALS_NS.iter().map(|ns| *ns as f64).collect(),
    };
    let usual = || Share::new(HOLD_SHARE).into_iter().collect();
    let shares = hold_shares.map_or_else(usual, <[Share]>::to_vec);
    shares
        .iter()
        .flat_map(|share| intervals.iter().map(|interval| Load::of_cycle(work, *interval, *share)))
        .collect()
}
