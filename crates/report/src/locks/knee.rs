//! The knee of a lock (the number of threads that saturates the lock), and the number of threads
//! worth having.

use std::collections::BTreeMap;

use super::{Axis, Row, Sweep};

/// More threads count as a gain only if they multiply the speed-up by more than this.
const GOOD_ENOUGH: f64 = 1.05;

/// Columns of rows with equal times between acquisitions and equal hold times, shortest times
/// first.
fn columns<'s, 'a>(sweep: &'s Sweep<'a>) -> Vec<Vec<&'s Row<'a>>> {
    let mut columns: BTreeMap<(u64, u64), Vec<&Row<'a>>> = BTreeMap::new();
    for row in &sweep.rows {
        columns.entry((row.subject.cycle_ns(), row.subject.hold_ns)).or_default().push(row);
    }
    columns.into_values().collect()
}

/// The smallest number of threads that could keep the lock held all the time. `None` if readers
/// share the lock, or if holds take no time.
fn knee_of(row: &Row<'_>) -> Option<f64> {
    let subject = row.subject;
    let locks = f64::from(subject.stripes()?);
    let known = subject.hold_ns > 0 && subject.read_share.is_none();
    known.then(|| locks * subject.cycle_ns() as f64 / subject.hold_ns as f64)
}

/// The first column whose knee is within the measured numbers of threads. If there is none, the
/// last column that has a knee.
pub(super) fn focus<'s, 'a>(sweep: &'s Sweep<'a>) -> Option<Vec<&'s Row<'a>>> {
    let most = sweep.rows.iter().map(|row| row.subject.threads).max()?;
    let knee = |column: &[&Row<'_>]| column.first().and_then(|row| knee_of(row));
    let columns = || columns(sweep).into_iter().filter(|column| knee(column).is_some());
    let reached = |column: &Vec<&Row<'_>>| {
        knee(column).is_some_and(|knee| knee > 1.0 && knee <= f64::from(most))
    };
    columns().find(reached).or_else(|| columns().next_back())
}

/// The row with the longest hold, or the shortest time between acquisitions, at which two threads
/// certainly do more work than one.
pub(super) fn for_two<'s, 'a>(sweep: &'s Sweep<'a>) -> Option<&'s Row<'a>> {
    let pairs = sweep.rows.iter().filter(|row| row.subject.threads == 2);
    let better = pairs.filter(|row| interval(row).is_some_and(|[low, _]| low > 1.0));
    match sweep.axis {
        Axis::HoldShare => better.max_by_key(|row| row.subject.hold_ns),
        Axis::Interval => better.min_by_key(|row| row.subject.cycle_ns()),
        Axis::None => None,
    }
}

pub(super) fn interval(row: &Row<'_>) -> Option<[f64; 2]> {
    Some(row.contention.speedup_interval95?.map(f64::from))
}

/// The row with the smallest number of threads such that no larger number can be faster by more
/// than a factor of [`GOOD_ENOUGH`].
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
