//! The ladder: the cost of a hand-off by each mechanism, cheapest first.

mod columns;
mod representative;
mod screen;

use std::borrow::Cow;
use std::collections::BTreeMap;

use threadtoll_record::{
    Cell, Experiment, Layout, Neighbour, Pause, Placement, Record, file::Results,
};

pub(crate) use representative::{is_plain, p50, pinned, representative};
pub(crate) use screen::screen;

use crate::claims::sources;
use crate::clean::clean;
use crate::label::{cpus, on_machine, relation};
use crate::merge::merged;
use crate::place::{Place, Standing, places};
use crate::regimes::Regimes;
use crate::table::{Label, Marks, Note, Section, Table, Topic};
use crate::units::UNKNOWN;

#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) label: String,
    /// In the order of [`Placement::ALL`].
    records: [Option<Cow<'a, Record>>; 3],
    /// Place in the ranking; `None` if the row's figure has no interval.
    place: Option<Place>,
}

impl Row<'_> {
    pub(crate) fn record(&self, placement: Placement) -> Option<&Record> {
        self.records[index(placement)].as_deref()
    }

    /// The record of the first placement with a median, in the order pinned, same CPU, free.
    pub(crate) fn main(&self) -> Option<&Record> {
        let known = self.records.iter().flatten().find(|record| record.one_way_p50().is_some());
        known.or_else(|| self.records.iter().flatten().next()).map(|record| &**record)
    }

    fn to_owned(&self) -> Row<'static> {
        let records = self.records.each_ref();
        Row {
            label: self.label.clone(),
            records: records.map(|it| it.as_ref().map(|it| Cow::Owned(it.as_ref().clone()))),
            place: self.place,
        }
    }

    fn p50(&self) -> Option<f64> {
        self.main()?.one_way_p50()
    }

    fn standing(&self) -> Standing {
        self.main().map_or_else(Standing::default, |main| Standing {
            figure: main.one_way_p50_interval95(),
            ratio: main.against.first().map(|against| against.interval95.map(f64::from)),
        })
    }
}

/// Returns the rows at the machine's main speed, marked `false`, followed by the rows that were
/// measured only at other speeds, marked `true`.
pub(crate) fn at_one_speed(results: &Results, records: &[Record]) -> Vec<(Row<'static>, bool)> {
    let of_one = Regimes::of(results, records).records(records).into_owned();
    let (shown, all) = (rows(&of_one), rows(records));
    let others = not_in(&shown, &all).into_iter().map(|row| (row.to_owned(), true));
    shown.iter().map(|row| (row.to_owned(), false)).chain(others).collect()
}

fn not_in<'r, 'a>(some: &[Row<'_>], all: &'r [Row<'a>]) -> Vec<&'r Row<'a>> {
    all.iter().filter(|row| !some.iter().any(|other| other.label == row.label)).collect()
}

fn index(placement: Placement) -> usize {
    match placement {
        Placement::Pinned => 0,
        Placement::SameCpu => 1,
        Placement::Free => 2,
    }
}

/// All parameters of a cell except its placement.
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

/// Returns the rows of the ladder, cheapest first; those without a median come last.
///
/// [`merged`] combines the records of a cell that was measured in several groups, as the reference
/// was. If a variant was measured on further pairs of CPUs, each pair is a row.
pub(crate) fn rows(records: &[Record]) -> Vec<Row<'_>> {
    let mut cells: BTreeMap<&Cell, Vec<&Record>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.experiment == Experiment::Latency) {
        cells.entry(&record.cell).or_default().push(record);
    }
    let mut variants: BTreeMap<Variant<'_>, [Vec<Cow<'_, Record>>; 3]> = BTreeMap::new();
    for (cell, records) in cells {
        let variant = variants.entry(Variant::of(cell)).or_default();
        variant[index(cell.placement)].push(merged(&records, None));
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
            rows.push(Row { label, records, place: None });
        }
    }
    rows.sort_by(|a, b| {
        let key = |row: &Row<'_>| row.p50().unwrap_or(f64::INFINITY);
        key(a).total_cmp(&key(b)).then_with(|| a.label.cmp(&b.label))
    });
    let places = places(&rows.iter().map(Row::standing).collect::<Vec<_>>());
    rows.iter_mut().zip(places).for_each(|(row, place)| row.place = place);
    rows
}

fn reference<'r>(rows: &'r [Row<'_>]) -> Option<&'r Cell> {
    rows.iter().filter_map(Row::main).find_map(|main| Some(&main.against.first()?.cell))
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
        "One way is half a round trip; p50 is the median. Round trips are not halved.",
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
            "{UNKNOWN}  unknown: fewer than 20 samples lie beyond this quantile."
        )));
    }
    notes.push(Note { text: Place::NOTE.into(), column: Some(columns::PLACE) });
    notes.extend(Marks::notes(sections));
    notes.extend(sources(main()).map(|text| Note { text, column: Some(columns::PUBLISHED) }));
    notes
}
