//! Threads that hold the lock for nine tenths of their time.

use threadtoll_record::{Spread, Work};

use super::{Load, Overrides, Scenario, budget, steps};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "mostly-held",
    sentence: "threads that hold a lock for 90% of their time",
    locks: &["std-mutex", "ticket"],
    options: &["threads"],
    loads,
    threads,
    budget,
};

fn loads(_: &Overrides) -> Vec<Load> {
    vec![Load {
        work: Work::Spin,
        spread: Spread::Exponential,
        hold_ns: 45_000,
        think_ns: 5_000,
        tasks: None,
    }]
}

fn threads(overrides: &Overrides, cpus: u32) -> Vec<u32> {
    overrides.threads.clone().unwrap_or_else(|| steps(cpus))
}
