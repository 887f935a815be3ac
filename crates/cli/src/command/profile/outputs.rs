//! Outputs of a profile that is new or read from a file.

use std::path::{Path, PathBuf};

use clap::Args;
use threadtoll_record::Line;
use threadtoll_record::file::{Appender, Profiled};
use threadtoll_report::folded;

use super::fail_if::Condition;
use crate::console;
use crate::failure::Failure;
use crate::parse::optional;
use crate::{draft, page};

use super::metrics;

#[derive(Clone, Debug, Args)]
pub(super) struct OutputArgs {
    /// Print the profile as one JSON object
    #[arg(long)]
    pub(super) json: bool,
    /// Write the stacks of waiters and holders to this new file, folded, for flame graphs
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
    /// Write a self-contained HTML page [a new profile has one by default, next to its file]
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Exit with code 5 if one lock meets all of EXPR, such as 'queue_mean > 0.5'
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    fail_if: Option<String>,
}

impl OutputArgs {
    pub(super) fn condition(&self) -> Result<Option<Condition>, Failure> {
        optional(&self.fail_if, Condition::parse)
    }

    /// Rejects files that cannot or must not be written, before anything starts.
    pub(super) fn check(&self, out: Option<&Path>, metrics: Option<&Path>) -> Result<(), Failure> {
        let files: Vec<&Path> = [out, metrics, self.folded.as_deref(), self.html.as_deref()]
            .into_iter()
            .flatten()
            .collect();
        for (index, file) in files.iter().enumerate() {
            if files[..index].contains(file) {
                return Err(Failure::usage(format!("{} is given twice", file.display()))
                    .hint("give each output a file of its own"));
            }
        }
        if let Some(path) = &self.folded {
            Appender::check(path).map_err(|fault| {
                Failure::usage(fault.to_string()).hint("choose a new file for the stacks")
            })?;
            draft::probe(path, "the stacks")?;
        }
        if let Some(path) = metrics {
            metrics::check_file(path)?;
        }
        self.html.as_deref().map_or(Ok(()), page::prepare)
    }

    pub(super) fn write(&self, profiled: &Profiled) -> Result<(), Failure> {
        if self.json {
            let line = Line::Profile(Box::new(profiled.profile.clone()));
            let text =
                serde_json::to_string(&line).map_err(|error| Failure::run(error.to_string()))?;
            console::data(&text);
        }
        if let Some(path) = &self.folded {
            draft::replace(path, "the stacks", &folded(&profiled.profile))?;
        }
        if let Some(path) = &self.html {
            page::write(path, &[], std::slice::from_ref(profiled))?;
        }
        Ok(())
    }
}
