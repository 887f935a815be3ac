//! Options of all measuring commands.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use threadtoll_lab::plan::MAX_SAMPLES;
use threadtoll_lab::simulated::Fault;
use threadtoll_record::{MAX_PROCESSES, Placement};

use crate::entry::CommonArgs;
use crate::failure::Failure;
use crate::parse::{choices, count, duration_ns, duration_or_zero_ns, list, optional};

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
    /// Print the records as JSON Lines; tables and notes go to standard error
    #[arg(long)]
    pub(super) json: bool,
    /// Measuring time per cell (250ns, 2.5us, 5ms, 2s)
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    time: Option<String>,
    /// Minimum number of stamped round trips per cell
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    samples: Option<String>,
    /// CPUs to use, such as 0,2 or 0-3: the first two for pinned, the first for same-cpu, all for
    /// free
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    cpus: Option<String>,
    /// Placement of the ends: pinned, same-cpu or free [repeatable; default: all; queues: pinned]
    #[arg(long, value_name = "PLACEMENT")]
    placement: Vec<String>,
    /// Report the share of round trips over this limit [default: 10us]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    over: Option<String>,
    /// Seed for the order of blocks and for resampling [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    seed: Option<String>,
    /// Number of processes among which the rounds of each group are divided, because blocks of one
    /// process share its addresses and pages [default: 1; queue and survey --full: 3]
    #[arg(long, value_name = "K", allow_hyphen_values = true)]
    relaunch: Option<String>,
    /// Measure the first group again at the end, this long after its first measurement or later,
    /// and say how far the two differ; 0 for never [default: 180s in survey --full, and in queue if
    /// it measures all queues for its own time; otherwise 0]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    repeat: Option<String>,
    /// Print the plan and its duration, and exit
    #[arg(long)]
    pub(super) plan: bool,
    /// Print results only, without progress and notes
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Measure on a simulated machine, to test everything but the measuring
    #[arg(long, value_name = "SEED", hide = true, allow_hyphen_values = true)]
    simulated_machine: Option<String>,
    /// Also measure twins: our rows compiled once more, as a peer's are
    #[arg(long, hide = true)]
    twins: bool,
    /// Let rows of the simulated machine fail (NAME=FAULT)
    #[arg(long, value_name = "LIST", hide = true, allow_hyphen_values = true)]
    simulated_faults: Option<String>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Where a run is kept.
pub(super) enum Keep<'a> {
    Nothing,
    At(&'a Path),
    InFolder,
}

impl MeasureArgs {
    pub(super) fn check_resume(&self) -> Result<(), Failure> {
        if self.resume.is_some() && self.out.is_some() {
            return Err(Failure::usage(
                "--resume continues its own file, so it cannot be used with --out",
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

/// The options of [`MeasureArgs`] that shape a plan, validated. `None` and empty mean not given.
#[derive(Debug, Serialize)]
pub(crate) struct MeasureRequest {
    pub(crate) time_ns: Option<u64>,
    pub(crate) samples: Option<u64>,
    pub(crate) cpus: Option<Vec<u32>>,
    pub(crate) placement: Vec<Placement>,
    over_ns: Option<u64>,
    seed: Option<u64>,
    pub(super) relaunch: Option<u64>,
    /// Zero for never.
    pub(super) repeat_ns: Option<u64>,
    pub(super) twins: bool,
    pub(super) simulated_machine: Option<u64>,
    simulated_faults: Option<Vec<String>>,
}

impl MeasureRequest {
    pub(super) fn check(args: &MeasureArgs) -> Result<Self, Failure> {
        let number = |option: &str, text: &str| count(option, text, 0, u64::MAX);
        Ok(MeasureRequest {
            time_ns: optional(&args.time, |text| duration_ns("--time", text))?,
            samples: optional(&args.samples, |text| count("--samples", text, 1, MAX_SAMPLES))?,
            cpus: optional(&args.cpus, cpus)?,
            placement: placements(&args.placement)?,
            over_ns: optional(&args.over, |text| duration_ns("--over", text))?,
            seed: optional(&args.seed, |text| number("--seed", text))?,
            relaunch: optional(&args.relaunch, |text| {
                count("--relaunch", text, 1, u64::from(MAX_PROCESSES))
            })?,
            repeat_ns: optional(&args.repeat, |text| duration_or_zero_ns("--repeat", text))?,
            twins: args.twins,
            simulated_machine: optional(&args.simulated_machine, |text| {
                number("--simulated-machine", text)
            })?,
            simulated_faults: optional(&args.simulated_faults, faults)?,
        })
    }

    /// Limit for the share of longer round trips.
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

fn faults(text: &str) -> Result<Vec<String>, Failure> {
    list("--simulated-faults", text, "row", |part| match Fault::of_cell(part) {
        Some(_) => Ok(part.to_string()),
        None => Err(Failure::usage(format!("--simulated-faults: “{part}” is not NAME=FAULT"))
            .hint("name a row and a fault, such as rtrb=hung")),
    })
}

/// Longest range: more CPUs than any kernel has.
const MAX_RANGE: u32 = 1 << 13;

/// Reads CPUs and ranges of them: `0,2`, `0-3`, `8,0-3`.
fn cpus(text: &str) -> Result<Vec<u32>, Failure> {
    let bad = |why: String| Failure::usage(format!("--cpus {text}: {why}"));
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

fn placements(names: &[String]) -> Result<Vec<Placement>, Failure> {
    let known = Placement::ALL.map(|placement| (placement.name(), placement));
    let mut placements = choices("--placement", names, "placement", &known)?;
    placements.sort();
    Ok(placements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_distinct_numbers() {
        assert_eq!(cpus("0,3,1").unwrap(), [0, 3, 1]);
        assert_eq!(cpus("8,0-3, 5").unwrap(), [8, 0, 1, 2, 3, 5]);
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
            assert!(cpus(text).is_err(), "{text}");
        }
    }
}
