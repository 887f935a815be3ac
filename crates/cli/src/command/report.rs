//! `threadtoll report`: renders files of results.

use std::path::Path;
use std::process::ExitCode;

use threadtoll_record::file::{self, Results};

use crate::arguments::Report;
use crate::console;
use crate::failure::Failure;
use crate::measure::{print_tables, print_verdict};
use crate::page;

/// The commands whose files can be completed.
const MEASURING: [&str; 4] = ["survey", "latency", "matrix", "queue"];

pub(crate) fn run(report: &Report) -> Result<ExitCode, Failure> {
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
    let all =
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
    if report.text || report.html.is_none() {
        for results in &all {
            print(results);
        }
    }
    if let Some(path) = &report.html {
        page::write(path, &all)?;
        console::err(&format!("The page is {}.", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Says what is missing of a file.
fn note(path: &Path, results: &Results) {
    results.notes.iter().for_each(|note| console::err(&format!("note: {note}")));
    let missing = results.groups.iter().filter(|group| group.records.is_none()).count();
    if missing > 0 {
        // What a file names as its command is not repeated as something to type unless it is one.
        let command = results.plan.command.first().map_or("", String::as_str);
        let how = if MEASURING.contains(&command) {
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
