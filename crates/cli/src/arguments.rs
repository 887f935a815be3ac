//! The command line, declared. Values are strings here; [`crate::request`] validates them, so that
//! every error message is our own.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::console::Color;
use crate::failure::Failure;
use crate::nearest::nearest;

/// What do this machine's threads pay to talk to each other?
#[derive(Debug, Parser)]
#[command(name = "threadtoll", version, max_term_width = 100, disable_help_subcommand = true)]
#[command(
    after_help = "Start with `threadtoll survey`: a minute later you know. `threadtoll COMMAND --help` tells more."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Is this machine fit to be measured? A grade from A to D, and what to do about it
    #[command(after_help = threadtoll_machine::THRESHOLDS)]
    Check(Check),
    /// The card of this machine: the whole ladder of hand-offs, in about a minute
    Survey(Survey),
    /// Ask-reply latency of mechanisms
    Latency(Latency),
    /// Latency for pairs of CPUs
    Matrix(Matrix),
    /// Queues between threads, in scenarios: ask-reply and stream
    Queue(Queue),
    /// Threads that queue for a lock, in experiments: speed-up, waiting times, and what was
    /// predicted
    #[command(after_help = CONTENTION)]
    Contention(Contention),
    /// How many threads are worth having? Speed-up, queue and wait for threads that share a lock
    #[command(after_help = PREDICT)]
    Predict(Predict),
    /// Renders files of results
    Report(Report),
    /// What can be named: a name and a sentence a line
    List(List),
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Exit with code 3 unless the grade is A or B
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print the machine as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Look {
    /// When to colour
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_possible_values = false)]
    pub(crate) color: Color,
    /// Read the topology from this tree instead of /sys: plans can be made for it, but nothing
    /// measured
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) sysfs: Option<PathBuf>,
}

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
    pub(crate) look: Look,
}

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

#[derive(Debug, Args)]
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

/// What the help of `predict` ends with.
const PREDICT: &str = "\
FILE holds one duration a line (250ns, 2.5us, 5ms, 2s; # begins a comment), or records that threadtoll has measured: the \
histogram of the one record that is not its group's reference, or of the Nth record as FILE#N. The shape is stretched to the mean that --hold or \
--think gives; without them it has its own.\n\n\
Where a closed form is exact it is what is printed; everything else is simulated. Example: threadtoll predict --hold 5ms \
--think 95ms --hold-shape fixed --threads 1..32 --tasks 1000";

#[derive(Debug, Args)]
pub(crate) struct Predict {
    /// Mean hold time of the lock (250ns, 2.5us, 5ms, 2s); may be left out only if --hold-shape is
    /// a file
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) hold: Option<String>,
    /// Mean time of a thread outside the lock; left out only if --think-shape is a file
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) think: Option<String>,
    /// Numbers of threads, such as 1,2,4 or 1..32 [default: 1 to twice the CPUs]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) threads: Option<String>,
    /// How hold times are spread: fixed, exponential, or as in FILE [default: exponential]
    #[arg(long, value_name = "SHAPE")]
    pub(crate) hold_shape: Option<String>,
    /// How think times are spread [default: as hold times]
    #[arg(long, value_name = "SHAPE")]
    pub(crate) think_shape: Option<String>,
    /// Time from waking a waiting thread until it runs [default: 0]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) handoff: Option<String>,
    /// Lock policy: fifo (longest waiter first) or barging (any thread that comes before the woken
    /// one runs) [default: fifo]
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: Option<String>,
    /// Cores that the threads run on [default: no limit, as of threads that sleep]
    #[arg(long, value_name = "C", allow_hyphen_values = true)]
    pub(crate) cores: Option<String>,
    /// Equal locks that share the load, each acquisition taking one at random [default: 1]
    #[arg(long, value_name = "K", allow_hyphen_values = true)]
    pub(crate) stripes: Option<String>,
    /// Predict a run of N tasks, each a hold and a think time, instead of the long run: its total
    /// time
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) tasks: Option<String>,
    /// Simulate even where a closed form is exact
    #[arg(long)]
    pub(crate) simulate: bool,
    /// Seed of simulations [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) seed: Option<String>,
    /// Print the prediction as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Files that a measuring command has written
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Write one self-contained page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print the tables [default, unless a file is written]
    #[arg(long)]
    pub(crate) text: bool,
    /// Keep everything but the blocks in this new file, compressed if its name ends in .gz
    #[arg(long, value_name = "OUT")]
    pub(crate) fold: Option<PathBuf>,
    /// Leave the histograms out of the folded file, half of what it weighs: its page shows no
    /// distributions, and a cell that stands in several groups has the medians of their quantiles
    #[arg(long, requires = "fold")]
    pub(crate) without_histograms: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// mechanisms, queues, locks, scenarios or peers
    #[arg(value_name = "WHAT")]
    pub(crate) what: String,
    #[command(flatten)]
    pub(crate) look: Look,
}

/// Why parsing gave no command.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Help or the version was asked for.
    Shown(String),
    /// The arguments are wrong.
    Failed(Failure),
}

/// Parses the command line, the program's name first.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, Ended> {
    Arguments::command()
        .try_get_matches_from(arguments)
        .and_then(|matches| Arguments::from_arg_matches(&matches))
        .map_err(|error| told(&error))
}

/// Makes one sentence of what clap found wrong.
fn told(error: &clap::Error) -> Ended {
    let context = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        _ => None,
    };
    let argument = context(ContextKind::InvalidArg).unwrap_or_default();
    let value = context(ContextKind::InvalidValue).unwrap_or_default();
    let help =
        "`threadtoll --help` lists the commands, `threadtoll COMMAND --help` the options of one";
    let failure = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            return Ended::Shown(error.render().ansi().to_string());
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            Failure::usage("no command was given")
                .hint("start with `threadtoll survey`; `threadtoll --help` lists the commands")
        }
        ErrorKind::InvalidSubcommand => {
            let typed = context(ContextKind::InvalidSubcommand).unwrap_or_default();
            let names: Vec<String> = Arguments::command()
                .get_subcommands()
                .map(|command| command.get_name().to_string())
                .collect();
            let near = nearest(&typed, names.iter().map(String::as_str));
            let failure = Failure::usage(format!("there is no command “{typed}”"));
            if near.is_empty() {
                failure.hint(help)
            } else {
                failure.hint(format!("nearest: {}", near.join(", ")))
            }
        }
        ErrorKind::UnknownArgument => {
            let failure =
                Failure::usage(format!("there is no option or argument “{argument}” here"));
            match context(ContextKind::SuggestedArg) {
                Some(near) => failure.hint(format!("nearest: {near}")),
                None => failure.hint(help),
            }
        }
        ErrorKind::InvalidValue if value.is_empty() => {
            Failure::usage(format!("{argument} needs a value")).hint(help)
        }
        ErrorKind::InvalidValue => {
            let failure = Failure::usage(format!("“{value}” is no value for {argument}"));
            match context(ContextKind::ValidValue) {
                Some(valid) => failure.hint(format!("it takes one of: {valid}")),
                None => failure.hint(help),
            }
        }
        ErrorKind::ArgumentConflict => {
            let other = context(ContextKind::PriorArg).unwrap_or_default();
            if other == argument || other.is_empty() {
                Failure::usage(format!("{argument} was given twice")).hint("give it once")
            } else {
                Failure::usage(format!("{argument} cannot be used with {other}"))
                    .hint("give one of them")
            }
        }
        ErrorKind::MissingRequiredArgument => {
            Failure::usage(format!("{argument} is missing")).hint(help)
        }
        ErrorKind::InvalidUtf8 => Failure::usage("an argument is not valid UTF-8"),
        _ => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            Failure::usage(first.strip_prefix("error: ").unwrap_or(first).to_string()).hint(help)
        }
    };
    Ended::Failed(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declaration_is_sound() {
        Arguments::command().debug_assert();
    }
}
