//! The ladder: the cost of a hand-off by each mechanism, cheapest first.

mod columns;

use std::borrow::Cow;
use std::collections::BTreeMap;

use threadtoll_record::{
    Cell, Experiment, Layout, Neighbour, Pause, Placement, Record, Relation, file::Results,
};

use crate::clean::clean;
use crate::label::{cpus, on_machine, relation};
use crate::merge::merged;
use crate::published::{Published, published};
use crate::table::{Label, Marks, Note, Section, Table, Topic};
use crate::units::UNKNOWN;

/// One variant of a mechanism in all its placements.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) label: String,
    /// In the order of [`Placement::ALL`].
    records: [Option<Cow<'a, Record>>; 3],
}

impl Row<'_> {
    pub(crate) fn record(&self, placement: Placement) -> Option<&Record> {
        self.records[index(placement)].as_deref()
    }

    /// The record of the first placement that has a median, pinned before the others.
    pub(crate) fn main(&self) -> Option<&Record> {
        let known = self.records.iter().flatten().find(|record| record.one_way_p50().is_some());
        known.or_else(|| self.records.iter().flatten().next()).map(|record| &**record)
    }

    /// The one-way median of the main record.
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
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Variant<'a> {
    name: &'a str,
    payload_bytes: u64,
    line: Option<Layout>,
    pause: Option<Pause>,
    keep_awake: bool,
    neighbour: Option<Neighbour>,
}

impl<'a> Variant<'a> {
    fn of(cell: &'a Cell) -> Self {
        Variant {
            name: cell.name(),
            payload_bytes: cell.payload_bytes,
            line: cell.line,
            pause: cell.pause,
            keep_awake: cell.keep_awake,
            neighbour: cell.neighbour,
        }
    }
}

/// The rows of the ladder, cheapest first; those without a median come last.
///
/// A cell measured in several groups, as the reference is, becomes one record by [`merged`]. Pairs
/// of CPUs beyond the first of a variant become rows of their own.
pub(crate) fn rows(records: &[Record]) -> Vec<Row<'_>> {
    let mut cells: BTreeMap<&Cell, Vec<&Record>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.experiment == Experiment::Latency) {
        cells.entry(&record.cell).or_default().push(record);
    }
    let mut variants: BTreeMap<Variant<'_>, [Vec<Cow<'_, Record>>; 3]> = BTreeMap::new();
    for (cell, records) in cells {
        let variant = variants.entry(Variant::of(cell)).or_default();
        variant[index(cell.placement)].push(merged(&records));
    }
    let mut rows = Vec::new();
    for mut placements in variants.into_values() {
        let several = placements.iter().any(|records| records.len() > 1);
        placements.iter_mut().for_each(|records| records.reverse());
        loop {
            let records = placements.each_mut().map(Vec::pop);
            let Some(first) = records.iter().flatten().next() else { break };
            let mut label = clean(&first.cell.label());
            if several {
                label.push_str(&format!(", {}", cpus(&first.cell.cpus)));
            }
            rows.push(Row { label, records });
        }
    }
    rows.sort_by(|a, b| {
        let key = |row: &Row<'_>| row.p50().unwrap_or(f64::INFINITY);
        key(a).total_cmp(&key(b)).then_with(|| a.label.cmp(&b.label))
    });
    rows
}

/// The row that the ladder takes its multiples of: the cheapest between two threads, pinned if any
/// is.
fn cheapest<'r, 'a>(rows: &'r [Row<'a>]) -> Option<&'r Row<'a>> {
    let mut between_threads = rows.iter().filter(|row| {
        row.main().is_some_and(|main| main.cell.relation != Relation::SameThread)
            && row.p50().is_some_and(|p50| p50 > 0.0)
    });
    let pinned =
        |row: &&Row<'_>| row.main().is_some_and(|main| main.cell.placement == Placement::Pinned);
    between_threads.clone().find(pinned).or_else(|| between_threads.next())
}

/// Quotient of the one-way medians of two records.
///
/// The paired ratios to the reference would not do here. Carried from group to group they would
/// assume that the machine's moods change everything alike, and they do not: a cache line can
/// become six times as dear while a wake-up stays what it was.
pub(crate) fn times(record: &Record, base: &Record) -> Option<f64> {
    let quotient = record.one_way_p50()? / base.one_way_p50()?;
    Some(quotient).filter(|times| times.is_finite() && *times > 0.0)
}

pub(crate) fn table(results: &Results, records: &[Record]) -> Option<Table> {
    let rows = rows(records);
    if rows.is_empty() {
        return None;
    }
    let any_pinned = rows.iter().any(|row| row.record(Placement::Pinned).is_some());
    let label = |row: &Row<'_>| match row.main() {
        None => Label::new(&row.label),
        Some(main) => {
            let placement = Some(main.cell.placement)
                .filter(|placement| any_pinned && *placement != Placement::Pinned);
            Label { text: row.label.clone(), placement, marks: Marks::of(main) }
        }
    };
    let columns = columns::columns(results, &rows);
    let sections = vec![Section::new("", "mechanism", columns, &rows, label)];
    Some(Table {
        topic: Topic::Ladder,
        heading: on_machine("What a hand-off costs", &results.machine),
        introduction: introduction(&rows),
        notes: notes(&rows, &sections),
        sections,
    })
}

fn introduction(rows: &[Row<'_>]) -> String {
    let mut text = String::from(
        "One way is half a round trip; p50 is the median. Round trips are there and back, never halved.",
    );
    let pair = rows
        .iter()
        .filter_map(|row| row.record(Placement::Pinned))
        .find(|record| record.cell.cpus.len() == 2);
    if let Some(record) = pair {
        text.push_str(&format!(
            " Pinned: {} ({}).",
            cpus(&record.cell.cpus),
            relation(record.cell.relation)
        ));
    }
    text
}

fn notes(rows: &[Row<'_>], sections: &[Section]) -> Vec<Note> {
    let main = || rows.iter().filter_map(Row::main);
    let mut notes = Vec::new();
    if main().any(|record| record.quantiles.p99.is_none() || record.quantiles.p999.is_none()) {
        notes.push(Note::new(format!(
            "{UNKNOWN}  not known; a quantile is only given with 20 samples beyond it."
        )));
    }
    notes.extend(Marks::notes(sections));
    let mut sources: Vec<&Published> = main().flat_map(|record| published(&record.cell)).collect();
    sources.sort_by(|a, b| (a.year, a.source).cmp(&(b.year, b.source)));
    sources.dedup_by_key(|figure| figure.source);
    if !sources.is_empty() {
        let names: Vec<&str> = sources.iter().map(|figure| figure.source).collect();
        notes.push(Note {
            text: format!("Published: {}.", names.join("; ")),
            column: Some(columns::PUBLISHED),
        });
    }
    notes
}
