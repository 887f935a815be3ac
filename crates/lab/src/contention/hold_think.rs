//! Fixed hold and think times, with up to twice as many threads as CPUs, after P. E. McKenney (*Is
//! Parallel Programming Hard, And, If So, What Can You Do About It?*, chapters on counting and
//! locking).

use threadtoll_record::{Spread, Work};

use super::{Load, Scenario, budget, steps};

const HOLD_NS: u64 = 5_000;
const THINK_NS: u64 = 45_000;
/// Factor on `HOLD_NS` and `THINK_NS` if threads sleep instead of computing.
const ASLEEP: u64 = 200;

/// The scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "hold-think",
    sentence: "threads with given hold and think times, from 1 thread to twice the CPUs",
    locks: &["std-mutex"],
    loads: || loads(None, None, None),
    threads: |_, cpus| steps(2 * cpus),
    budget,
};

/// The load with these hold and think times; `None` for the defaults.
pub fn loads(work: Option<Work>, hold_ns: Option<u64>, think_ns: Option<u64>) -> Vec<Load> {
    let work = work.unwrap_or(Work::Spin);
    let longer = if work == Work::Sleep { ASLEEP } else { 1 };
    vec![Load {
        work,
        spread: Spread::Fixed,
        hold_ns: hold_ns.unwrap_or(HOLD_NS * longer),
        think_ns: think_ns.unwrap_or(THINK_NS * longer),
        tasks: None,
        overload: None,
    }]
}
