//! Compares profiles with what programs know of themselves.
//!
//!     profile-check accuracy|causes|not-locks|allocator|prediction|scale|cost|trust [OPTIONS]
//!
//! Options: `--runs N`, `--seconds D` of a profile, `--seed N`, `--only TEXT` (programs whose
//! command line contains it), `--perf no` (without perf events). `THREADTOLL` names the command
//! under test. The exit code is 1 if a bound of the check is missed.

mod accuracy;
mod causes;
mod cost;
mod scale;
mod trust;

use std::process::ExitCode;
use threadtoll_profile_programs::Error;
use threadtoll_profile_programs::options::{duration_ns, fail, number, option};
use threadtoll_profile_programs::profile::{Profile, Profiled, profile};
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
    profiled: Profiled,
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
    let target = Target::start(program, arguments)?;
    prepare(&target)?;
    let pid = target.pid();
    let folder = target.folder.clone();
    let profiled = profile(pid, seconds(), extra, &folder)?;
    if profiled.code != 0 {
        return Err(format!("exit code {}: {}", profiled.code, profiled.messages.trim()).into());
    }
    let profile = Profile::parse(&profiled.output, pid)?;
    let interval = profile.interval_within(profiled.process);
    let (facts, account) = target.finish()?;
    Ok(Run { profiled, profile, facts, account, interval })
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
