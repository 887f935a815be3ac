use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use threadtoll_record::file::read_profile;
use threadtoll_report::{openmetrics, text};

use super::metrics::{self, Target};
use super::outputs::OutputArgs;
use super::session::judge;
use crate::console::{self, StdStream};
use crate::entry::CommonArgs;
use crate::failure::Failure;
use crate::parse::optional;
use crate::{draft, page};

/// Show a saved profile again: finished, interrupted or still being written
#[derive(Debug, Args)]
pub(super) struct Show {
    /// Profile to show, such as threadtoll-results/profile-….jsonl
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write metrics to this file
    #[arg(long, value_name = "FILE")]
    openmetrics: Option<String>,
    #[command(flatten)]
    outputs: OutputArgs,
    #[command(flatten)]
    pub(super) common: CommonArgs,
}

impl Show {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let metrics = match optional(&self.openmetrics, Target::parse)? {
            Some(Target::Address(address)) => {
                return Err(Failure::usage(format!(
                    "--openmetrics {address}: a saved profile cannot be served"
                ))
                .hint("write its metrics to a file: --openmetrics FILE"));
            }
            Some(Target::File(path)) => Some(path),
            None => None,
        };
        self.outputs.check(Some(&self.file), metrics.as_deref())?;
        let condition = self.outputs.condition()?;
        let read = read_profile(&self.file)?;
        for note in &read.notes {
            console::err(&format!("note: {note}"));
        }
        let report_to = if self.outputs.json { StdStream::Err } else { StdStream::Out };
        report_to.print(&text::profile(
            &read.profile,
            &page::command(&self.file),
            &report_to.style(),
        ));
        self.outputs.write(&read)?;
        if let Some(path) = metrics {
            metrics::check_file(&path)?;
            draft::replace(&path, "the metrics", &openmetrics(&read.profile))?;
        }
        let failed = condition.is_some_and(|condition| judge(&condition, &read.profile));
        Ok(if failed { super::session::FAIL_IF.into() } else { ExitCode::SUCCESS })
    }
}
