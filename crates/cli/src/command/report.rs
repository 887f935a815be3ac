use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use threadtoll_record::file::{self, Appender, Contents, FoldFault, Profiled, Results};
use threadtoll_report::text;

use crate::console::{self, StdStream};
use crate::entry::{Command, CommonArgs};
use crate::failure::Failure;
use crate::measure::is_resumable;
use crate::page;
use crate::tables::{print_findings, print_screen, print_tables};

/// Render result files
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Result files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Write a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print the answer [default unless another output is chosen]
    #[arg(long)]
    text: bool,
    /// Print full tables, notes and undecided results
    #[arg(long)]
    details: bool,
    /// Write everything except the individual measurements (blocks) to this new file, compressed if
    /// its name ends in .gz
    #[arg(long, value_name = "OUT")]
    fold: Option<PathBuf>,
    /// Make the folded file much smaller by leaving out histograms, worst samples and timelines: a
    /// page made from it shows no distributions, and a cell from several groups gets the medians of
    /// its quantiles
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
                    "the page {} would overwrite its own input",
                    page.display()
                ))
                .hint("choose another file for the page"));
            }
            page::check(page)?;
        }
        let (mut all, mut profiles, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for path in &self.files {
            match file::read_any(path)? {
                Contents::Results(results) => {
                    notes.extend(notes_on(path, &results));
                    all.push(*results);
                }
                Contents::Profile(_) if self.fold.is_some() => {
                    return Err(Failure::usage(format!(
                        "{} is a profile, but --fold applies only to measurements",
                        path.display()
                    ))
                    .hint("compress it with gzip; `report` reads compressed files"));
                }
                Contents::Profile(profiled) => {
                    notes.extend(profiled.notes.iter().cloned());
                    profiles.push((path, *profiled));
                }
            }
        }
        let (profile_paths, profiles): (Vec<&PathBuf>, Vec<Profiled>) =
            profiles.into_iter().unzip();
        let machines = all.iter().map(|results| &results.machine);
        let profiled = profiles.iter().filter_map(|profiled| profiled.profile.machine.as_deref());
        let simulated: Vec<bool> =
            machines.chain(profiled).map(|machine| machine.simulated).collect();
        if simulated.contains(&true) && simulated.contains(&false) {
            return Err(Failure::usage(
                "simulated and measured figures cannot be mixed on one page",
            )
            .hint("make a page for each"));
        }
        if let Some(page) = &self.html {
            page::prepare(page)?;
        }
        notes.iter().for_each(|note| console::note(note));
        if self.text || self.details || (self.html.is_none() && self.fold.is_none()) {
            for results in &all {
                let records = results.records();
                if self.details {
                    print_tables(results, &records, StdStream::Out);
                    print_findings(results, &records, StdStream::Out);
                } else {
                    print_screen(results, &records, StdStream::Out);
                }
            }
            for (profiled, path) in profiles.iter().zip(&profile_paths) {
                let more = page::command(path);
                let draw = if self.details { text::profile } else { text::first_screen };
                console::out(&draw(&profiled.profile, &more, &StdStream::Out.style()));
            }
        }
        if let Some(path) = &self.html {
            page::write(path, &all, &profiles)?;
            console::err(&format!("The page is {}.", path.display()));
        }
        if let (Some(out), [file], [results]) = (&self.fold, &self.files[..], &mut all[..]) {
            if self.without_histograms {
                results.drop_samples();
            }
            fold(file, results, out)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Report {
    /// Rejects an impossible fold before anything is read or written.
    fn check_fold(&self, out: &Path) -> Result<(), Failure> {
        if self.files.len() > 1 {
            return Err(Failure::usage(format!("--fold takes one file, not {}", self.files.len()))
                .hint("fold each file on its own"));
        }
        if self.html.as_ref().is_some_and(|page| same_file(page, out)) {
            return Err(Failure::usage(format!(
                "{} cannot be both the page and the folded file",
                out.display()
            ))
            .hint("choose another file for one of them"));
        }
        Appender::check(out).map_err(|fault| not_folded(fault.into()))
    }
}

fn fold(file: &Path, results: &Results, out: &Path) -> Result<(), Failure> {
    file::fold(file, results, out).map_err(not_folded)?;
    let left_out = missing(results);
    if left_out > 0 {
        console::err(&format!(
            "note: {left_out} of {} groups of measurements are incomplete and left out of the folded \
             file.",
            results.groups.len()
        ));
    }
    console::err(&format!("The folded file is {}.", out.display()));
    Ok(())
}

fn not_folded(fault: FoldFault) -> Failure {
    let hint = match &fault {
        FoldFault::Write(_) => "choose a new file in a writable directory",
        FoldFault::Growing(_) => "wait until the run has ended",
        FoldFault::Nothing(_) => "complete it with --resume, or keep it as it is",
        FoldFault::Read { .. } => "give a file written by a measuring command",
    };
    Failure::usage(fault.to_string()).hint(hint)
}

fn missing(results: &Results) -> usize {
    results.complete_groups().iter().filter(|complete| !**complete).count()
}

fn notes_on(path: &Path, results: &Results) -> Vec<String> {
    let mut notes = results.notes.clone();
    let missing = missing(results);
    if missing > 0 {
        // The command's name comes from the file. It is suggested only if that command can resume
        // runs.
        let made_by = results.plan.command.first().filter(|name| is_resumable(name));
        let hint = made_by.filter(|_| results.not_resumable().is_none());
        let hint = hint.map_or_else(String::new, |name| {
            format!("; complete them with `threadtoll {name} --resume {}`", path.display())
        });
        let groups = results.groups.len();
        notes.push(format!("{missing} of {groups} groups of measurements are incomplete{hint}."));
    }
    notes
}

fn same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}
