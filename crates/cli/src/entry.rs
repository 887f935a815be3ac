//! A command for the command line: its options, as declared to clap, and its `run` function.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgMatches, Args};

use crate::console::Color;
use crate::failure::Failure;
use crate::scenario::with_scenarios;
use crate::syntax::render_error;

pub(crate) trait Command: Args {
    const NAME: &'static str;

    fn common(&self) -> &CommonArgs;
    fn run(&self) -> Result<ExitCode, Failure>;
}

/// Options that every command has.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// Coloured output
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_short_help = true)]
    color: Color,
    /// Read the topology from this directory instead of /sys, to print plans, or to measure on a
    /// simulated machine
    #[arg(long, value_name = "DIR", hide = true)]
    sysfs: Option<PathBuf>,
}

impl CommonArgs {
    pub(crate) fn sysfs(&self) -> PathBuf {
        self.other_sysfs().unwrap_or(Path::new("/sys")).to_path_buf()
    }

    /// The directory given instead of `/sys`.
    pub(crate) fn other_sysfs(&self) -> Option<&Path> {
        self.sysfs.as_deref()
    }
}

pub(crate) struct Entry {
    pub(crate) name: &'static str,
    declare: fn(clap::Command) -> clap::Command,
    run: fn(&ArgMatches) -> Result<ExitCode, Failure>,
}

impl Entry {
    pub(crate) const fn of<C: Command>() -> Self {
        Entry {
            name: C::NAME,
            declare: C::augment_args,
            run: |matches| {
                let command = C::from_arg_matches(matches).map_err(|error| render_error(&error))?;
                command.common().color.apply();
                command.run()
            },
        }
    }

    pub(crate) fn declaration(&self) -> clap::Command {
        with_scenarios((self.declare)(clap::Command::new(self.name)))
    }

    pub(crate) fn run(&self, matches: &ArgMatches) -> Result<ExitCode, Failure> {
        (self.run)(matches)
    }
}
