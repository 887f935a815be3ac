use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use threadtoll_lab::{Outcome, run as run_plan};
use threadtoll_record::file::{Appender, Results};
use threadtoll_record::{Line, Record};

use super::args::MeasureArgs;
use super::testbed::Testbed;
use super::{preview, share};
use crate::console::{self, StdStream};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::tables::{print_findings, print_screen, print_tables};

pub(super) fn measure(
    testbed: &mut Testbed,
    results: &mut Results,
    appender: &mut Option<Appender>,
    args: &MeasureArgs,
) -> Result<Outcome, Failure> {
    if !args.quiet {
        preview::announce(&testbed.machine, results, testbed.rig.now().unix_ns);
    }
    let stop = stop_on_signals()?;
    let json = args.json;
    let mut progress = Progress::new(
        args.quiet,
        results.plan.processes,
        Box::new(move |record| {
            if json {
                print_record(record);
            }
        }),
    );
    let mut launch = share::launcher(&results.plan, Arc::clone(&stop));
    let outcome = run_plan(&mut *testbed.rig, &mut launch, results, appender, &mut progress, &stop);
    progress.finish();
    let outcome = outcome.map_err(|error| match appender {
        Some(appender) => Failure::from(error).or_hint(|| {
            format!(
                "earlier measurements are kept in {}; complete it with --resume",
                appender.path().display()
            )
        }),
        None => error.into(),
    })?;
    let records = results.records();
    if !records.is_empty() {
        let to = if json { StdStream::Err } else { StdStream::Out };
        if args.details {
            print_tables(results, &records, to);
            print_findings(results, &records, to);
        } else {
            print_screen(results, &records, to);
        }
    }
    Ok(outcome)
}

/// Returns a flag that the first signal sets. The second signal ends the program at once, because a
/// block may hang.
fn stop_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| Failure::run(format!("cannot listen for signals: {error}")))?;
    }
    Ok(stop)
}

fn print_record(record: &Record) {
    match serde_json::to_string(&Line::Record(Box::new(record.clone()))) {
        Ok(text) => console::data(&text),
        Err(error) => unreachable!("a record has only text keys, so JSON can hold it: {error}"),
    }
}
