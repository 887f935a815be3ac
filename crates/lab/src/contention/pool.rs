//! A. Sukhovitsky's pool: a fixed number of threads share 1,000 tasks. A task is a hold time
//! followed by a think time. A thread reads the queue length just after it has acquired the lock.
//!
//! A block is one complete run, from the moment when all threads contend at once until the last
//! task is done. The article sleeps for 5 ms with the lock and 95 ms without it. The defaults here
//! are a tenth of these times, because a single thread takes a thousand times their sum.

use threadtoll_record::{Budget, MAX_ROUNDS, Spread, Work};

use crate::budget;

use super::{Load, Scenario, steps};

const HOLD_NS: u64 = 500_000;
const THINK_NS: u64 = 9_500_000;
/// Divisor of `HOLD_NS` and `THINK_NS` if threads compute instead of sleeping.
const SPINNING: u64 = 10;
const TASKS: u64 = 1000;
/// Minimum number of rounds if no measuring time is given.
const ROUNDS: u64 = 5;

/// The scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "pool",
    sentence: "total time and lock queue of a thread pool that does 1,000 tasks, each first with \
               the lock held, then without it",
    locks: &["parking-lot-fair", "std-mutex"],
    loads: || loads(None, None, None, None),
    threads,
    budget,
};

/// The load with these hold and think times and this number of tasks; `None` for the defaults.
pub fn loads(
    work: Option<Work>,
    hold_ns: Option<u64>,
    think_ns: Option<u64>,
    tasks: Option<u64>,
) -> Vec<Load> {
    let work = work.unwrap_or(Work::Sleep);
    let shorter = if work == Work::Spin { SPINNING } else { 1 };
    vec![Load {
        work,
        spread: Spread::Fixed,
        hold_ns: hold_ns.unwrap_or(HOLD_NS / shorter),
        think_ns: think_ns.unwrap_or(THINK_NS / shorter),
        tasks: Some(tasks.unwrap_or(TASKS)),
        overload: None,
    }]
}

/// For sleeping threads, the thread counts of the article.
fn threads(work: Work, cpus: u32) -> Vec<u32> {
    match work {
        Work::Spin => steps(cpus + 1),
        Work::Sleep => vec![1, 5, 10, 16, 20, 25, 32],
    }
}

/// A block ends with its last task, not at a set time. It is planned to be as long as a single
/// thread needs for all tasks.
fn budget(time_ns: Option<u64>, load: &Load) -> Budget {
    let run_ns = load.tasks.unwrap_or(TASKS).saturating_mul(load.cycle_ns());
    let rounds = match time_ns {
        Some(time_ns) => (time_ns / run_ns.max(1)).clamp(2, u64::from(MAX_ROUNDS)),
        None => (2_000_000_000 / run_ns.max(1)).clamp(ROUNDS, budget::ROUNDS.into()),
    };
    Budget { rounds: rounds as u32, stretch_ns: 0, stamped_ns: run_ns, stamped_count: None }
}
