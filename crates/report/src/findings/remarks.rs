//! Remarks on the figures of a run, one line each, the most important first.

use threadtoll_record::{DisturbanceSummary, Grade};

use crate::claims;
use crate::clean::clean;
use crate::disturbance::{sum, too_disturbed};
use crate::label::{list, plural};
use crate::left_out::missing;
use crate::machine::meaning;
use crate::regimes::{Regimes, State};
use crate::screen::Run;
use crate::sentences::{self as say, Sentence};
use crate::units::{share, time};

pub(crate) fn remarks(run: &Run<'_>) -> Vec<Sentence> {
    let remarks = [
        super::run::unfinished(run.results),
        super::run::few_cpus(run.results),
        speeds(run.regimes),
        noisy(run),
        machine(run),
    ];
    remarks.into_iter().flatten().collect()
}

pub(crate) fn pointers(run: &Run<'_>) -> Vec<Sentence> {
    let missing = missing(run.results).len() as u64;
    let left_out = (missing > 0).then(|| say::rows_left_out(plural(missing, "row")));
    left_out.into_iter().chain(claims::tally(run).map(say::claims)).collect()
}

fn speeds(regimes: &Regimes) -> Option<Sentence> {
    let (of_main, main) = (regimes.main()?, time(regimes.main()?.reference_ns));
    if regimes.states.iter().map(|state| state.share).sum::<f64>() < 0.5 {
        return Some(say::restless(main, share(of_main.share)));
    }
    let state = |state: &State| {
        format!("{} for {} of the time", time(state.reference_ns), share(state.share))
    };
    Some(say::speeds(list(&regimes.states.iter().map(state).collect::<Vec<_>>()), main))
}

/// Returns `true` if other work disturbed too many of the measurements.
pub(crate) fn is_noisy(run: &Run<'_>) -> bool {
    too_disturbed(&disturbance(run))
}

fn noisy(run: &Run<'_>) -> Option<Sentence> {
    let all = disturbance(run);
    too_disturbed(&all).then(|| say::noisy(share(f64::from(all.disturbed) / f64::from(all.blocks))))
}

fn disturbance(run: &Run<'_>) -> DisturbanceSummary {
    sum(run.records.iter().map(|record| &record.disturbance))
}

fn machine(run: &Run<'_>) -> Option<Sentence> {
    let machine = &run.results.machine;
    let worst = machine.warnings.first().filter(|_| machine.grade >= Grade::C)?;
    Some(say::machine(clean(&worst.code).replace('-', " "), meaning(machine.grade)))
}
