//! Findings on locks.

use threadtoll_record::Record;

use super::claims::claims;
use super::{Axis, Row, Sweep, sweeps};
use crate::label::plural;
use crate::units::{UNKNOWN, ratio, share, time};

/// Largest total time, relative to the shortest, that counts as equally good.
const GOOD_ENOUGH: f64 = 1.05;

pub(crate) fn findings(records: &[Record]) -> Vec<String> {
    let sweeps = sweeps(records);
    let mut findings: Vec<String> = sweeps.iter().flat_map(of_sweep).collect();
    findings.extend(claims(&sweeps));
    findings.extend(agreement(&sweeps));
    findings
}

fn of_sweep(sweep: &Sweep<'_>) -> Vec<String> {
    let mut findings = Vec::new();
    findings.extend(best(sweep));
    findings.extend(enough_threads(sweep));
    findings.extend(worse_than_one_thread(sweep));
    findings
}

fn threads(sweep: &Sweep<'_>, row: &Row<'_>) -> String {
    let threads = row.subject.threads;
    match sweep.axis {
        Axis::HoldShare => {
            let share = share(row.subject.hold_share());
            format!("{threads} threads that each hold it for {share} of their time")
        }
        Axis::Interval => {
            let interval = time(row.subject.cycle_ns() as f64);
            format!("{threads} threads that each take it every {interval}")
        }
        Axis::None => format!("{threads} threads"),
    }
}

fn with_several_threads<'s>(sweep: &'s Sweep<'_>) -> impl Iterator<Item = &'s Row<'s>> {
    sweep.rows.iter().filter(|row| row.subject.threads > 1)
}

fn best(sweep: &Sweep<'_>) -> Option<String> {
    let speedups =
        with_several_threads(sweep).filter_map(|row| Some((row, row.contention.speedup?.get())));
    let (row, speedup) = speedups.max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(format!(
        "{}: {} reach the highest speed-up, {}.",
        sweep.lock(),
        threads(sweep, row),
        ratio(speedup)
    ))
}

/// The fewest threads of a pool that are about as good as the best number.
fn enough_threads(sweep: &Sweep<'_>) -> Option<String> {
    let totals = || {
        sweep
            .rows
            .iter()
            .filter_map(|row| Some((row.subject.threads, row.contention.total_s?.get())))
    };
    let best = totals().map(|(_, total)| total).min_by(f64::total_cmp)?;
    let (threads, total) = totals()
        .filter(|(_, total)| *total <= GOOD_ENOUGH * best)
        .min_by_key(|(threads, _)| *threads)?;
    let most = totals().map(|(threads, _)| threads).max()?;
    (threads < most).then(|| {
        format!(
            "{}: all tasks take {} with {}; more threads gain less than 5%.",
            sweep.lock(),
            time(total * 1e9),
            plural(threads.into(), "thread")
        )
    })
}

fn worse_than_one_thread(sweep: &Sweep<'_>) -> Option<String> {
    // Claimed only if the whole interval lies below one.
    let worse: Vec<&Row<'_>> = with_several_threads(sweep)
        .filter(|row| row.contention.speedup_interval95.is_some_and(|[_, high]| high < 1.0))
        .collect();
    let first = worse.first()?;
    let lock = sweep.lock();
    let threads = threads(sweep, first);
    let speedup =
        first.contention.speedup.map_or_else(|| UNKNOWN.into(), |speedup| ratio(speedup.get()));
    Some(match worse.len() {
        1 => format!("{lock}: one thread alone does better than {threads} ({speedup})."),
        count => format!(
            "{lock}: one thread alone does better than several in {count} of {} cells, for example than {threads} ({speedup}).",
            with_several_threads(sweep).count()
        ),
    })
}

fn agreement(sweeps: &[Sweep<'_>]) -> Option<String> {
    let errors: Vec<(bool, f64)> = sweeps
        .iter()
        .flat_map(|sweep| &sweep.rows)
        .filter(|row| !row.marks().oversubscribed)
        .filter_map(|row| Some((row.marks().disturbed, row.error()?.abs())))
        .collect();
    let undisturbed: Vec<f64> =
        errors.iter().filter(|(disturbed, _)| !disturbed).map(|(_, error)| *error).collect();
    if errors.is_empty() {
        return None;
    }
    if undisturbed.is_empty() {
        return Some(format!(
            "All {} predicted cells were disturbed, so the predictions cannot be judged.",
            errors.len()
        ));
    }
    let mean = undisturbed.iter().sum::<f64>() / undisturbed.len() as f64;
    let worst = undisturbed.iter().copied().fold(0.0, f64::max);
    Some(format!(
        "Predictions were off by {} on average and {} at worst in the {} of {} cells that were not disturbed (without oversubscribed cells).",
        share(mean),
        share(worst),
        undisturbed.len(),
        errors.len()
    ))
}
