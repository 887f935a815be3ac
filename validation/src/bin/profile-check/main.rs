//! Compares profiles with what programs know of themselves.
//!
//!     profile-check accuracy|causes|not-locks|allocator|prediction|scale|cost|trust [OPTIONS]
//!
//! Options: `--runs N` programs, `--seconds D` of a profile, `--seed N`, `--only TEXT` (programs
//! whose command line contains it), `--perf no` (without perf events), `--slices no` (the sampler
//! has the slice that any thread has), `--launched yes` (the profiler starts the program, and
//! profiles it from start to end). `THREADTOLL` names the command under test. The exit code is 1 if
//! a bound of the check is missed.

mod accuracy;
mod causes;
mod cost;
mod scale;
mod trust;

use std::process::ExitCode;
use threadtoll_profile_programs::Error;
use threadtoll_profile_programs::account::now;
use threadtoll_profile_programs::options::{duration_ns, fail, number, option};
use threadtoll_profile_programs::profile::{Profile, Profiled, launch, profile, show};
use threadtoll_profile_programs::target::{Facts, Target};
use threadtoll_profile_programs::truth::Acquisition;

fn main() -> ExitCode {
    let check = std::env::args().nth(1).unwrap_or_default();
    let passed = match check.as_str() {
        "accuracy" => accuracy::check(),
        "causes" => causes::check_causes(),
        "not-locks" => causes::check_not_locks(),
        "allocator" => causes::check_allocator(),
        "prediction" => scale::check_prediction(),
        "scale" => scale::check(),
        "cost" => cost::check(),
        "trust" => trust::check(),
        _ => fail(&format!("no such check: {check}")),
    };
    match passed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("profile-check {check}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A program that was profiled and has ended.
struct Run {
    /// The profiler's process; `None` if it started the program, whose CPU time it then shares.
    profiled: Option<Profiled>,
    messages: String,
    profile: Profile,
    facts: Facts,
    account: Vec<Acquisition>,
    /// Start and end of sampling.
    interval: [u64; 2],
}

/// Starts a program, profiles it, and ends it.
fn run(
    program: &str,
    arguments: &[String],
    extra: &[&str],
    prepare: impl FnOnce(&Target) -> Result<(), Error>,
) -> Result<Run, Error> {
    if option("launched", "no") == "yes" {
        return run_launched(program, arguments, extra, prepare);
    }
    let target = Target::start(program, arguments)?;
    prepare(&target)?;
    let pid = target.pid();
    let profiled = profile(pid, seconds(), extra, &target.folder)?;
    if profiled.code != 0 {
        return Err(format!("exit code {}: {}", profiled.code, profiled.messages.trim()).into());
    }
    let profile = Profile::parse(&profiled.output, pid)?;
    let interval = profile.interval_within(profiled.process);
    let (facts, account) = target.finish()?;
    let messages = profiled.messages.clone();
    Ok(Run { profiled: Some(profiled), messages, profile, facts, account, interval })
}

/// Has the profiler start a program, which it profiles from its start to its end.
fn run_launched(
    program: &str,
    arguments: &[String],
    extra: &[&str],
    prepare: impl FnOnce(&Target) -> Result<(), Error>,
) -> Result<Run, Error> {
    let started = now();
    let mut target = launch(program, arguments, extra)?;
    prepare(&target)?;
    std::thread::sleep(std::time::Duration::from_secs_f64(seconds()));
    let (facts, account) = target.end()?;
    let profile = Profile::parse(&show(&target.folder)?, target.pid())?;
    let messages = std::fs::read_to_string(target.folder.join("messages"))?;
    let interval = profile.interval_within([started, now()]);
    Ok(Run { profiled: None, messages, profile, facts, account, interval })
}

fn seconds() -> f64 {
    duration_ns("seconds", "10s") / 1e9
}

fn runs(default: &str) -> usize {
    number("runs", default) as usize
}

fn chosen(line: &str) -> bool {
    line.contains(&option("only", ""))
}

/// Splits a line of arguments.
fn words(line: &str) -> Vec<String> {
    line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// A figure, or `-`.
fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}

/// Prints the result of a bound.
fn bound(text: &str, holds: bool) -> bool {
    println!("{}: {text}", if holds { "holds" } else { "MISSED" });
    holds
}
