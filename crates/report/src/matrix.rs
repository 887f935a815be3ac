//! One-way medians between pairs of CPUs.

use std::collections::{BTreeMap, BTreeSet};

use threadtoll_record::{CpuPlace, Machine, Record, Relation};

use crate::clean::clean;
use crate::experiment::is_matrix;
use crate::merge::median;

/// The pairs of one mechanism.
#[derive(Debug)]
pub(crate) struct Pairs<'a> {
    /// The mechanism with its parameters, fit to be shown.
    pub(crate) label: String,
    /// The CPUs that occur, in the order of the machine: by node, last-level cache, core.
    pub(crate) cpus: Vec<u32>,
    /// One-way medians in nanoseconds, by the CPUs of the first and second end.
    pub(crate) values: BTreeMap<(u32, u32), f64>,
    /// The records.
    pub(crate) records: Vec<&'a Record>,
}

impl Pairs<'_> {
    /// The median of a pair: as measured, or of the other direction where only that was.
    pub(crate) fn value(&self, a: u32, b: u32) -> Option<f64> {
        self.values.get(&(a, b)).or_else(|| self.values.get(&(b, a))).copied()
    }

    /// By relation, nearest first: all medians, in ascending order.
    pub(crate) fn by_relation(&self) -> BTreeMap<Relation, Vec<f64>> {
        // A pair that was measured several times, as the reference's own is, counts once.
        let mut relations: BTreeMap<(u32, u32), Relation> = BTreeMap::new();
        for record in &self.records {
            if let &[a, b] = record.cell.cpus.as_slice() {
                relations.insert((a, b), record.cell.relation);
            }
        }
        let mut found: BTreeMap<Relation, Vec<f64>> = BTreeMap::new();
        for (pair, p50) in &self.values {
            if let Some(relation) = relations.get(pair) {
                found.entry(*relation).or_default().push(*p50);
            }
        }
        found.values_mut().for_each(|values| values.sort_by(f64::total_cmp));
        found
    }
}

/// The pairs of CPUs among the records, by mechanism.
pub(crate) fn pairs<'a>(machine: &Machine, records: &'a [Record]) -> Vec<Pairs<'a>> {
    let mut by_label: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
    for record in records.iter().filter(|record| is_matrix(record) && record.cell.cpus.len() == 2) {
        by_label.entry(clean(&record.cell.label())).or_default().push(record);
    }
    let seats: BTreeMap<u32, &CpuPlace> =
        machine.topology.iter().map(|place| (place.cpu, place)).collect();
    let build = |(label, records): (String, Vec<&'a Record>)| {
        let mut measured: BTreeMap<(u32, u32), Vec<f64>> = BTreeMap::new();
        for record in &records {
            if let (&[a, b], Some(p50)) = (record.cell.cpus.as_slice(), record.one_way_p50()) {
                measured.entry((a, b)).or_default().push(p50);
            }
        }
        let cpus: BTreeSet<u32> = measured.keys().flat_map(|(a, b)| [*a, *b]).collect();
        let mut cpus: Vec<u32> = cpus.into_iter().collect();
        cpus.sort_by_key(|cpu| match seats.get(cpu) {
            Some(place) => (place.node, place.llc.unwrap_or(0), place.core, *cpu),
            None => (u32::MAX, 0, 0, *cpu),
        });
        let values = measured
            .into_iter()
            .filter_map(|(pair, found)| Some((pair, median(found.into_iter())?)))
            .collect();
        Pairs { label, cpus, values, records }
    };
    by_label.into_iter().map(build).filter(|pairs| !pairs.values.is_empty()).collect()
}
