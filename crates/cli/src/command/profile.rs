mod engine;
mod fail_if;
mod live;
mod metrics;
mod outputs;
mod replay;
mod session;
mod show;
mod signals;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::entry::{Command, CommonArgs};
use crate::failure::Failure;
use crate::measure::{Options, given};
use crate::parse::{DURATIONS, count, duration_ns, optional, share};

use fail_if::Condition;
use live::Live;
use metrics::Target;
use outputs::OutputArgs;
use show::Show;

const AFTER_HELP: &str = "\
The program is never stopped, traced or written to. A launched program keeps standard input, \
output and error, the report goes to standard error, and the exit code is the program's own. \
Ctrl-C, SIGTERM and SIGHUP end the sampling; the report follows.\n\n\
Examples:\n  \
threadtoll profile -p $(pidof server)\n  \
threadtoll profile -p $(pidof server) --fail-if 'name = cache_* and queue_mean > 0.5'\n\n\
EXPR is one comparison or several joined by `and`: efficiency < 80%, held_share > 0.9, \
queue_mean > 0.5, queue_max >= 8, name = GLOB, stuck, deadlock. With --fail-if, the exit code is 5 \
if a single lock meets all comparisons; `stuck` or `deadlock` alone is about the whole program.";

/// Default sampling time for a program that is already running.
const SECONDS_NS: u64 = 10_000_000_000;
/// Maximum number of samples per second. At higher rates, a sample would take longer than the time
/// until the next sample.
const MAX_RATE: u64 = 20_000;
const DEFAULT_RATE: u64 = 1000;
const DEFAULT_BUDGET: f64 = 0.01;

/// Find the lock that a program waits for, its holder, and what would help
#[derive(Debug, Args)]
#[command(
    after_help = AFTER_HELP,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    override_usage = "threadtoll profile [OPTIONS] -p PID\n       \
        threadtoll profile [OPTIONS] -- PROGRAM [ARGS]...\n       \
        threadtoll profile show FILE [OPTIONS]"
)]
pub(crate) struct Profile {
    #[command(subcommand)]
    kept: Option<Kept>,
    /// Running process to profile
    #[arg(short, long, value_name = "PID", allow_hyphen_values = true)]
    pid: Option<String>,
    /// End the sampling after D (10, 500ms, 2s) [default: 10 with -p, unless --live or
    /// --openmetrics :PORT is given; otherwise when the program ends]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    seconds: Option<String>,
    /// Show the first screen of the report on the terminal, redrawn at most twice a second; q ends
    /// the sampling, and the program runs on
    #[arg(long)]
    live: bool,
    /// Samples per second, as far as the budget allows [default: 1000]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    rate: Option<String>,
    /// CPU time that the profiler may use, as a share of one CPU (1%, 0.01) [default: 1%]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    budget: Option<String>,
    /// Profile only processes of this name among the launched program and its descendants
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Write the profile to this new file, at most once a second [default:
    /// threadtoll-results/profile-….jsonl]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Seed for the times of samples [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    seed: Option<String>,
    /// Write metrics to this file, at most once a second, or serve them at :PORT or ADDRESS:PORT
    #[arg(long, value_name = "FILE|:PORT")]
    openmetrics: Option<String>,
    #[command(flatten)]
    outputs: OutputArgs,
    /// Print the report only, without progress and notes
    #[arg(long)]
    quiet: bool,
    /// Replay a file of profiles, to test everything but the sampling
    #[arg(long, value_name = "FILE", hide = true)]
    replay: Option<PathBuf>,
    #[command(flatten)]
    common: CommonArgs,
    /// Arguments that lack `--`
    #[arg(value_name = "WORD", hide = true)]
    stray: Vec<OsString>,
    /// Program to launch and profile, with its arguments
    #[arg(last = true, value_name = "PROGRAM", allow_hyphen_values = true)]
    program: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
enum Kept {
    Show(Show),
}

impl Command for Profile {
    const NAME: &'static str = "profile";

    fn common(&self) -> &CommonArgs {
        match &self.kept {
            Some(Kept::Show(show)) => &show.common,
            None => &self.common,
        }
    }

    fn run(&self) -> Result<ExitCode, Failure> {
        match &self.kept {
            Some(Kept::Show(show)) => show.run(),
            None => session::run(&Request::check(self)?, &self.common),
        }
    }
}

#[derive(Debug)]
enum Subject {
    Running(u32),
    Launched(OsString, Vec<OsString>),
}

#[derive(Debug)]
struct Request {
    subject: Subject,
    length: Option<Duration>,
    sampling: threadtoll_profile::Options,
    fail_if: Option<Condition>,
    openmetrics: Option<Target>,
    live: Option<Live>,
    out: Option<PathBuf>,
    outputs: OutputArgs,
    quiet: bool,
    replay: Option<PathBuf>,
    /// The given options, as a plan stores them.
    given: Options,
}

/// The options that affected a profile; each field is named like its option.
#[derive(Serialize)]
struct Given<'a> {
    pid: Option<u32>,
    seconds: Option<f64>,
    rate: Option<u64>,
    budget: Option<f64>,
    only: Option<&'a str>,
    seed: Option<u64>,
}

impl Request {
    fn check(args: &Profile) -> Result<Self, Failure> {
        let subject = subject(args)?;
        let launched = matches!(subject, Subject::Launched(..));
        let length_ns = optional(&args.seconds, seconds)?;
        let rate = optional(&args.rate, |text| count("--rate", text, 1, MAX_RATE))?;
        let budget = optional(&args.budget, budget)?;
        let seed = optional(&args.seed, |text| count("--seed", text, 0, u64::MAX))?;
        if args.only.as_deref() == Some("") {
            return Err(Failure::usage("--only: the name is empty")
                .hint("give the name of a program, such as --only worker"));
        }
        if args.only.is_some() && !launched {
            return Err(Failure::usage("--only applies to a launched program and its descendants")
                .hint("-p profiles one process: give its PID"));
        }
        let fail_if = args.outputs.condition()?;
        let openmetrics = optional(&args.openmetrics, Target::parse)?;
        if launched && args.outputs.json {
            return Err(Failure::usage(
                "--json cannot be used with a launched program, because both would print to standard \
                 output",
            )
            .hint("print it afterwards: threadtoll profile show FILE --json"));
        }
        if launched
            && args.live
            && (std::io::stdout().is_terminal() || std::io::stderr().is_terminal())
        {
            return Err(Failure::usage(
                "--live needs the terminal, and the launched program would write to it",
            )
            .hint("redirect its output (> out.txt 2>&1), or profile a running program with -p"));
        }
        let live = if args.live { Some(Live::check()?) } else { None };
        let metrics_file = match &openmetrics {
            Some(Target::File(path)) => Some(path.as_path()),
            _ => None,
        };
        args.outputs.check(args.out.as_deref(), metrics_file)?;

        let endless = args.live || matches!(openmetrics, Some(Target::Address(_)));
        let length_ns = length_ns.or_else(|| (!launched && !endless).then_some(SECONDS_NS));
        let given = given(&Given {
            pid: if let Subject::Running(pid) = subject { Some(pid) } else { None },
            seconds: length_ns.map(|ns| ns as f64 / 1e9),
            rate,
            budget,
            only: args.only.as_deref(),
            seed,
        })?;
        Ok(Request {
            subject,
            length: length_ns.map(Duration::from_nanos),
            sampling: threadtoll_profile::Options {
                rate_per_s: rate.unwrap_or(DEFAULT_RATE) as f64,
                budget: budget.unwrap_or(DEFAULT_BUDGET),
                only: args.only.clone(),
                seed: seed.unwrap_or(1),
            },
            fail_if,
            openmetrics,
            live,
            out: args.out.clone(),
            outputs: args.outputs.clone(),
            quiet: args.quiet,
            replay: args.replay.clone(),
            given,
        })
    }
}

fn subject(args: &Profile) -> Result<Subject, Failure> {
    if let Some(word) = args.stray.first() {
        let word = word.display();
        return Err(Failure::usage(format!("profile does not know what to do with “{word}”"))
            .hint(format!("write `profile -- {word}` to launch it, or `profile show FILE`")));
    }
    match (&args.pid, args.program.split_first()) {
        (Some(_), Some(_)) => {
            Err(Failure::usage("-p cannot be used with a program to launch")
                .hint("give one of them"))
        }
        (None, None) => Err(Failure::usage("profile needs a program").hint(
            "give -p PID, or -- PROGRAM ARGS; `threadtoll profile show FILE` shows a saved one",
        )),
        (Some(pid), None) => {
            let pid = count("-p", pid, 1, i32::MAX as u64)?;
            Ok(Subject::Running(pid as u32))
        }
        (None, Some((program, arguments))) => {
            Ok(Subject::Launched(program.clone(), arguments.to_vec()))
        }
    }
}

/// Parses `--seconds`, a duration or a plain number of seconds, into nanoseconds.
fn seconds(text: &str) -> Result<u64, Failure> {
    let bare = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let spelt = if bare { format!("{text}s") } else { text.to_string() };
    duration_ns("--seconds", &spelt).map_err(|failure| failure.or_hint(|| DURATIONS.to_string()))
}

/// Minimum budget, as a share of one CPU. With less, hours could pass between two samples.
const LEAST_BUDGET: f64 = 1e-4;

fn budget(text: &str) -> Result<f64, Failure> {
    match share(text).filter(|share| *share >= 0.0) {
        Some(share) if (LEAST_BUDGET..=1.0).contains(&share) => Ok(share),
        Some(_) => Err(Failure::usage(format!(
            "--budget {text}: it must be from 0.01% to 100% of one CPU"
        ))
        .hint("write a share of one CPU, such as 1% or 0.01")),
        None => Err(Failure::usage(format!("--budget {text}: not a share"))
            .hint("write a share of one CPU, such as 1% or 0.01")),
    }
}
