//! `threadtoll report`: renders files of results.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use threadtoll_record::file::{self, Results};

use super::{Command, CommonArgs, Entry};
use crate::console::{self, Stream};
use crate::failure::Failure;
use crate::page;
use crate::tables::{print_tables, print_verdict};

/// Renders files of results
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Files that a measuring command has written
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Write one self-contained page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print the tables [default, unless a page is written]
    #[arg(long)]
    text: bool,
    #[command(flatten)]
    common: CommonArgs,
}

impl Command for Report {
    const NAME: &'static str = "report";

    fn common(&self) -> &CommonArgs {
        &self.common
    }

    fn run(&self) -> Result<ExitCode, Failure> {
        if let Some(page) = &self.html {
            if self.files.iter().any(|file| same_file(file, page)) {
                return Err(Failure::usage(format!(
                    "the page {} would replace the file that it is made from",
                    page.display()
                ))
                .hint("name another file for the page"));
            }
            page::check(page)?;
        }
        let all =
            self.files.iter().map(|path| file::read(path)).collect::<Result<Vec<Results>, _>>()?;
        if all.iter().any(|results| results.machine.simulated)
            && all.iter().any(|results| !results.machine.simulated)
        {
            return Err(Failure::usage(
                "figures of a simulated machine cannot stand beside measured ones",
            )
            .hint("give them apart"));
        }
        if let Some(page) = &self.html {
            page::prepare(page)?;
        }
        for (path, results) in self.files.iter().zip(&all) {
            print_notes(path, results);
        }
        if self.text || self.html.is_none() {
            for results in &all {
                let records = results.records();
                print_tables(results, &records, Stream::Out);
                print_verdict(results, &records, Stream::Out);
            }
        }
        if let Some(path) = &self.html {
            page::write(path, &all)?;
            console::err(&format!("The page is {}.", path.display()));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Says what a file lacks.
fn print_notes(path: &Path, results: &Results) {
    results.notes.iter().for_each(|note| console::err(&format!("note: {note}")));
    let missing = results.groups.iter().filter(|group| group.records.is_none()).count();
    if missing > 0 {
        // The file's word for its command is not shown as something to type unless it is one.
        let made_by = results.plan.command.first().and_then(|name| Entry::find(name));
        let hint = made_by.filter(|entry| entry.resumable).map_or_else(String::new, |entry| {
            format!("; `threadtoll {} --resume {}` completes them", entry.name, path.display())
        });
        console::err(&format!(
            "note: {missing} of {} groups are not complete{hint}.",
            results.groups.len()
        ));
    }
}

fn same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}
