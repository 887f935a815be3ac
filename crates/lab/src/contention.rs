//! Lock scenarios: experiments in which threads contend for a lock, one scenario per file.
//!
//! Threads alternate between work with the lock (hold time) and work without it (think time). The
//! result is the throughput of all threads relative to that of a single thread without the lock.
//! The blocks of the two are interleaved.

pub(crate) mod calibration_schedule;
pub(crate) mod lengths;
pub(crate) mod policy;
pub mod predict;
pub(crate) mod repeated;
pub(crate) mod units;

use threadtoll_record::{Budget, Experiment, MAX_ROUNDS, Overload, Share, Spread, Work};

use crate::budget::ROUNDS;

/// Maximum number of tasks that threads can share: a block has no room for more stamps.
pub const MAX_TASKS: u64 = 100_000;

/// Requested settings; `None` keeps the scenario's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// Thread counts.
    pub threads: Option<Vec<u32>>,
    /// Loads, made by the function `loads` of the scenario's module.
    pub loads: Option<Vec<Load>>,
    /// Shares of read-only acquisitions, for locks that several readers can hold at the same time.
    pub read_shares: Option<Vec<Share>>,
    /// Measuring time per cell, in nanoseconds.
    pub time_ns: Option<u64>,
}

impl Overrides {
    pub(crate) fn loads(&self, scenario: &Scenario) -> Vec<Load> {
        self.loads.clone().unwrap_or_else(scenario.loads)
    }
}

/// Work of a cell's threads, with the lock and without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Kind of work: computing or sleeping.
    pub work: Work,
    /// Distribution of the hold times and of the think times.
    pub spread: Spread,
    /// Mean hold time.
    pub hold_ns: u64,
    /// Mean think time.
    pub think_ns: u64,
    /// Number of tasks that the threads share; `None` if they run for a set time.
    pub tasks: Option<u64>,
    /// Arrival of callers from outside; `None` if the threads set the pace.
    pub overload: Option<Overload>,
}

impl Load {
    /// Mean time between acquisitions of an uncontended thread.
    pub fn cycle_ns(&self) -> u64 {
        self.hold_ns + self.think_ns
    }

    fn of_cycle(work: Work, cycle_ns: f64, share: Share) -> Load {
        let hold_ns = (cycle_ns * share.value()).round() as u64;
        let think_ns = (cycle_ns.round() as u64).saturating_sub(hold_ns);
        Load { work, spread: Spread::Exponential, hold_ns, think_ns, tasks: None, overload: None }
    }
}

/// A lock scenario.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// Name of the scenario on the command line.
    pub name: &'static str,
    /// One-sentence description.
    pub sentence: &'static str,
    /// Default locks.
    pub locks: &'static [&'static str],
    pub(crate) loads: fn() -> Vec<Load>,
    /// Default thread counts. The `u32` is the number of CPUs.
    pub(crate) threads: fn(Work, u32) -> Vec<u32>,
    /// The `Option<u64>` is the requested measuring time per cell, in nanoseconds.
    pub(crate) budget: fn(Option<u64>, &Load) -> Budget,
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! scenarios {
    ($($file:ident),+ $(,)?) => {
        $(pub mod $file;)+

        /// Every scenario.
        pub const SCENARIOS: &[Scenario] = &[$($file::SCENARIO),+];
    };
}

scenarios! {
    hold_sweep,
    frequency_sweep,
    hold_think,
    pool,
    overload,
}

/// Returns the scenario with this name.
pub fn scenario(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.name == name)
}

impl Scenario {
    pub(crate) fn of(experiment: &Experiment) -> Option<&'static Scenario> {
        match experiment {
            Experiment::Contention(name) => scenario(name),
            Experiment::Latency | Experiment::Matrix | Experiment::Queue(_) => None,
        }
    }

    pub(crate) fn experiment(&self) -> Experiment {
        Experiment::contention(self.name)
    }

    /// Programs in other languages can measure only the pool.
    pub(crate) fn is_pool(&self) -> bool {
        self.name == pool::SCENARIO.name
    }
}

fn up_to_one_beyond(work: Work, cpus: u32) -> Vec<u32> {
    steps(match work {
        // Sleeping threads do not need a CPU each.
        Work::Sleep => 2 * cpus,
        Work::Spin => cpus + 1,
    })
}

fn steps(most: u32) -> Vec<u32> {
    if most <= 9 {
        return (1..=most).collect();
    }
    let mut all: Vec<u32> =
        (0..32).map(|power| 1 << power).take_while(|threads| *threads < most - 1).collect();
    all.extend([most - 1, most]);
    all
}

/// Minimum cycle (hold plus think time) in which three stamps take negligible time.
const STAMPED_CYCLE_NS: u64 = 6_000;
const SPIN_BLOCK_NS: u64 = 25_000_000;
const CYCLES: u64 = 50;
/// Minimum number of rounds for a usable confidence interval.
const MIN_ROUNDS: u64 = 5;

/// If stamps take a negligible part of a cycle, the same blocks yield both the rate and the waiting
/// times. Otherwise, half of the time goes to blocks without stamps.
fn budget(time_ns: Option<u64>, load: &Load) -> Budget {
    let least = CYCLES * load.cycle_ns();
    let block_ns = SPIN_BLOCK_NS.max(least);
    let rounds = match time_ns {
        Some(time_ns) => (time_ns / block_ns).clamp(MIN_ROUNDS, u64::from(MAX_ROUNDS)),
        None if block_ns > 4 * SPIN_BLOCK_NS => MIN_ROUNDS.max(2_000_000_000 / block_ns),
        None => ROUNDS.into(),
    };
    let block_ns = match time_ns {
        Some(time_ns) => (time_ns / rounds).clamp(least.max(1_000_000), block_ns.max(1_000_000)),
        None => block_ns,
    };
    let stretched = load.cycle_ns() < STAMPED_CYCLE_NS;
    Budget {
        rounds: rounds as u32,
        stretch_ns: if stretched { block_ns / 2 } else { 0 },
        stamped_ns: if stretched { block_ns / 2 } else { block_ns },
        stamped_count: None,
    }
}
