//! `threadtoll report`: renders files of results.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use threadtoll_record::file::{self, Appender, FoldFault, Results};

use super::{Command, CommonArgs, Entry};
use crate::console::{self, StdStream};
use crate::failure::Failure;
use crate::page;
use crate::tables::{print_findings, print_tables};

/// Renders files of results
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Files that a measuring command has written
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Write one self-contained page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print the tables [default, unless a file is written]
    #[arg(long)]
    text: bool,
    /// Keep everything but the blocks in this new file, compressed if its name ends in .gz
    #[arg(long, value_name = "OUT")]
    fold: Option<PathBuf>,
    /// Leave the histograms out of the folded file, half of what it weighs: its page shows no
    /// distributions, and a cell that stands in several groups has the medians of their quantiles
    #[arg(long, requires = "fold")]
    without_histograms: bool,
    #[command(flatten)]
    common: CommonArgs,
}

impl Command for Report {
    const NAME: &'static str = "report";

    fn common(&self) -> &CommonArgs {
        &self.common
    }

    fn run(&self) -> Result<ExitCode, Failure> {
        if let Some(out) = &self.fold {
            self.check_fold(out)?;
        }
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
        let mut all =
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
        if self.text || (self.html.is_none() && self.fold.is_none()) {
            for results in &all {
                let records = results.records();
                print_tables(results, &records, StdStream::Out);
                print_findings(results, &records, StdStream::Out);
            }
        }
        if let Some(path) = &self.html {
            page::write(path, &all)?;
            console::err(&format!("The page is {}.", path.display()));
        }
        if let (Some(out), [file], [results]) = (&self.fold, &self.files[..], &mut all[..]) {
            if self.without_histograms {
                results.drop_histograms();
            }
            fold(file, results, out)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Report {
    /// Refuses what cannot be folded, before anything is read or written.
    fn check_fold(&self, out: &Path) -> Result<(), Failure> {
        if self.files.len() > 1 {
            return Err(Failure::usage(format!(
                "--fold takes one file, and {} are named",
                self.files.len()
            ))
            .hint("fold each into a file of its own"));
        }
        if self.html.as_ref().is_some_and(|page| same_file(page, out)) {
            return Err(Failure::usage(format!(
                "{} cannot be both the page and the folded file",
                out.display()
            ))
            .hint("name another file for one of them"));
        }
        Appender::check(out).map_err(|fault| not_folded(fault.into()))
    }
}

fn fold(file: &Path, results: &Results, out: &Path) -> Result<(), Failure> {
    file::fold(file, results, out).map_err(not_folded)?;
    let left_out = missing(results);
    if left_out > 0 {
        console::err(&format!(
            "note: {left_out} of {} groups are left out of the folded file.",
            results.groups.len()
        ));
    }
    console::err(&format!("The folded file is {}.", out.display()));
    Ok(())
}

fn not_folded(fault: FoldFault) -> Failure {
    let hint = match &fault {
        FoldFault::Write(_) => "name a new file in a directory that can be written",
        FoldFault::Growing(_) => "wait until it is complete",
        FoldFault::Nothing(_) => "complete it with --resume, or keep it as it is",
        FoldFault::Read { .. } => "give the name of a file that a measuring command has written",
    };
    Failure::usage(fault.to_string()).hint(hint)
}

/// Number of groups that are not complete.
fn missing(results: &Results) -> usize {
    results.groups.iter().filter(|group| group.records.is_none()).count()
}

/// Says what a file lacks.
fn print_notes(path: &Path, results: &Results) {
    results.notes.iter().for_each(|note| console::err(&format!("note: {note}")));
    let missing = missing(results);
    if missing > 0 {
        // The file's word for its command is not shown as something to type unless it is one.
        let made_by = results.plan.command.first().and_then(|name| Entry::find(name));
        let hint = made_by
            .filter(|entry| entry.resumable && results.not_resumable().is_none())
            .map_or_else(String::new, |entry| {
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
