//! The screen of locks: the number of threads worth having.

use std::collections::BTreeSet;

use super::findings::{enough_threads, predicted};
use super::knee::{enough, focus, for_two, interval};
use super::{Axis, Row, Sweep, columns, map, sweeps, within};
use crate::label::plural;
use crate::screen::{Picture, Rows, Run, Screen, spread};
use crate::sentences::{self as say, Sentence};
use crate::table::{Cell, Column, Label, Section};
use crate::units::{digits_range, ratio, share, time};

/// Maximum number of columns, one for each number of threads.
const MAX_COLUMNS: usize = 9;
/// A table shows the columns up to this rank.
const MAX_RANK: u8 = 4;

pub(crate) fn screen(run: &Run<'_>) -> Option<Screen> {
    let all = sweeps(run.records);
    let of_one = within(&all, run.of_one);
    let shown = if of_one.is_empty() { &all } else { &of_one };
    let first = shown.first()?;
    let mut answer = Vec::new();
    answer.extend(shown.iter().take(2).filter_map(worth));
    // The table of several locks shows one hold share only.
    let for_two = if shown.len() == 1 { for_two(first) } else { None };
    answer.extend(for_two.map(|row| match first.axis {
        Axis::Interval => say::two_threads_from(first.lock(), time(row.subject.cycle_ns() as f64)),
        _ => say::two_threads_up_to(first.lock(), share(row.subject.hold_share())),
    }));
    Some(Screen {
        title: format!("How many threads a lock is good for: {}", first.criteria.scenario),
        answer,
        picture: match shown.as_slice() {
            [only] => of_one_lock(only),
            several => of_locks(several),
        },
        remarks: predicted(&all).into_iter().collect(),
        ..Screen::default()
    })
}

/// The number of threads worth having: beyond it, the gain is certainly below 5%.
fn worth(sweep: &Sweep<'_>) -> Option<Sentence> {
    if let Some(enough) = enough_threads(sweep) {
        let threads = plural(enough.threads.into(), "thread");
        return Some(say::enough_threads(sweep.lock(), threads, enough.time, enough.most));
    }
    let mut column = focus(sweep)?;
    column.retain(|row| row.contention.speedup.is_some());
    let most = column.iter().map(|row| row.subject.threads).max()?;
    let held = held(column.first()?, sweep.axis);
    let speedup = |row: &Row<'_>| row.contention.speedup.map_or(0.0, f64::from);
    let threads = |row: &Row<'_>| row.subject.threads;
    if let Some((row, within)) = enough(column.clone()).and_then(|row| Some((row, interval(row)?)))
    {
        let speedup = format!("{}, {}", ratio(speedup(row)), digits_range(within));
        let threads = plural(threads(row).into(), "thread");
        return Some(say::worth_having(sweep.lock(), held, threads, speedup, most));
    }
    let several = column.len() > 1;
    let best = column.into_iter().max_by(|a, b| speedup(a).total_cmp(&speedup(b)))?;
    let (threads, speedup) = (threads(best), ratio(speedup(best)));
    // One figure tells nothing about the others.
    (most > 1 && several).then(|| say::did_most(sweep.lock(), held, most, threads, speedup))
}

fn of_one_lock(sweep: &Sweep<'_>) -> Option<Picture> {
    match map::map(sweep).filter(|map| map.columns.len() > 1) {
        Some(map) => Some(Picture::SpeedUp(map)),
        None => {
            let columns = columns::columns(sweep).into_iter();
            let columns = columns.filter(|column| column.rank().is_some_and(|it| it <= MAX_RANK));
            let label = |row: &Row<'_>| row.label(sweep.axis);
            let section = Section::new("", "row", columns.collect(), &sweep.rows, label);
            Rows::first(section, "row")
        }
    }
}

/// Such as `held 10% of the time, taken every 31.0 µs`.
fn held(row: &Row<'_>, axis: Axis) -> String {
    let held = format!("held {} of the time", share(row.subject.hold_share()));
    match axis {
        Axis::Interval => format!("{held}, taken every {}", time(row.subject.cycle_ns() as f64)),
        _ => held,
    }
}

/// The rows from which the answer about one lock is taken.
struct Line<'r, 'a> {
    name: String,
    rows: Vec<&'r Row<'a>>,
}

fn of_locks(sweeps: &[Sweep<'_>]) -> Option<Picture> {
    let line = |sweep| Some(Line { name: Sweep::lock(sweep), rows: column_of(sweep)? });
    let mut lines: Vec<Line<'_, '_>> = sweeps.iter().filter_map(line).collect();
    let best = |line: &Line<'_, '_>| {
        let speedups = line.rows.iter().filter_map(|row| row.contention.speedup);
        speedups.map(|speedup| speedup.get()).fold(0.0, f64::max)
    };
    lines.sort_by(|a, b| best(b).total_cmp(&best(a)));
    let rows = || lines.iter().flat_map(|line| &line.rows);
    let threads: BTreeSet<u32> = rows().map(|row| row.subject.threads).collect();
    let threads: Vec<u32> = threads.into_iter().collect();
    let shown = spread(threads.len(), MAX_COLUMNS).into_iter().map(|nth| threads[nth]);
    let column = |threads: u32| {
        Column::new("speed-up with threads", threads.to_string(), 0, move |line: &Line<'_, '_>| {
            let row = line.rows.iter().find(|row| row.subject.threads == threads);
            Cell::figure(row.and_then(|row| row.contention.speedup), ratio)
        })
        .main()
    };
    let axis = sweeps.first().map_or(Axis::None, |sweep| sweep.axis);
    let held = rows().next().map(|row| held(row, axis)).filter(|held| !held.is_empty());
    let held = held.map_or_else(String::new, |held| format!("{held}; "));
    let heading = format!("{held}1.00× is the work of one thread that never waits");
    let columns = shown.map(column).collect();
    let section = Section::new(heading, "lock", columns, &lines, |line| Label::new(&line.name));
    Rows::first(section, "lock")
}

fn column_of<'r, 'a>(sweep: &'r Sweep<'a>) -> Option<Vec<&'r Row<'a>>> {
    match sweep.axis {
        Axis::None => Some(sweep.rows.iter().collect()),
        Axis::HoldShare | Axis::Interval => focus(sweep),
    }
}
