use std::path::Path;

use clap::Args;
use serde::Serialize;
use threadtoll_lab::plan::{CpuSelection, Planned};
use threadtoll_record::file::Results;

use super::args::{MeasureArgs, MeasureRequest};
use super::options::{self, Options, given};
use crate::console;
use crate::failure::Failure;
use crate::peers::{self, PeersArgs};
use crate::registry::{add_twins, added};

/// A command that measures: its options, their validation, and its plan.
pub(crate) trait MeasureCommand: Args {
    const NAME: &'static str;
    /// True if a block (an uninterrupted measurement) may be split into parts that fit between the
    /// disturbances of this machine.
    const SPLITS_BLOCKS: bool = true;
    /// Hint for a run in which nothing is left to measure.
    const NOTHING_LEFT: &'static str =
        "try other mechanisms or placements: `threadtoll list mechanisms`, --placement";
    /// Shown after a complete run: a command to try next, and the question that it answers.
    const NEXT: Option<(&'static str, &'static str)> = None;
    /// The command's own options, validated. A plan stores them by field name and omits those that
    /// are `None`, false or empty.
    type Request: Serialize;

    fn measure_args(&self) -> &MeasureArgs;

    /// Options for peers in other languages; `None` if the command has none.
    fn peers(&self) -> Option<&PeersArgs> {
        None
    }

    /// The new file for comma-separated values, if the user wants one.
    fn csv(&self) -> Option<&Path> {
        None
    }

    fn check(&self, common: &MeasureRequest) -> Result<Self::Request, Failure>;

    /// Returns the groups, and the cells that are left out. Not called for a resumed run.
    fn plan(request: &Self::Request, common: &MeasureRequest, site: &CpuSelection<'_>) -> Planned;

    /// Number of processes that measure the plan, unless `--relaunch` is given.
    fn processes(_: &Self::Request) -> u32 {
        1
    }

    /// Returns `true` if the plan measures higher and higher rates until the queue is saturated.
    fn until_saturated(_: &Self::Request) -> bool {
        false
    }

    /// Time in nanoseconds after which the first group is measured again, unless `--repeat` is
    /// given.
    fn repeat_ns(_: &Self::Request, _: &MeasureRequest) -> Option<u64> {
        None
    }
}

pub(super) struct Checked<'a, C: MeasureCommand> {
    pub(super) args: &'a MeasureArgs,
    pub(super) common: MeasureRequest,
    pub(super) request: C::Request,
    /// The given options, as a plan stores them.
    pub(super) options: Options,
}

impl<'a, C: MeasureCommand> Checked<'a, C> {
    /// Validates the command's options. `resumed` is the run to complete.
    pub(super) fn new(command: &'a C, resumed: Option<&Results>) -> Result<Self, Failure> {
        let args = command.measure_args();
        let common = MeasureRequest::check(args)?;
        if common.twins || resumed.is_some_and(|results| options::twins(&results.plan)) {
            add_twins();
        }
        let folder = command.peers().map(PeersArgs::folder).transpose()?.flatten();
        match (&folder, resumed.and_then(|results| options::peers(&results.plan))) {
            (Some(folder), _) => peers::add(folder).map_err(|why| peers::bad(folder, &why))?,
            (None, Some(folder)) => peers::add(folder).map_err(|why| {
                Failure::usage(format!("the run used peers from {folder}: {why}"))
                    .hint("restore the peers in that folder to complete the run")
            })?,
            (None, None) => {}
        }
        if C::NAME != "queue" && !args.quiet && !added().adapters.is_empty() {
            console::note(
                "adapters in the folder of peers are queues, so only `threadtoll queue` measures them.",
            );
        }
        let request = command.check(&common)?;
        let mut options = given(&common)?;
        options.extend(given(&request)?);
        options.extend(folder.map(|folder| ("peers".to_string(), folder.into())));
        Ok(Checked { args, common, request, options })
    }
}
