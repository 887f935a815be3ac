//! The workflow of all measuring commands: plan or resume, measure, print, and name the files.

mod args;
mod command;
mod options;
mod output;
mod plan;
mod preview;
mod resume;
mod session;
pub(crate) mod share;
mod testbed;

use std::process::ExitCode;

use threadtoll_lab::Outcome;
use threadtoll_record::file::{Appender, Results};
use threadtoll_report::{matrix_csv, no_recommendation};

use crate::entry::{Command, CommonArgs};
use crate::failure::Failure;
use crate::{console, draft, kept};

use args::Keep;
pub(crate) use args::{MeasureArgs, MeasureRequest, SamplesArgs};
use command::Checked;
pub(crate) use command::MeasureCommand;
pub(crate) use options::{Options, given};
use output::{Output, Page};
use testbed::Testbed;

/// Number of processes among which a run is divided, to estimate the variance between processes.
pub(crate) const PROCESSES: u32 = 3;
/// Time within which many virtual machines change their speed, in nanoseconds. A measurement
/// repeated after this time shows the change.
pub(crate) const REPEAT_NS: u64 = 180_000_000_000;

/// Returns `true` for commands that measure: `--resume` can complete their files.
pub(crate) fn is_resumable(command: &str) -> bool {
    ["survey", "latency", "matrix", "queue", "contention"].contains(&command)
}

impl<C: MeasureCommand> Command for C {
    const NAME: &'static str = <C as MeasureCommand>::NAME;

    fn common(&self) -> &CommonArgs {
        &self.measure_args().common
    }

    fn run(&self) -> Result<ExitCode, Failure> {
        run(self)
    }
}

fn run<C: MeasureCommand>(command: &C) -> Result<ExitCode, Failure> {
    let args = command.measure_args();
    args.check_resume()?;
    let resumed = args.resume.as_deref().map(resume::read::<C>).transpose()?;
    let checked = Checked::new(command, resumed.as_ref())?;
    let page = args.html.clone().map_or(Page::BesideResults, Page::At);
    // The page is checked again before it is written, but a failure is better before the
    // measurement.
    page.check()?;
    if let Keep::At(out) = args.keep() {
        Appender::check(out)?;
        draft::check_folder(out, "the results")?;
    }
    if let Some(csv) = command.csv() {
        Appender::check(csv)?;
        draft::probe(csv, "the pairs")?;
    }
    if let Some((path, results)) = args.resume.as_deref().zip(resumed.as_ref()) {
        resume::refuse_contradictions(path, results, &checked)?;
    }
    let simulated = match &resumed {
        Some(results) => options::simulated_machine(&results.plan),
        None => checked.common.simulated_machine,
    };
    let mut testbed = Testbed::prepare(args, &checked.common, simulated)?;
    let mut results = match resumed {
        Some(results) => results,
        None => Results::empty(testbed.machine.clone(), plan::make(&checked, &testbed)?),
    };
    if let Some(path) = &args.resume {
        resume::validate(path, &results, &testbed)?;
    }
    if args.plan {
        preview::print_plan(&results, testbed.rig.now().unix_ns);
        return Ok(ExitCode::SUCCESS);
    }
    let mut output = match &args.resume {
        Some(path) => Output::resume(path, &page, &results)?,
        None if testbed.machine.synthetic => {
            return Err(Failure::refused("with --sysfs, a run can be planned but not measured")
                .hint("add --plan, or omit --sysfs"));
        }
        None => {
            let out = match args.keep() {
                Keep::Nothing => None,
                Keep::At(out) => Some(out.to_path_buf()),
                Keep::InFolder => Some(kept::new_file(C::NAME, &testbed.machine.run)?),
            };
            Output::create(out.as_deref(), &page, &results)?
        }
    };
    // Notes are printed and then dropped, because the page of the completed file need not repeat
    // them.
    let notes = std::mem::take(&mut results.notes);
    if !args.quiet {
        notes.iter().for_each(|note| console::note(note));
    }
    let outcome = session::measure(&mut testbed, &mut results, &mut output.appender, args)?;
    if let Some(csv) = command.csv() {
        draft::replace(csv, "the pairs", &matrix_csv(&results.records()))?;
    }
    output.close::<C>(&results, outcome, args.quiet)?;
    match outcome {
        Outcome::Interrupted => Ok(ExitCode::from(130)),
        Outcome::Complete if results.nothing_left() => Err(nothing_left(&results)),
        Outcome::Complete => match no_recommendation(&results, &results.records()) {
            None => Ok(ExitCode::SUCCESS),
            Some(why) => Err(Failure::refused(why.to_string().trim_end_matches('.'))
                .hint("allow more CPU time or losses, or measure at a lower rate")),
        },
    }
}

/// For a run in which every row was left out because of errors.
fn nothing_left(results: &Results) -> Failure {
    let [first, ..] = results.strikes.as_slice() else { unreachable!("rows were given up") };
    let (name, why) = (first.name(&results.plan), &first.what);
    Failure::run(format!("nothing was measured: every row was left out, first {name}: {why}"))
}

#[cfg(test)]
pub(crate) fn plan_options<C: MeasureCommand>(line: &str) -> serde_json::Value {
    let declaration = crate::scenario::with_scenarios(C::augment_args(clap::Command::new(C::NAME)));
    let words = line.split_whitespace();
    let matches = declaration.no_binary_name(true).try_get_matches_from(words).unwrap();
    let command = C::from_arg_matches(&matches).unwrap();
    serde_json::to_value(Checked::new(&command, None).unwrap().options).unwrap()
}
