//! The commands, one per file. A new one is a file here, its `mod` line and a line in [`COMMANDS`].

mod check;
mod compare;
mod contention;
mod latency;
mod list;
mod matrix;
mod predict;
mod profile;
mod queue;
mod report;
mod schema;
mod survey;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgMatches, Args};

use crate::command_line::render_error;
use crate::console::Color;
use crate::failure::Failure;

/// A command: its options, as clap declares them, and its run.
pub(crate) trait Command: Args {
    const NAME: &'static str;
    /// True if `--resume` completes its files.
    const RESUMABLE: bool = false;

    fn common(&self) -> &CommonArgs;
    fn run(&self) -> Result<ExitCode, Failure>;
}

/// Options that every command has.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// Coloured output
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_possible_values = false)]
    color: Color,
    /// Read the topology from this directory instead of /sys, to print plans but measure nothing
    #[arg(long, value_name = "DIR", hide = true)]
    sysfs: Option<PathBuf>,
}

impl CommonArgs {
    /// The directory of the topology.
    pub(crate) fn sysfs(&self) -> PathBuf {
        self.sysfs.clone().unwrap_or_else(|| PathBuf::from("/sys"))
    }
}

pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) resumable: bool,
    declare: fn(clap::Command) -> clap::Command,
    run: fn(&ArgMatches) -> Result<ExitCode, Failure>,
}

/// All commands, in the order of the help.
pub(crate) static COMMANDS: &[Entry] = &[
    Entry::of::<check::Check>(),
    Entry::of::<survey::Survey>(),
    Entry::of::<latency::Latency>(),
    Entry::of::<matrix::Matrix>(),
    Entry::of::<queue::Queue>(),
    Entry::of::<contention::Contention>(),
    Entry::of::<predict::Predict>(),
    Entry::of::<profile::Profile>(),
    Entry::of::<report::Report>(),
    Entry::of::<compare::Compare>(),
    Entry::of::<list::List>(),
    Entry::of::<schema::Schema>(),
];

impl Entry {
    const fn of<C: Command>() -> Self {
        Entry {
            name: C::NAME,
            resumable: C::RESUMABLE,
            declare: C::augment_args,
            run: |matches| {
                let command = C::from_arg_matches(matches).map_err(|error| render_error(&error))?;
                command.common().color.apply();
                command.run()
            },
        }
    }

    pub(crate) fn find(name: &str) -> Option<&'static Entry> {
        COMMANDS.iter().find(|entry| entry.name == name)
    }

    pub(crate) fn declaration(&self) -> clap::Command {
        (self.declare)(clap::Command::new(self.name))
    }

    pub(crate) fn run(&self, matches: &ArgMatches) -> Result<ExitCode, Failure> {
        (self.run)(matches)
    }
}
