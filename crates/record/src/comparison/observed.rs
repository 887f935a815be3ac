//! The figures of a run that can be compared: one for each cell, group and regime.

use std::collections::BTreeMap;

use crate::file::Results;
use crate::{
    Cell, Contention, Experiment, Ns, OneWay, OneWayMethod, Origin, PerSecond, QueueSubject,
    Record, RecordKind, Subject, WaitFamily, Work,
};

use super::Figure;

/// Largest factor between the reference's times in one regime.
const ALIKE: f64 = 1.3;

/// A cell apart from the version of its queue, which may change from run to run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) experiment: Experiment,
    cell: Cell,
}

impl Key {
    fn of(record: &Record) -> Self {
        let version = |queue: &QueueSubject| QueueSubject { version: "".into(), ..queue.clone() };
        Key { experiment: record.experiment.clone(), cell: with_queue(&record.cell, version) }
    }

    /// The key of its twin.
    pub(super) fn twin(&self) -> Self {
        let twin = |queue: &QueueSubject| QueueSubject { origin: Origin::Twin, ..queue.clone() };
        Key { experiment: self.experiment.clone(), cell: with_queue(&self.cell, twin) }
    }

    fn is_twin(&self) -> bool {
        self.cell.queue().is_some_and(|queue| queue.origin == Origin::Twin)
    }
}

fn with_queue(cell: &Cell, change: impl Fn(&QueueSubject) -> QueueSubject) -> Cell {
    match &cell.subject {
        Subject::Queue(queue) => Cell { subject: Subject::Queue(change(queue)), ..cell.clone() },
        Subject::Mechanism { .. } | Subject::Lock(_) => cell.clone(),
    }
}

/// A figure of a cell, in one group and regime.
#[derive(Clone, Debug)]
pub(super) struct Observation {
    pub(super) log: f64,
    /// Half the width of the 95% interval of the logarithm.
    pub(super) half_width: f64,
    pub(super) group: usize,
    /// Logarithm of the reference's one-way median; `None` if it does not matter to the cell.
    pub(super) reference: Option<f64>,
    /// Share of the group's time.
    pub(super) share: f64,
    /// Number of blocks of one kind.
    pub(super) blocks: usize,
    pub(super) processes: u32,
    pub(super) method: Option<OneWayMethod>,
    pub(super) is_reference: bool,
    pub(super) twin_apart: bool,
}

#[cfg(test)]
impl Observation {
    pub(super) fn fixture(log: f64) -> Self {
        Observation {
            log,
            half_width: 0.0,
            group: 0,
            reference: None,
            share: 1.0,
            blocks: 100,
            processes: 1,
            method: None,
            is_reference: false,
            twin_apart: false,
        }
    }
}

struct Row {
    cell: Cell,
    figure: Figure,
    observations: Vec<Observation>,
}

/// The figures of a run.
pub(super) struct Observed {
    rows: BTreeMap<Key, Row>,
    /// All cells but twins, in the order of measuring.
    pub(super) order: Vec<Key>,
}

impl Observed {
    pub(super) fn of(results: &Results) -> Self {
        let records = results.records();
        let mut observed = Observed { rows: BTreeMap::new(), order: Vec::new() };
        for record in &records {
            let figures = Figures::each(record);
            let group = results.plan.groups.get(record.group);
            let planned = group.and_then(|group| {
                Some((group.first()?, group.iter().find(|planned| planned.cell == record.cell)?))
            });
            let Some((reference, planned)) = planned else { continue };
            let of_reference = records
                .iter()
                .find(|other| other.group == record.group && other.cell == reference.cell)
                .and_then(Record::one_way_p50);
            let kinds = planned.budget.kinds().len();
            let twin_apart = record.warnings.iter().any(|warning| warning.code == "twin-apart");
            for figures in figures {
                let Some((figure, value, [low, high])) = figures.figure(record.kind) else {
                    continue;
                };
                let observation = Observation {
                    log: value.ln(),
                    half_width: (high / low).ln() / 2.0,
                    group: record.group,
                    reference: figures.reference_ns.or(of_reference).map(f64::ln),
                    share: figures.share,
                    blocks: figures.blocks as usize / kinds,
                    processes: record.processes,
                    method: figures.one_way.map(|one_way| one_way.method),
                    is_reference: record.cell == reference.cell,
                    twin_apart,
                };
                let asleep = record.cell.lock().is_some_and(|lock| lock.work == Work::Sleep);
                observed.add(
                    record,
                    figure,
                    if asleep {
                        Observation { reference: None, ..observation }
                    } else {
                        observation
                    },
                );
            }
        }
        observed
    }

    fn add(&mut self, record: &Record, figure: Figure, observation: Observation) {
        let key = Key::of(record);
        if !key.is_twin() && !self.rows.contains_key(&key) {
            self.order.push(key.clone());
        }
        let row = || Row { cell: record.cell.clone(), figure, observations: Vec::new() };
        self.rows.entry(key).or_insert_with(row).observations.push(observation);
    }

    pub(super) fn has(&self, key: &Key) -> bool {
        self.rows.contains_key(key)
    }

    /// The cell as it was measured, with the version of its queue.
    pub(super) fn cell<'a>(&'a self, key: &'a Key) -> &'a Cell {
        self.rows.get(key).map_or(&key.cell, |row| &row.cell)
    }

    pub(super) fn figure(&self, key: &Key) -> Figure {
        self.rows.get(key).map_or(Figure::OneWayMedian, |row| row.figure)
    }

    pub(super) fn of_cell(&self, key: &Key) -> &[Observation] {
        self.rows.get(key).map_or(&[], |row| &row.observations)
    }

    /// Cells that can tell how the machine changed, the best one first.
    pub(super) fn controls(&self, key: &Key) -> Vec<&Key> {
        let others = || {
            self.order.iter().filter(|other| other.experiment == key.experiment && *other != key)
        };
        let sleeps = self.cell(key).subject.family() == WaitFamily::Blocking;
        let is_futex = |other: &&Key| {
            other.cell.mechanism() == Some("futex")
                && !other.cell.keep_awake
                && other.cell.placement == key.cell.placement
        };
        let futex = others().find(is_futex).filter(|_| sleeps);
        let is_reference = |other: &&Key| self.of_cell(other).iter().all(|one| one.is_reference);
        futex.into_iter().chain(others().find(is_reference)).collect()
    }
}

/// The figures of a record in one regime.
struct Figures<'a> {
    reference_ns: Option<f64>,
    share: f64,
    blocks: u32,
    one_way: Option<&'a OneWay>,
    rate: Option<(PerSecond, [PerSecond; 2])>,
    contention: Option<&'a Contention>,
}

impl<'a> Figures<'a> {
    fn each(record: &'a Record) -> Vec<Self> {
        let whole = Figures {
            reference_ns: None,
            share: 1.0,
            blocks: record.disturbance.blocks,
            one_way: record.one_way.as_ref(),
            rate: record.rate_per_s.zip(record.interval95.rate_per_s),
            contention: record.contention.as_ref(),
        };
        if record.regimes.is_empty() {
            return vec![whole];
        }
        let of = |regime: &'a crate::Regime| Figures {
            reference_ns: Some(regime.reference_ns.get()),
            share: regime.share.get(),
            blocks: regime.blocks,
            one_way: regime.one_way.as_ref(),
            rate: regime.rate_per_s.zip(regime.interval95.rate_per_s),
            contention: regime.contention.as_ref(),
        };
        record.regimes.iter().map(of).collect()
    }

    /// The figure with its interval, if both can be compared.
    fn figure(&self, kind: RecordKind) -> Option<(Figure, f64, [f64; 2])> {
        let (figure, value, interval) = match kind {
            RecordKind::RoundTrip => {
                let one_way = self.one_way?;
                let interval = one_way.p50_interval95?.map(Ns::get);
                (Figure::OneWayMedian, one_way.p50?.get(), interval)
            }
            RecordKind::Stream => {
                let (rate, interval) = self.rate?;
                (Figure::Rate, rate.get(), interval.map(f64::from))
            }
            RecordKind::Wait => {
                let contention = self.contention?;
                let interval = contention.speedup_interval95?.map(f64::from);
                (Figure::Speedup, contention.speedup?.get(), interval)
            }
        };
        let positive = [interval[0], value, interval[1]].iter().all(|figure| *figure > 0.0);
        (positive && interval[0] <= interval[1]).then_some((figure, value, interval))
    }
}

/// The regimes of the machine in both runs: the reference's times, without a gap of more than
/// [`ALIKE`] in any of them.
pub(super) struct Regimes {
    /// Logarithm of the longest time in each, in ascending order.
    ends: Vec<f64>,
}

impl Regimes {
    pub(super) fn of(runs: [&Observed; 2]) -> Self {
        let rows = runs.into_iter().flat_map(|run| run.rows.values());
        let mut all: Vec<f64> = rows
            .flat_map(|row| &row.observations)
            .filter_map(|observation| observation.reference)
            .collect();
        all.sort_by(f64::total_cmp);
        let apart = |pair: &&[f64]| pair[1] - pair[0] > ALIKE.ln();
        let ends = all.windows(2).filter(apart).map(|pair| pair[0]).chain(all.last().copied());
        Regimes { ends: ends.collect() }
    }

    pub(super) fn index(&self, observation: &Observation) -> Option<usize> {
        let reference = observation.reference?;
        Some(self.ends.partition_point(|end| *end < reference))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regimes_are_apart_by_a_gap_in_both_runs() {
        let ends = Regimes { ends: vec![70f64.ln(), 300f64.ln()] };
        let at = |ns: f64| {
            ends.index(&Observation { reference: Some(ns.ln()), ..Observation::fixture(0.0) })
        };
        assert_eq!((at(63.0), at(70.0), at(275.0)), (Some(0), Some(0), Some(1)));
        assert_eq!(ends.index(&Observation::fixture(0.0)), None);
    }
}
