//! What to know of the figures of a run, in a line each, the most important first.

use threadtoll_record::{Grade, Record, file::Results};

use crate::claims;
use crate::clean::clean;
use crate::disturbance::{sum, too_disturbed};
use crate::label::{list, plural};
use crate::left_out::missing;
use crate::machine::meaning;
use crate::regimes::Regimes;
use crate::sentences::{self as say, Sentence};
use crate::units::{share, time};

pub(crate) fn remarks(results: &Results, records: &[Record], regimes: &Regimes) -> Vec<Sentence> {
    let remarks = [
        super::run::unfinished(results),
        super::run::few_cpus(results),
        speeds(regimes),
        noisy(records),
        machine(results),
        left_out(results),
        claims::tally(&regimes.all_records(records)).map(say::claims),
    ];
    remarks.into_iter().flatten().collect()
}

fn speeds(regimes: &Regimes) -> Option<Sentence> {
    let main = time(regimes.main()?.reference_ns);
    let state = |state: &crate::regimes::State| {
        format!("{} in {} of the blocks", time(state.reference_ns), share(state.share))
    };
    Some(say::speeds(list(&regimes.states.iter().map(state).collect::<Vec<_>>()), main))
}

fn noisy(records: &[Record]) -> Option<Sentence> {
    let all = sum(records.iter().map(|record| &record.disturbance));
    too_disturbed(&all).then(|| say::noisy(share(f64::from(all.disturbed) / f64::from(all.blocks))))
}

/// The worst warning, and what it means for the figures.
fn machine(results: &Results) -> Option<Sentence> {
    let machine = &results.machine;
    let worst = machine.warnings.first().filter(|_| machine.grade >= Grade::C)?;
    Some(say::machine(clean(&worst.code).replace('-', " "), meaning(machine.grade)))
}

fn left_out(results: &Results) -> Option<Sentence> {
    let missing = missing(results).len() as u64;
    (missing > 0).then(|| say::rows_left_out(plural(missing, "row")))
}
