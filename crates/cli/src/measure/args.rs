use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use threadtoll_lab::plan::MAX_SAMPLES;
use threadtoll_lab::simulated::Fault;
use threadtoll_record::{MAX_PROCESSES, Placement};

use crate::entry::CommonArgs;
use crate::failure::Failure;
use crate::parse::{List, Reader, choice, duration_ns, duration_or_zero_ns, list, number};

#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    /// Write every block and record to this new file (JSON Lines); - keeps nothing [default: a
    /// file in threadtoll-results/]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the page to this file [default: next to the results]
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Complete the file of an interrupted run, with its plan and options
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,
    /// Print the records as JSON Lines; the rest goes to standard error
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    request: MeasureRequest,
    /// Print the plan and its duration, and exit
    #[arg(long)]
    pub(super) plan: bool,
    /// Print full tables, notes and undecided results
    #[arg(long)]
    pub(super) details: bool,
    /// Print results only, without progress and notes
    #[arg(long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// The option of commands and scenarios that record the time of each round trip or message.
#[derive(Debug, Args, Serialize)]
pub(crate) struct SamplesArgs {
    /// Minimum number of individually timed round trips or messages per cell
    #[arg(long, value_name = "N", value_parser = number(1, MAX_SAMPLES))]
    #[arg(allow_hyphen_values = true)]
    pub(crate) samples: Option<u64>,
}

pub(super) enum Keep<'a> {
    Nothing,
    At(&'a Path),
    InFolder,
}

impl MeasureArgs {
    pub(super) fn check_resume(&self) -> Result<(), Failure> {
        if self.resume.is_some() && self.out.is_some() {
            return Err(Failure::usage(
                "--resume continues the file it is given, so it cannot be used with --out",
            )
            .hint("give one of them"));
        }
        Ok(())
    }

    pub(super) fn keep(&self) -> Keep<'_> {
        match self.out.as_deref() {
            None => Keep::InFolder,
            Some(out) if out == "-" => Keep::Nothing,
            Some(out) => Keep::At(out),
        }
    }
}

/// Options that shape a plan, which stores them by field name.
#[derive(Clone, Debug, Args, Serialize)]
pub(crate) struct MeasureRequest {
    /// Measuring time per cell (250ns, 2.5us, 5ms, 2s)
    #[arg(long = "time", value_name = "D", value_parser = Reader(duration_ns))]
    #[arg(allow_hyphen_values = true)]
    pub(crate) time_ns: Option<u64>,
    /// CPUs to use, such as 0,2 or 0-3: pinned uses the first two, same-cpu the first, and free all
    /// of them
    #[arg(long, value_name = "LIST", value_parser = Reader(cpus), allow_hyphen_values = true)]
    pub(crate) cpus: Option<List<u32>>,
    /// Placement of the threads: pinned, same-cpu or free [repeatable; default: all; queues:
    /// pinned]
    #[arg(long, value_name = "PLACEMENT", value_parser = Reader(placement))]
    pub(crate) placement: Vec<Placement>,
    /// Report the share of round trips that take longer than this [default: 10us]
    #[arg(hide_short_help = true)]
    #[arg(long = "over", value_name = "D", value_parser = Reader(duration_ns))]
    #[arg(allow_hyphen_values = true)]
    over_ns: Option<u64>,
    /// Seed for the order of blocks and for resampling [default: 1]
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "N", value_parser = number(0, u64::MAX), allow_hyphen_values = true)]
    seed: Option<u64>,
    /// Number of processes among which the rounds of each group are divided, because all
    /// measurements in one process share its addresses and pages [default: 1; queue and survey
    /// --full: 3]
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "K", value_parser = number(1, MAX_PROCESSES.into()))]
    #[arg(allow_hyphen_values = true)]
    pub(super) relaunch: Option<u64>,
    /// Measure the first group again at the end, at least this long after its first measurement,
    /// and report how far the two differ; 0 for never [default: 180s in survey --full, and in queue
    /// if it measures all queues for their default time; otherwise 0]
    #[arg(hide_short_help = true)]
    #[arg(long = "repeat", value_name = "D", value_parser = Reader(duration_or_zero_ns))]
    #[arg(allow_hyphen_values = true)]
    pub(super) repeat_ns: Option<u64>,
    /// Also measure twins: our own queues, mechanisms and locks, compiled a second time, in the
    /// same way as peers
    #[arg(long, hide = true)]
    pub(super) twins: bool,
    /// Measure on a simulated machine, to test everything but the measuring
    #[arg(long, value_name = "SEED", value_parser = number(0, u64::MAX), hide = true)]
    #[arg(allow_hyphen_values = true)]
    pub(super) simulated_machine: Option<u64>,
    /// Let rows of the simulated machine fail (NAME=FAULT)
    #[arg(long, value_name = "LIST", value_parser = Reader(faults), hide = true)]
    #[arg(allow_hyphen_values = true)]
    simulated_faults: Option<List<String>>,
}

impl MeasureRequest {
    /// Validates the options of a command, and sorts the placements.
    pub(super) fn check(args: &MeasureArgs) -> Result<Self, Failure> {
        let mut request = args.request.clone();
        request.placement.sort();
        match request.placement.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Failure::usage(format!("--placement {} is given twice", pair[0]))
                .hint("give each placement once")),
            None => Ok(request),
        }
    }

    /// Limit above which a round trip counts as long.
    pub(super) fn over_ns(&self) -> u64 {
        self.over_ns.unwrap_or(10_000)
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    pub(crate) fn placements_or(&self, default: &[Placement]) -> Vec<Placement> {
        if self.placement.is_empty() { default.to_vec() } else { self.placement.clone() }
    }
}

fn placement(option: &str, text: &str) -> Result<Placement, Failure> {
    choice(option, text, &Placement::ALL.map(|placement| (placement.name(), placement)))
}

fn faults(option: &str, text: &str) -> Result<Vec<String>, Failure> {
    list(option, text, "row", |part| match Fault::of_cell(part) {
        Some(_) => Ok(part.to_string()),
        None => Err(Failure::usage(format!("{option}: “{part}” is not NAME=FAULT"))
            .hint("name a row and a fault, such as rtrb=hung")),
    })
}

/// Maximum number of CPUs in a range: no kernel supports more.
const MAX_RANGE: u32 = 1 << 13;

/// Parses CPUs and ranges of them: `0,2`, `0-3`, `8,0-3`.
fn cpus(option: &str, text: &str) -> Result<Vec<u32>, Failure> {
    let bad = |why: String| Failure::usage(format!("{option} {text}: {why}"));
    let number = |part: &str| {
        part.trim().parse::<u32>().map_err(|_| {
            bad(format!("“{part}” is not a CPU number")).hint("write CPUs as 0,2 or 0-3")
        })
    };
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once('-').filter(|(first, _)| !first.is_empty()) {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last {
            return Err(bad(format!("{part} counts down")).hint("write ranges as 0-3"));
        }
        if last - first >= MAX_RANGE {
            return Err(bad(format!("{part} is too long")).hint("give a shorter range"));
        }
        for cpu in first..=last {
            if cpus.contains(&cpu) {
                return Err(bad(format!("CPU {cpu} is given twice")).hint("give each CPU once"));
            }
            cpus.push(cpu);
        }
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_distinct_numbers() {
        let of = |text| cpus("--cpus", text);
        assert_eq!(of("0,3,1").unwrap(), [0, 3, 1]);
        assert_eq!(of("8,0-3, 5").unwrap(), [8, 0, 1, 2, 3, 5]);
        for text in [
            "",
            "0,0",
            "a",
            "0,,1",
            "-1",
            "0,4294967296",
            "0;1",
            "3-0",
            "0-3,2",
            "0-",
            "1-2-3",
            "0-4294967295",
        ] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
