//! The ladder's rows: the records of one variant of a mechanism, its placements side by side.

use std::borrow::Cow;
use std::collections::BTreeMap;

use threadtoll_record::{Cell, Layout, Neighbour, Pause, Placement, Record, Relation};

use crate::clean::clean;
use crate::experiment::is_latency;
use crate::label::cpus;
use crate::merge::merged;

/// A row of the ladder.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    /// What the row is, fit to be shown.
    pub(crate) label: String,
    /// Its records in the order of [`Placement::ALL`].
    sides: [Option<Cow<'a, Record>>; 3],
}

impl Row<'_> {
    /// The record of one placement.
    pub(crate) fn record(&self, placement: Placement) -> Option<&Record> {
        self.sides[index(placement)].as_deref()
    }

    /// The record that stands for the row: of the first placement, pinned before the others, that
    /// has a median.
    pub(crate) fn main(&self) -> Option<&Record> {
        let known = self.sides.iter().flatten().find(|record| record.one_way_p50().is_some());
        known.or_else(|| self.sides.iter().flatten().next()).map(|record| &**record)
    }

    /// The one-way median of that record.
    pub(crate) fn p50(&self) -> Option<f64> {
        self.main()?.one_way_p50()
    }
}

fn index(placement: Placement) -> usize {
    match placement {
        Placement::Pinned => 0,
        Placement::SameCpu => 1,
        Placement::Free => 2,
    }
}

/// Everything of a cell but its placement.
type Variant<'a> = (&'a str, u64, Option<Layout>, Option<Pause>, bool, Option<Neighbour>);

/// The rows of the ladder, cheapest first; those without a median come last.
///
/// A cell that was measured in several groups, as the reference is, is one record here: see
/// [`merged`]. Pairs of CPUs beyond the first of a variant become rows of their own.
pub(crate) fn rows(records: &[Record]) -> Vec<Row<'_>> {
    let mut cells: BTreeMap<&Cell, Vec<&Record>> = BTreeMap::new();
    for record in records.iter().filter(|record| is_latency(record)) {
        cells.entry(&record.cell).or_default().push(record);
    }
    let mut variants: BTreeMap<Variant<'_>, [Vec<Cow<'_, Record>>; 3]> = BTreeMap::new();
    for (cell, found) in cells {
        let variant = (
            cell.name(),
            cell.payload_bytes,
            cell.line,
            cell.pause,
            cell.keep_awake,
            cell.neighbour,
        );
        variants.entry(variant).or_default()[index(cell.placement)].push(merged(&found));
    }
    let mut rows = Vec::new();
    for mut sides in variants.into_values() {
        let several = sides.iter().any(|side| side.len() > 1);
        sides.iter_mut().for_each(|side| side.reverse());
        loop {
            let sides = sides.each_mut().map(Vec::pop);
            let Some(first) = sides.iter().flatten().next() else { break };
            let mut label = clean(&first.cell.label());
            if several {
                label.push_str(&format!(", {}", cpus(&first.cell.cpus)));
            }
            rows.push(Row { label, sides });
        }
    }
    rows.sort_by(|a, b| {
        let key = |row: &Row<'_>| row.p50().unwrap_or(f64::INFINITY);
        key(a).total_cmp(&key(b)).then_with(|| a.label.cmp(&b.label))
    });
    rows
}

/// The cheapest one-way median between two threads, which the ladder takes its multiples of: among
/// the pinned ones where there are any.
pub(crate) fn cheapest<'r>(rows: &'r [Row<'_>]) -> Option<&'r Row<'r>> {
    let two =
        |row: &&Row<'_>| row.main().is_some_and(|main| main.cell.relation != Relation::SameThread);
    let positive = |row: &&Row<'_>| row.p50().is_some_and(|p50| p50 > 0.0);
    let pinned =
        |row: &&Row<'_>| row.main().is_some_and(|main| main.cell.placement == Placement::Pinned);
    let find = |wanted: &dyn Fn(&&Row<'_>) -> bool| {
        rows.iter().filter(two).filter(positive).find(|row| wanted(row))
    };
    find(&pinned).or_else(|| find(&|_| true))
}

/// How many times `base` a record is: the quotient of the medians that stand in the table.
///
/// The paired ratios to the reference would not do here. Carried from group to group they would
/// assume that the machine's moods change everything alike, and they do not: a cache line can
/// become six times as dear while a wake-up stays what it was.
pub(crate) fn times(record: &Record, base: &Record) -> Option<f64> {
    let quotient = record.one_way_p50()? / base.one_way_p50()?;
    Some(quotient).filter(|times| times.is_finite() && *times > 0.0)
}
