//! Scenarios of locks: experiments in which threads queue for one, each a file and a line here.
//!
//! In every one of them threads do some work while they hold the lock and some while they do not;
//! what differs is how much of each, on how many threads. What is measured is the work that all of
//! them do, against that of one thread alone without the lock, whose blocks are interleaved with
//! theirs.

pub(crate) mod calibration_schedule;
pub(crate) mod contender;
pub(crate) mod lengths;
pub mod predict;
pub(crate) mod units;

use threadtoll_record::{Budget, Experiment, MAX_ROUNDS, Share, Spread, Work};

use crate::budget::ROUNDS;

/// Most tasks that threads share: a block keeps the stamps of no more.
pub const MAX_TASKS: u64 = 100_000;

/// Command-line overrides; `None` keeps the scenario's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// Numbers of threads.
    pub threads: Option<Vec<u32>>,
    /// Shares of its time for which a thread that never waits holds the lock.
    pub hold_shares: Option<Vec<Share>>,
    /// Acquisitions of such a thread per second.
    pub rate_per_s: Option<f64>,
    /// Hold time, in nanoseconds.
    pub hold_ns: Option<u64>,
    /// Think time, in nanoseconds.
    pub think_ns: Option<u64>,
    /// What the threads do.
    pub work: Option<Work>,
    /// Shares of the acquisitions that only read, for locks that know readers.
    pub read_shares: Option<Vec<Share>>,
    /// Tasks that the threads share.
    pub tasks: Option<u64>,
    /// Measuring time per cell, in nanoseconds.
    pub time_ns: Option<u64>,
}

/// A point: what the threads of a cell do, whatever the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// What they do.
    pub work: Work,
    /// How the lengths of their stretches are spread.
    pub spread: Spread,
    /// Mean time with the lock.
    pub hold_ns: u64,
    /// Mean time without it.
    pub think_ns: u64,
    /// Tasks that they share.
    pub tasks: Option<u64>,
}

impl Load {
    /// Mean time from one acquisition to the next of a thread that never waits.
    pub fn cycle_ns(&self) -> u64 {
        self.hold_ns + self.think_ns
    }

    /// The load of that share of a cycle; the rest of it is spent without the lock.
    fn of_cycle(work: Work, cycle_ns: f64, share: Share) -> Load {
        let hold_ns = (cycle_ns * share.value()).round() as u64;
        let think_ns = (cycle_ns.round() as u64).saturating_sub(hold_ns);
        Load { work, spread: Spread::Exponential, hold_ns, think_ns, tasks: None }
    }
}

/// Something that can be done with locks.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its description, in a sentence.
    pub sentence: &'static str,
    /// Default locks.
    pub locks: &'static [&'static str],
    /// Options that it has in addition to those of every scenario.
    pub options: &'static [&'static str],
    /// Load of each point.
    pub(crate) loads: fn(&Overrides) -> Vec<Load>,
    /// Numbers of threads, by the number of CPUs.
    pub(crate) threads: fn(&Overrides, u32) -> Vec<u32>,
    /// Length and number of the blocks of a cell.
    pub(crate) budget: fn(&Overrides, &Load) -> Budget,
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Declares the files of scenarios.
macro_rules! scenarios {
    ($($file:ident),+ $(,)?) => {
        $(mod $file;)+

        /// Every scenario.
        pub const SCENARIOS: &[Scenario] = &[$($file::SCENARIO),+];
    };
}

scenarios! {
    hold_sweep,
    frequency_sweep,
    hold_think,
    pool,
}

/// The scenario of that name.
pub fn scenario(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.name == name)
}

impl Scenario {
    /// The scenario to which the cells of an experiment belong.
    pub(crate) fn of(experiment: &Experiment) -> Option<&'static Scenario> {
        match experiment {
            Experiment::Contention(name) => scenario(name),
            Experiment::Latency | Experiment::Matrix | Experiment::Queue(_) => None,
        }
    }

    /// The experiment that its cells belong to.
    pub(crate) fn experiment(&self) -> Experiment {
        Experiment::contention(self.name)
    }
}

/// One thread, as many as there are CPUs and all between, and one more.
fn up_to_one_beyond(overrides: &Overrides, cpus: u32) -> Vec<u32> {
    let most = match overrides.work {
        // Sleeping threads do not take turns.
        Some(Work::Sleep) => 2 * cpus,
        _ => cpus + 1,
    };
    overrides.threads.clone().unwrap_or_else(|| steps(most))
}

/// 1 to `most`, thinned out where those are many.
fn steps(most: u32) -> Vec<u32> {
    if most <= 9 {
        return (1..=most).collect();
    }
    let mut all: Vec<u32> =
        (0..32).map(|power| 1 << power).take_while(|threads| *threads < most - 1).collect();
    all.extend([most - 1, most]);
    all
}

/// What of a cycle three stamps may take up: more would lengthen the rate that a block is for.
const STAMPED_CYCLE_NS: u64 = 6_000;
/// Default length of a block where the threads compute.
const SPIN_BLOCK_NS: u64 = 25_000_000;
/// Least cycles of a block.
const CYCLES: u64 = 50;
/// Least rounds that give an interval worth the name.
const MIN_ROUNDS: u64 = 5;

/// Blocks that hold enough cycles each, and as many of them as the time allows: at least 21 where
/// they are short, and 5 where a single one takes long.
///
/// Where stamps are lost in a cycle, one block serves for the rate and for the waits.
fn budget(overrides: &Overrides, load: &Load) -> Budget {
    let least = CYCLES * load.cycle_ns();
    let block_ns = SPIN_BLOCK_NS.max(least);
    let rounds = match overrides.time_ns {
        Some(time_ns) => (time_ns / block_ns).clamp(MIN_ROUNDS, u64::from(MAX_ROUNDS)),
        None if block_ns > 4 * SPIN_BLOCK_NS => MIN_ROUNDS.max(2_000_000_000 / block_ns),
        None => ROUNDS.into(),
    };
    let block_ns = match overrides.time_ns {
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
