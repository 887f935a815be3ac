//! `threadtoll report`: renders files of results.

use std::path::Path;
use std::process::ExitCode;

use threadtoll_record::file::{self, Results};
use threadtoll_report::clean;

use crate::arguments::Report;
use crate::console;
use crate::failure::Failure;
use crate::measure::{print_tables, print_verdict};
use crate::page;

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
    let mut all = Vec::new();
    for path in &report.files {
        let results = file::read(path)?;
        results.notes.iter().for_each(|note| console::err(&format!("note: {note}")));
        if !results.complete() {
            let missing = results.groups.iter().filter(|group| group.records.is_none()).count();
            console::err(&format!(
                "note: {missing} of {} groups are not complete; `threadtoll {} --resume {}` completes them.",
                results.groups.len(),
                clean(results.plan.command.first().map_or("survey", String::as_str)),
                path.display()
            ));
        }
        all.push(results);
    }
    if all.iter().any(|results| results.machine.simulated)
        && all.iter().any(|results| !results.machine.simulated)
    {
        return Err(Failure::usage("figures of a simulated machine cannot stand beside measured ones")
            .hint("give them apart"));
    }
    if let Some(page) = &report.html {
        page::prepare(page)?;
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
