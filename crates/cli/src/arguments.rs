//! The options of the measuring commands. Values are strings here; [`crate::request`] validates
//! them, so that every error message is our own.

use std::path::PathBuf;

use clap::Args;

use crate::command::CommonArgs;

/// What everything that measures takes.
#[derive(Debug, Args)]
pub(crate) struct Measure {
    /// Keep every block and record in this new file (JSON Lines)
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Complete a file that an interrupted run left; plan and options are taken from it
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,
    /// Print the records as JSON, a line each, and everything for people to standard error
    #[arg(long)]
    pub(crate) json: bool,
    /// Measuring time per cell (250ns, 2.5us, 5ms, 2s)
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) time: Option<String>,
    /// Stamped round trips per cell, at least
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) samples: Option<String>,
    /// The CPUs to use: pinned takes the first two, same-cpu the first, free roams among them
    #[arg(long, value_name = "A,B,...", allow_hyphen_values = true)]
    pub(crate) cpus: Option<String>,
    /// Where the ends run: pinned, same-cpu or free [repeatable; default: all; of queues: pinned]
    #[arg(long, value_name = "PLACEMENT")]
    pub(crate) placement: Vec<String>,
    /// Limit for the reported share [default: 10us]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) over: Option<String>,
    /// Seed of the order of blocks and of resampling [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) seed: Option<String>,
    /// Print the plan and how long it takes, and measure nothing
    #[arg(long)]
    pub(crate) plan: bool,
    /// No progress and no notes, only results
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Measure on a simulated machine, for tests of everything but measuring
    #[arg(long, value_name = "SEED", hide = true, allow_hyphen_values = true)]
    pub(crate) simulated_machine: Option<String>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// The card of this machine: the whole ladder of hand-offs, in about a minute
#[derive(Debug, Args)]
pub(crate) struct Survey {
    /// Every mechanism, within 15 seconds
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// Every mechanism with all its variants and message sizes; takes minutes, said beforehand
    #[arg(long)]
    pub(crate) full: bool,
    /// Where to write the page [default: beside the file of results]
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) measure: Measure,
}

/// Ask-reply latency of mechanisms
#[derive(Debug, Args)]
pub(crate) struct Latency {
    /// Mechanisms to measure, as named by `threadtoll list mechanisms` [default: all]
    #[arg(value_name = "MECHANISM")]
    pub(crate) mechanisms: Vec<String>,
    /// Cache lines of the two counters: own or shared [default: both]
    #[arg(long, value_name = "WHICH")]
    pub(crate) line: Option<String>,
    /// Pause hint in spin loops: on or off [default: both]
    #[arg(long, value_name = "ON|OFF")]
    pub(crate) pause: Option<String>,
    /// Bytes of a message, its 8-byte sequence number included: a multiple of 8 up to 1 MiB
    /// [default: 8]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    pub(crate) payload: Option<String>,
    /// Keep the CPUs from idling, with spinners of the lowest priority: wake-ups then cost
    /// scheduling alone
    #[arg(long)]
    pub(crate) keep_awake: bool,
    /// Load beside the measured threads: spin, memory or churn [default: none]
    #[arg(long, value_name = "KIND")]
    pub(crate) neighbour: Option<String>,
    #[command(flatten)]
    pub(crate) measure: Measure,
}

/// Latency for pairs of CPUs
#[derive(Debug, Args)]
pub(crate) struct Matrix {
    /// Mechanism to measure [default: atomic-store]
    #[arg(value_name = "MECHANISM")]
    pub(crate) mechanism: Option<String>,
    /// Pairs to measure: those within a core (smt), a last-level cache (llc), a node (node), or all
    /// [default: all]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) level: Option<String>,
    #[command(flatten)]
    pub(crate) measure: Measure,
}

/// Queues between threads, in scenarios: ask-reply and stream
#[derive(Debug, Args)]
pub(crate) struct Queue {
    /// Scenario to run, as named by `threadtoll list scenarios`; a resumed file knows its own
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: Option<String>,
    /// Queues to measure, as named by `threadtoll list queues` and `threadtoll list peers`
    /// [default: all]
    #[arg(value_name = "QUEUE")]
    pub(crate) queues: Vec<String>,
    /// Wait strategies of the receiver: spin (also runs the peers' poll and poll-backoff),
    /// spin-yield, park or adaptive (both also run block); for peers only: poll, poll-backoff,
    /// block [repeatable; default: all]
    #[arg(long, value_name = "HOW")]
    pub(crate) wait: Vec<String>,
    /// stream: the largest batch, 1 for one message at a time [default: one at a time and 256]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) batch: Option<String>,
    /// stream: numbers of sending threads, such as 1,2,4 [default: 1]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) senders: Option<String>,
    /// Messages that bounded queues hold, such as 64,1024; a queue may round down [default: as many
    /// as 256 KiB hold; ask-reply: 1024]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) capacity: Option<String>,
    /// Load beside the measured threads: spin, memory or churn [default: none]
    #[arg(long, value_name = "KIND")]
    pub(crate) neighbour: Option<String>,
    #[command(flatten)]
    pub(crate) measure: Measure,
}

/// What the help of `contention` ends with.
const CONTENTION: &str = "\
Every cell is compared with one thread alone that takes no lock, and is foretold by a model before it is measured, from hold times, think times and \
hand-offs calibrated in the same group.\n\n\
With --work sleep the threads sleep instead of computing: then many more of them than CPUs can be measured. Example: threadtoll contention \
hold-sweep std-mutex --work sleep --threads 1,4,16 --hold-share 5%,25%,50%";

/// Threads that queue for a lock, in experiments: speed-up, waiting times, and what was
/// predicted
#[derive(Debug, Args)]
#[command(after_help = CONTENTION)]
pub(crate) struct Contention {
    /// Scenario to run, as named by `threadtoll list scenarios`; a resumed file knows its own
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: Option<String>,
    /// Locks to measure, as named by `threadtoll list locks`
    /// [default: those that the experiment is about]
    #[arg(value_name = "LOCK")]
    pub(crate) locks: Vec<String>,
    /// Numbers of threads, such as 1,2,4 or 1..8
    /// [default: hold-sweep: 1 to one more than CPUs; hold-think: to twice the CPUs]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) threads: Option<String>,
    /// Shares of its time for which a thread that never waits holds the lock, such as 0.05,50%
    /// [default: 0 to 1]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) hold_share: Option<String>,
    /// How often such a thread takes the lock, per second [default: 15000; with --work sleep: 100]
    #[arg(long, value_name = "PER_SECOND", allow_hyphen_values = true)]
    pub(crate) rate: Option<String>,
    /// hold-think, pool: hold time of the lock (250ns, 2.5us, 5ms, 2s)
    /// [default: 5us; of the pool: 500us]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) hold: Option<String>,
    /// hold-think, pool: how long a thread is without it [default: 45us; of the pool: 9.5ms]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) think: Option<String>,
    /// What the threads do: spin (compute) or sleep [default: spin; of the pool: sleep]
    #[arg(long, value_name = "WORK")]
    pub(crate) work: Option<String>,
    /// Shares of the acquisitions that only read, for locks that know readers [default: 0,0.9]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) read_share: Option<String>,
    /// pool: tasks that the threads share [default: 1000]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) tasks: Option<String>,
    #[command(flatten)]
    pub(crate) measure: Measure,
}
