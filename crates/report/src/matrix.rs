mod screen;

use std::collections::{BTreeMap, BTreeSet};

use threadtoll_record::{CpuPlace, Experiment, Machine, Record, Relation, file::Results};
use threadtoll_stats::{median, upper_median};

pub(crate) use screen::screen;

use crate::clean::clean;
use crate::figure::{Figure, Pairs};
use crate::label::relation;
use crate::table::{self, Cell, Label, Section, Table, Topic};
use crate::units::{UNKNOWN, count, time, time_range};

pub(crate) fn pairs(machine: &Machine, records: &[Record]) -> Vec<Pairs> {
    let mut by_label: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
    for record in records
        .iter()
        .filter(|record| record.experiment == Experiment::Matrix && record.cell.cpus.len() == 2)
    {
        by_label.entry(clean(&record.cell.label())).or_default().push(record);
    }
    by_label
        .into_iter()
        .map(|(label, records)| pairs_of(label, machine, &records))
        .filter(|pairs| !pairs.values.is_empty())
        .collect()
}

fn pairs_of(label: String, machine: &Machine, records: &[&Record]) -> Pairs {
    // Pairs of the reference were measured several times, but each counts once.
    let mut measured: BTreeMap<(u32, u32), Vec<f64>> = BTreeMap::new();
    let mut relations = BTreeMap::new();
    let mut intervals: BTreeMap<(u32, u32), [f64; 2]> = BTreeMap::new();
    for record in records {
        let &[a, b] = record.cell.cpus.as_slice() else { continue };
        relations.insert((a, b), record.cell.relation);
        if let Some(p50) = record.one_way_p50() {
            measured.entry((a, b)).or_default().push(p50);
        }
        if let Some([low, high]) = record.one_way_p50_interval95() {
            let hull = intervals.entry((a, b)).or_insert([low, high]);
            *hull = [hull[0].min(low), hull[1].max(high)];
        }
    }
    let cpus: BTreeSet<u32> = measured.keys().flat_map(|(a, b)| [*a, *b]).collect();
    let places: BTreeMap<u32, CpuPlace> = machine
        .topology
        .iter()
        .filter(|place| cpus.contains(&place.cpu))
        .map(|place| (place.cpu, place.clone()))
        .collect();
    let mut cpus: Vec<u32> = cpus.into_iter().collect();
    cpus.sort_by_key(|cpu| match places.get(cpu) {
        Some(place) => (place.node, place.llc.unwrap_or(0), place.core, *cpu),
        None => (u32::MAX, 0, 0, *cpu),
    });
    // The upper median, because the mean of the two middle values would mix two groups, and the
    // machine may have changed between them.
    let typical = |mut values: Vec<f64>| upper_median(&mut values, f64::total_cmp);
    let values =
        measured.into_iter().filter_map(|(pair, values)| Some((pair, typical(values)?))).collect();
    Pairs { label, cpus, places, values, intervals, relations }
}

pub(crate) fn table(results: &Results, records: &[Record]) -> Option<Table> {
    let pairs = pairs(&results.machine, records);
    if pairs.is_empty() {
        return None;
    }
    let shown = pairs.into_iter().filter(|pairs| !in_ladder(pairs, records));
    Some(Table {
        topic: Topic::Matrix,
        heading: String::new(),
        introduction: String::new(),
        sections: shown.map(section).collect(),
        notes: Vec::new(),
    })
}

fn in_ladder(pairs: &Pairs, records: &[Record]) -> bool {
    let cpus: Vec<&(u32, u32)> = pairs.values.keys().collect();
    let [only] = cpus.as_slice() else { return false };
    records.iter().any(|record| {
        record.experiment == Experiment::Latency
            && record.cell.cpus == [only.0, only.1]
            && clean(&record.cell.label()) == pairs.label
    })
}

type Row = (Relation, Vec<f64>);
type Column = table::Column<'static, Row>;

fn section(pairs: Pairs) -> Section {
    let rows: Vec<Row> = pairs.by_relation().into_iter().collect();
    let single = pairs.values.len() == 1;
    let column = |heading, figure: fn(&[f64]) -> Option<f64>| {
        Column::new("", heading, 0, move |(_, values)| Cell::figure(figure(values), time))
    };
    let all = vec![
        Column::new("", "pairs", 0, |(_, values)| {
            Cell::new(Some(values.len() as f64), count(values.len() as u64))
        }),
        column("median", |values| median(values.iter().copied())),
        column("fastest", |values| values.first().copied()),
        column("slowest", |values| values.last().copied()),
    ];
    let one = vec![
        column("p50", |values| values.first().copied()),
        Column::new("", "95%", 0, {
            let interval = pairs.intervals.values().next().copied();
            move |_| Cell::text(interval.map_or_else(|| UNKNOWN.into(), time_range))
        }),
    ];
    let columns = if single { one } else { all };
    let heading =
        format!("Between pairs of CPUs: {}, one way (half a round trip), p50", pairs.label);
    Section {
        figure: Some(Figure::Pairs(pairs)),
        ..Section::new(heading, "between", columns, &rows, |(of, _)| Label::new(relation(*of)))
    }
}
