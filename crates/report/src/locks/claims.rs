//! Published claims about locks, tested against the cells that can confirm or refute them.
//!
//! Each claim names its experiment. No other file of this crate knows a scenario or a lock by name.

use std::collections::BTreeMap;

use threadtoll_record::{LockSubject, Spread, Work, upper_median};

use super::{Criteria, Row, Sweep};
use crate::claim::{ClaimStatus, counts};
use crate::sentences::{self as say, Sentence};
use crate::units::{digits, digits_range, share, time};

const PRESHING: &str = "J. Preshing (2011)";
const SUKHOVITSKY: &str = "A. Sukhovitsky";

const HOLD_SWEEP: &str = "hold-sweep";
const FREQUENCY_SWEEP: &str = "frequency-sweep";
const POOL: &str = "pool";

struct Claim {
    /// The claim.
    text: &'static str,
    source: &'static str,
    scenario: &'static str,
    /// Returns `true` for the cells to which the claim applies.
    applies: fn(&Row<'_>) -> bool,
    figure: Figure,
    /// The limits between which the figure should lie.
    limits: fn(&Row<'_>) -> [f64; 2],
    /// Distinguishes the cells to which the claim applies; `None` if there is one of each lock.
    case: Option<fn(&LockSubject) -> String>,
}

/// The figure that a claim is about.
#[derive(Clone, Copy)]
enum Figure {
    Speedup,
    /// Time for all tasks, divided by their number, in milliseconds.
    TaskMs,
}

impl Figure {
    /// The figure with its interval.
    fn of(self, row: &Row<'_>) -> Option<(f64, [f64; 2])> {
        let Row { contention, subject, .. } = row;
        match self {
            Figure::Speedup => {
                Some((contention.speedup?.get(), contention.speedup_interval95?.map(f64::from)))
            }
            Figure::TaskMs => {
                let tasks = subject.tasks? as f64;
                let per_task = |total_s: f64| total_s * 1e3 / tasks;
                let interval = contention.total_s_interval95?.map(f64::from);
                Some((per_task(contention.total_s?.get()), interval.map(per_task)))
            }
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Figure::Speedup => "",
            Figure::TaskMs => " ms",
        }
    }
}

fn threads(subject: &LockSubject) -> String {
    format!("{} threads", subject.threads)
}

fn threads_and_share(subject: &LockSubject) -> String {
    format!("{}, {}", threads(subject), share(subject.hold_share()))
}

/// "Almost perfect", as speed-up per thread.
const ALMOST_PERFECT: f64 = 0.95;
/// 3.1 µs, with tolerance for rounding to whole work units.
const SHORT_NS: std::ops::Range<u64> = 3_000..3_300;
/// 15,000 acquisitions per second of work, with the same tolerance.
const USUAL_NS: std::ops::Range<u64> = 66_000..67_400;
/// Most threads in the article of 2011.
const MOST_THREADS: u32 = 4;

/// Returns `true` for a cell as in the article of 2011: threads that compute for exponential times,
/// each on a CPU of its own.
fn as_preshing(row: &Row<'_>) -> bool {
    let subject = row.subject;
    subject.work == Work::Spin
        && subject.spread == Spread::Exponential
        && (2..=MOST_THREADS).contains(&subject.threads)
        && !row.marks().oversubscribed
}

/// The same, of its sweep of hold shares.
fn in_hold_sweep(row: &Row<'_>) -> bool {
    as_preshing(row) && USUAL_NS.contains(&row.subject.cycle_ns())
}

const CLAIMS: &[Claim] = &[
    Claim {
        text: "speed-up of 1.5 (1.4 to 1.6) for two threads at a hold share of 50%",
        source: PRESHING,
        scenario: HOLD_SWEEP,
        applies: |row| {
            in_hold_sweep(row) && row.subject.threads == 2 && near(row.subject.hold_share(), 0.5)
        },
        figure: Figure::Speedup,
        limits: |_| [1.4, 1.6],
        case: None,
    },
    Claim {
        text: "almost perfect speed-up, at least 0.95 a thread, up to a hold share of 10%",
        source: PRESHING,
        scenario: HOLD_SWEEP,
        applies: |row| in_hold_sweep(row) && short(row.subject.hold_share()),
        figure: Figure::Speedup,
        limits: |row| [ALMOST_PERFECT * f64::from(row.subject.threads), f64::INFINITY],
        case: Some(threads_and_share),
    },
    Claim {
        text: "speed-up below 1 above a hold share of 90%",
        source: PRESHING,
        scenario: HOLD_SWEEP,
        applies: |row| in_hold_sweep(row) && long(row.subject.hold_share()),
        figure: Figure::Speedup,
        limits: |_| [0.0, 1.0],
        case: Some(threads_and_share),
    },
    Claim {
        text: "speed-up of at least 1.5 for two threads that each take a short lock every 3.1 µs",
        source: PRESHING,
        scenario: FREQUENCY_SWEEP,
        applies: |row| {
            as_preshing(row)
                && row.subject.threads == 2
                && SHORT_NS.contains(&row.subject.cycle_ns())
        },
        figure: Figure::Speedup,
        limits: |_| [1.5, f64::INFINITY],
        case: None,
    },
    Claim {
        text: "speed-up of 10 (at least 9.5) with 10 to 11 threads at a hold share of 5%, where Amdahl’s law asks for 20",
        source: SUKHOVITSKY,
        scenario: POOL,
        applies: |row| {
            (10..=11).contains(&row.subject.threads) && near(row.subject.hold_share(), 0.05)
        },
        figure: Figure::Speedup,
        limits: |_| [9.5, f64::INFINITY],
        case: Some(threads),
    },
    Claim {
        text: "6.25 ms a task (5.94 to 6.56) with 20 threads or more, each task holding the lock for 5 ms of sleep",
        source: SUKHOVITSKY,
        scenario: POOL,
        applies: |row| as_sukhovitsky(row) && row.subject.threads >= 20,
        figure: Figure::TaskMs,
        limits: |_| [5.94, 6.56],
        case: Some(threads),
    },
    Claim {
        text: "105.7 ms a task (100.4 to 111.0) with one thread: the 6.25 ms, and 99.45 ms outside the lock for 95 ms of sleep",
        source: SUKHOVITSKY,
        scenario: POOL,
        applies: |row| as_sukhovitsky(row) && row.subject.threads == 1,
        figure: Figure::TaskMs,
        limits: |_| [100.4, 111.0],
        case: Some(threads),
    },
];

/// Returns `true` for a cell as in Sukhovitsky’s article: a task sleeps for 5 ms under the lock
/// and for 95 ms outside.
fn as_sukhovitsky(row: &Row<'_>) -> bool {
    row.subject.work == Work::Sleep
        && (row.subject.hold_ns, row.subject.think_ns) == (5_000_000, 95_000_000)
}

/// Tolerance of shares, which are kept in whole nanoseconds.
const TOLERANCE: f64 = 0.005;

fn near(share: f64, wanted: f64) -> bool {
    (share - wanted).abs() < TOLERANCE
}

fn short(share: f64) -> bool {
    share > 0.0 && share < 0.1 + TOLERANCE
}

fn long(share: f64) -> bool {
    share > 0.9 + TOLERANCE
}

/// The cost of locks in its experiment, and a sentence for each claim with a measured cell.
pub(super) fn claims(sweeps: &[Sweep<'_>]) -> Vec<Sentence> {
    let mut findings: Vec<Sentence> = uncontended(sweeps).into_iter().collect();
    findings.extend(CLAIMS.iter().filter_map(|claim| finding(claim, sweeps)));
    findings
}

/// Returns `true` for one lock that admits one thread at a time: no counter, no stripes, no
/// readers.
fn is_exclusive(sweep: &Sweep<'_>) -> bool {
    let Criteria { lock, read_share, .. } = sweep.criteria;
    read_share.is_none() && !is_counter(lock) && !lock.starts_with("striped")
}

fn finding(claim: &Claim, sweeps: &[Sweep<'_>]) -> Option<Sentence> {
    let mut answers = Vec::new();
    for sweep in sweeps
        .iter()
        .filter(|sweep| sweep.criteria.scenario == claim.scenario && is_exclusive(sweep))
    {
        let rows: Vec<&Row<'_>> = sweep.rows.iter().filter(|row| (claim.applies)(row)).collect();
        if rows.len() > MAX_ANSWERS {
            answers.extend(summary(claim, sweep, &rows));
        } else {
            answers.extend(rows.into_iter().filter_map(|row| answer(claim, sweep, row)));
        }
    }
    (!answers.is_empty()).then(|| say::claim(claim.source, claim.text, answers.join("; ")))
}

/// Most cells of a lock that are named one by one.
const MAX_ANSWERS: usize = 3;

/// `std-mutex yes in 7, no in 6 of 13 cells, for example: std-mutex, 2 threads, 10% yes (1.97)`.
fn summary(claim: &Claim, sweep: &Sweep<'_>, rows: &[&Row<'_>]) -> Option<String> {
    let statuses: Vec<ClaimStatus> = rows.iter().filter_map(|row| status(claim, row)).collect();
    // The last row with the fewest threads has the longest holds.
    let fewest = rows.iter().map(|row| row.subject.threads).min()?;
    let example = rows.iter().rfind(|row| row.subject.threads == fewest)?;
    Some(format!(
        "{} {} of {} cells, for example {}",
        sweep.lock(),
        counts(&statuses),
        statuses.len(),
        answer(claim, sweep, example)?
    ))
}

fn status(claim: &Claim, row: &Row<'_>) -> Option<ClaimStatus> {
    let (_, interval) = claim.figure.of(row)?;
    Some(ClaimStatus::of(interval, (claim.limits)(row)))
}

/// `std-mutex, 4 threads, 10% yes (3.91, 3.88–3.93)`.
fn answer(claim: &Claim, sweep: &Sweep<'_>, row: &Row<'_>) -> Option<String> {
    let (figure, interval) = claim.figure.of(row)?;
    let mut cell = vec![sweep.lock()];
    cell.extend((row.subject.work == Work::Sleep).then(|| "sleeping".into()));
    cell.extend(claim.case.map(|case| case(row.subject)));
    Some(format!(
        "{} {} ({}, {}{}{})",
        cell.join(", "),
        status(claim, row)?.label(),
        digits(figure),
        digits_range(interval),
        claim.figure.unit(),
        if row.marks().disturbed { ", disturbed" } else { "" }
    ))
}

/// What the calibrations found for a lock and an unlock that nobody waits for.
fn uncontended(sweeps: &[Sweep<'_>]) -> Option<Sentence> {
    let mut pairs_ns: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for sweep in sweeps.iter().filter(|sweep| sweep.criteria.scenario == FREQUENCY_SWEEP) {
        let calibrated =
            sweep.rows.iter().filter_map(|row| row.contention.predicted.as_ref()?.from);
        let found = calibrated.map(|from| from.pair_ns.get());
        pairs_ns.entry(sweep.lock()).or_default().extend(found.filter(|ns| *ns > 0.0));
    }
    let published = pairs_ns.get("std-mutex").is_some_and(|found| !found.is_empty());
    let published = published.then(|| say::uncontended_published(PRESHING, "23.5 ns"));
    let (counters, locks): (Vec<_>, Vec<_>) =
        pairs_ns.into_iter().partition(|(lock, _)| is_counter(lock));
    let costs = |of: Vec<(String, Vec<f64>)>| {
        let costs: Vec<String> = of.into_iter().filter_map(cost).collect();
        (!costs.is_empty()).then(|| costs.join("; "))
    };
    let locks = costs(locks).map(|locks| say::uncontended(locks).and(published));
    let counters = costs(counters).map(say::uncontended_counters);
    match locks {
        Some(locks) => Some(locks.and(counters)),
        None => counters,
    }
}

/// `std-mutex 16.3 ns, 15.2 ns to 18.0 ns`.
fn cost((lock, mut found): (String, Vec<f64>)) -> Option<String> {
    let middle = upper_median(&mut found, f64::total_cmp)?;
    let least = found.iter().copied().reduce(f64::min)?;
    let most = found.iter().copied().reduce(f64::max)?;
    Some(format!("{lock} {}, {} to {}", time(middle), time(least), time(most)))
}

fn is_counter(lock: &str) -> bool {
    lock.starts_with("counter-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_in_whole_nanoseconds_are_what_was_asked_for() {
        let of = |hold_ns: f64| hold_ns / 66_667.0;
        assert!(short(of(6_667.0)) && short(of(3_333.0)) && !short(0.0) && !short(of(13_333.0)));
        assert!(!long(of(60_000.0)) && long(of(63_334.0)) && long(of(66_667.0)));
        assert!(near(of(33_333.0), 0.5) && !near(of(40_000.0), 0.5));
    }

    #[test]
    fn calibrations_have_a_range_and_no_interval() {
        let told = cost(("spin".into(), vec![16.0, 15.2, 18.0]));
        assert_eq!(told.as_deref(), Some("spin 16.0 ns, 15.2 ns to 18.0 ns"));
        assert_eq!(cost(("spin".into(), Vec::new())), None);
        assert!(is_counter("counter-atomic") && !is_counter("std-mutex"));
    }
}
