//! `threadtoll report`: renders files of results.

use std::path::Path;
use std::process::ExitCode;

use threadtoll_record::file::{self, Appender, FoldFault, Results};

use crate::arguments::Report;
use crate::console;
use crate::failure::Failure;
use crate::measure::{print_tables, print_verdict};
use crate::page;

/// The commands whose files can be completed.
const MEASURING: [&str; 4] = ["survey", "latency", "matrix", "queue"];

pub(crate) fn run(report: &Report) -> Result<ExitCode, Failure> {
    if let Some(out) = &report.fold {
        check_fold(report, out)?;
    }
    if let Some(page) = &report.html {
        if report.files.iter().any(|file| same_file(file, page)) {
            return Err(Failure::usage(format!(
                "the page {} would replace the file that it is made from",
                page.display()
            ))
            .hint("name another file for the page"));
        }
        page::check(page)?;
    }
    let mut all =
        report.files.iter().map(|path| file::read(path)).collect::<Result<Vec<Results>, _>>()?;
    if all.iter().any(|results| results.machine.simulated)
        && all.iter().any(|results| !results.machine.simulated)
    {
        return Err(Failure::usage(
            "figures of a simulated machine cannot stand beside measured ones",
        )
        .hint("give them apart"));
    }
    if let Some(page) = &report.html {
        page::prepare(page)?;
    }
    for (path, results) in report.files.iter().zip(&all) {
        note(path, results);
    }
    if report.text || (report.html.is_none() && report.fold.is_none()) {
        for results in &all {
            print(results);
        }
    }
    if let Some(path) = &report.html {
        page::write(path, &all)?;
        console::err(&format!("The page is {}.", path.display()));
    }
    if let (Some(out), [file], [results]) = (&report.fold, &report.files[..], &mut all[..]) {
        if report.without_histograms {
            results.drop_histograms();
        }
        fold(file, results, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses what cannot be folded, before anything is read or written.
fn check_fold(report: &Report, out: &Path) -> Result<(), Failure> {
    if report.files.len() > 1 {
        return Err(Failure::usage(format!(
            "--fold takes one file, and {} are named",
            report.files.len()
        ))
        .hint("fold each into a file of its own"));
    }
    if report.html.as_ref().is_some_and(|page| same_file(page, out)) {
        return Err(Failure::usage(format!(
            "{} cannot be both the page and the folded file",
            out.display()
        ))
        .hint("name another file for one of them"));
    }
    Appender::check(out).map_err(|fault| not_folded(fault.into()))
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

fn missing(results: &Results) -> usize {
    results.groups.iter().filter(|group| group.records.is_none()).count()
}

/// Says what is missing of a file.
fn note(path: &Path, results: &Results) {
    results.notes.iter().for_each(|note| console::err(&format!("note: {note}")));
    let missing = missing(results);
    if missing > 0 {
        // What a file names as its command is not repeated as something to type unless it is one.
        let command = results.plan.command.first().map_or("", String::as_str);
        let how = if MEASURING.contains(&command) && results.not_resumable().is_none() {
            format!("; `threadtoll {command} --resume {}` completes them", path.display())
        } else {
            String::new()
        };
        console::err(&format!(
            "note: {missing} of {} groups are not complete{how}.",
            results.groups.len()
        ));
    }
}

fn print(results: &Results) {
    let records = results.records();
    print_tables(results, &records, false);
    print_verdict(results, &records, false);
}

fn same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}
