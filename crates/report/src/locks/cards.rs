//! Cards: the knee, and the number of threads worth having.

use std::collections::BTreeMap;

use threadtoll_record::{LockSubject, Record};

use super::card::Card;
use super::findings::enough_threads;
use super::{Axis, Row, Sweep, sweeps, within};
use crate::label::plural;
use crate::units::{digits, digits_range, share, time};

/// Largest speed-up, relative to fewer threads, that does not count as a gain.
const GOOD_ENOUGH: f64 = 1.05;

/// Cards for the first lock.
pub(crate) fn cards(of_one: &[Record], all: &[Record]) -> Vec<Card> {
    let all = sweeps(all);
    let sweeps = within(&all, of_one);
    let mut cards = Vec::new();
    cards.extend(sweeps.first().and_then(knee));
    let of_all_tasks = |sweep: &Sweep<'_>| {
        enough_threads(sweep).map(|enough| Card {
            figure: plural(enough.threads.into(), "thread"),
            heading: format!("worth having, {}", sweep.lock()),
            detail: format!(
                "all tasks in {}; more, up to {} measured, gain less than 5%",
                enough.time, enough.most
            ),
        })
    };
    cards.extend(sweeps.first().and_then(of_all_tasks));
    cards.extend(sweeps.first().and_then(worth));
    cards
}

/// The rows by hold time, or by interval, in ascending order.
fn columns<'s, 'a>(sweep: &'s Sweep<'a>) -> Vec<Vec<&'s Row<'a>>> {
    let mut columns: BTreeMap<(u64, u64), Vec<&Row<'a>>> = BTreeMap::new();
    for row in &sweep.rows {
        columns.entry((row.subject.cycle_ns(), row.subject.hold_ns)).or_default().push(row);
    }
    columns.into_values().collect()
}

/// The number of locks in a striped set; 1 for any other lock.
pub(super) fn locks_of(subject: &LockSubject) -> Option<u32> {
    match subject.lock.strip_prefix("striped/") {
        Some(striped) => striped.split(':').next()?.parse().ok(),
        None => Some(1),
    }
}

/// The number of threads that, together, would keep the lock held all the time; `None` unless the
/// lock admits one thread at a time.
fn knee_of(row: &Row<'_>) -> Option<f64> {
    let subject = row.subject;
    let locks = f64::from(locks_of(subject)?);
    let known = subject.hold_ns > 0 && subject.read_share.is_none();
    known.then(|| locks * subject.cycle_ns() as f64 / subject.hold_ns as f64)
}

/// The column whose knee the numbers of threads reach: of these, the one with the shortest holds.
pub(super) fn focus<'s, 'a>(sweep: &'s Sweep<'a>) -> Option<Vec<&'s Row<'a>>> {
    let most = sweep.rows.iter().map(|row| row.subject.threads).max()?;
    let knee = |column: &[&Row<'_>]| column.first().and_then(|row| knee_of(row));
    let columns = || columns(sweep).into_iter().filter(|column| knee(column).is_some());
    let reached = |column: &Vec<&Row<'_>>| {
        knee(column).is_some_and(|knee| knee > 1.0 && knee <= f64::from(most))
    };
    columns().find(reached).or_else(|| columns().next_back())
}

fn knee(sweep: &Sweep<'_>) -> Option<Card> {
    let row = *focus(sweep)?.first()?;
    let knee = knee_of(row)?;
    let two = match longest_hold_for_two(sweep) {
        Some((row, interval)) => format!(
            "; two threads do more than one up to a hold share of {} ({})",
            share(row.subject.hold_share()),
            digits_range(interval)
        ),
        None => String::new(),
    };
    Some(Card {
        figure: if digits(knee) == "1.00" { "1 thread".into() } else { threads(knee) },
        heading: format!("knee at a hold share of {}", share(row.subject.hold_share())),
        detail: format!("{}: no speed-up is larger than {}{two}", sweep.lock(), digits(knee)),
    })
}

fn threads(number: f64) -> String {
    let whole = (number * 100.0).round() / 100.0;
    if whole.fract() == 0.0 {
        plural(whole as u64, "thread")
    } else {
        format!("{} threads", digits(number))
    }
}

/// The longest hold at which two threads surely do more than one, with their speed-up.
pub(super) fn longest_hold_for_two<'s, 'a>(
    sweep: &'s Sweep<'a>,
) -> Option<(&'s Row<'a>, [f64; 2])> {
    let pairs = sweep.rows.iter().filter(|row| row.subject.threads == 2);
    pairs
        .filter(|_| sweep.axis == Axis::HoldShare)
        .filter_map(|row| Some((row, interval(row)?)))
        .filter(|(_, [low, _])| *low > 1.0)
        .max_by_key(|(row, _)| row.subject.hold_ns)
}

pub(super) fn interval(row: &Row<'_>) -> Option<[f64; 2]> {
    Some(row.contention.speedup_interval95?.map(f64::from))
}

/// The number of threads worth having at the first lock, judged by its speed-ups.
fn worth(sweep: &Sweep<'_>) -> Option<Card> {
    if sweep.rows.iter().any(|row| row.contention.total_s.is_some()) {
        return None;
    }
    match sweep.axis {
        Axis::HoldShare | Axis::None => {
            let column = focus(sweep)?;
            let most = column.iter().map(|row| row.subject.threads).max()?;
            let row = enough(column)?;
            Some(Card {
                figure: plural(row.subject.threads.into(), "thread"),
                heading: format!(
                    "worth having at a hold share of {}",
                    share(row.subject.hold_share())
                ),
                detail: format!(
                    "{}: speed-up {}; more, up to {most} measured, gain less than 5%",
                    sweep.lock(),
                    digits_range(interval(row)?)
                ),
            })
        }
        Axis::Interval => worth_from(sweep),
    }
}

/// The fewest threads that no larger number surely beats by more than the margin.
pub(super) fn enough<'s, 'a>(mut rows: Vec<&'s Row<'a>>) -> Option<&'s Row<'a>> {
    rows.retain(|row| interval(row).is_some());
    rows.sort_by_key(|row| row.subject.threads);
    let good = |nth: usize| {
        let least = interval(rows[nth]).map_or(0.0, |[low, _]| low);
        rows[nth + 1..]
            .iter()
            .filter_map(|row| interval(row))
            .all(|[_, high]| high <= GOOD_ENOUGH * least)
    };
    (0..rows.len().saturating_sub(1)).find(|nth| good(*nth)).map(|nth| rows[nth])
}

/// The shortest interval between acquisitions above which several threads certainly do more than
/// one.
fn worth_from(sweep: &Sweep<'_>) -> Option<Card> {
    let best = |column: &Vec<&'_ Row<'_>>| {
        let several = column.iter().filter(|row| row.subject.threads > 1);
        let better = several.filter_map(|row| interval(row).filter(|[low, _]| *low > 1.0));
        better.max_by(|a, b| a[0].total_cmp(&b[0]))
    };
    let columns = columns(sweep);
    let worth = columns.iter().rev().take_while(|column| best(column).is_some());
    let column = worth.last()?;
    let found = best(column)?;
    let row = column.iter().find(|row| interval(row) == Some(found))?;
    Some(Card {
        figure: plural(row.subject.threads.into(), "thread"),
        heading: format!(
            "worth having from an interval of {} on",
            time(row.subject.cycle_ns() as f64)
        ),
        detail: format!("{}: speed-up {} at this interval", sweep.lock(), digits_range(found)),
    })
}
