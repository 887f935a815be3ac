//! Figures of a run that can be compared: one per cell, group and regime.

use std::collections::BTreeMap;

use crate::file::Results;
use crate::{
    Cell, Experiment, Figures, Intervals, Ns, OneWay, OneWayMethod, PerSecond, Quantiles,
    QueueSubject, Record, RecordKind, Subject, Work,
};

use super::Figure;
use crate::compare::ALIKE;

const WAKE_NS: f64 = 5_000.0;

/// A cell without the version and build of its queue, so that both runs have the same key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) experiment: Experiment,
    cell: Cell,
}

impl Key {
    fn of(record: &Record) -> Self {
        let version = |queue: &QueueSubject| QueueSubject { version: "".into(), ..queue.clone() };
        let cell = Cell { built: None, ..with_queue(&record.cell, version) };
        Key { experiment: record.experiment.clone(), cell }
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
    /// Half-width of the 95% interval of `log`.
    pub(super) half_width: f64,
    pub(super) group: usize,
    /// Logarithm of the reference's one-way median; `None` if unknown, or if the cell's threads
    /// only sleep.
    pub(super) reference: Option<f64>,
    /// Share of the group's time that the regime lasted.
    pub(super) share: f64,
    pub(super) blocks: usize,
    pub(super) processes: u32,
    pub(super) method: Option<OneWayMethod>,
    /// True if the figure depends on how fast threads are woken.
    pub(super) sleeps: bool,
    pub(super) is_reference: bool,
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
            sleeps: false,
            is_reference: false,
        }
    }
}

struct Row {
    cell: Cell,
    figure: Figure,
    observations: Vec<Observation>,
}

#[derive(Default)]
pub(super) struct Observed {
    rows: BTreeMap<Key, Row>,
    pub(super) order: Vec<Key>,
    /// Controls: the references, and futexes for cells whose threads sleep.
    references: Vec<Key>,
    futexes: Vec<Key>,
}

impl Observed {
    pub(super) fn of(results: &Results) -> Self {
        let records = results.records();
        let groups = &results.plan.groups;
        let is_reference = |record: &Record| {
            groups.get(record.group).and_then(|group| group.first()).map(|first| &first.cell)
                == Some(&record.cell)
        };
        let references: BTreeMap<usize, f64> = records
            .iter()
            .filter(|record| is_reference(record))
            .filter_map(|record| Some((record.group, record.one_way_p50()?)))
            .collect();
        let mut observed = Observed::default();
        for record in &records {
            let group = groups.get(record.group).map_or(&[][..], Vec::as_slice);
            let planned = group.iter().find(|planned| planned.cell == record.cell);
            let Some(planned) = planned else { continue };
            let of_reference = references.get(&record.group).copied();
            let kinds = planned.budget.kinds().len();
            for own in InRegime::each(record) {
                let Some((figure, value, [low, high])) = own.figure(record.kind) else {
                    continue;
                };
                let observation = Observation {
                    log: value.ln(),
                    half_width: (high / low).ln() / 2.0,
                    group: record.group,
                    reference: own.reference_ns.or(of_reference).map(f64::ln),
                    share: own.share,
                    blocks: own.blocks as usize / kinds,
                    processes: record.processes,
                    method: own.one_way.map(|one_way| one_way.method),
                    sleeps: own.sleeps(figure, value),
                    is_reference: is_reference(record),
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
        if !self.rows.contains_key(&key) {
            self.order.push(key.clone());
            if observation.is_reference {
                self.references.push(key.clone());
            } else if key.cell.mechanism() == Some("futex") && !key.cell.keep_awake {
                self.futexes.push(key.clone());
            }
        }
        let row = || Row { cell: record.cell.clone(), figure, observations: Vec::new() };
        self.rows.entry(key).or_insert_with(row).observations.push(observation);
    }

    pub(super) fn has(&self, key: &Key) -> bool {
        self.rows.contains_key(key)
    }

    /// The cell as measured, including the version of its queue.
    pub(super) fn cell<'a>(&'a self, key: &'a Key) -> &'a Cell {
        self.rows.get(key).map_or(&key.cell, |row| &row.cell)
    }

    pub(super) fn figure(&self, key: &Key) -> Figure {
        self.rows.get(key).map_or(Figure::OneWayMedian, |row| row.figure)
    }

    pub(super) fn of_cell(&self, key: &Key) -> &[Observation] {
        self.rows.get(key).map_or(&[], |row| &row.observations)
    }

    pub(super) fn in_group(&self, key: &Key, group: usize) -> &[Observation] {
        let all = self.of_cell(key);
        // Records are ordered by group.
        let at = |bound: usize| all.partition_point(|one| one.group < bound);
        &all[at(group)..at(group + 1)]
    }

    pub(super) fn controls(&self, key: &Key) -> impl Iterator<Item = &Key> {
        let sleeps = self.of_cell(key).iter().any(|one| one.sleeps);
        let like = move |other: &&Key| other.experiment == key.experiment && *other != key;
        let futexes = self.futexes.iter().filter(move |futex| {
            sleeps && futex.cell.placement == key.cell.placement && like(futex)
        });
        futexes.chain(self.references.iter().filter(like))
    }
}

struct InRegime<'a> {
    reference_ns: Option<f64>,
    share: f64,
    blocks: u32,
    one_way: Option<&'a OneWay>,
    rate: Option<(PerSecond, [PerSecond; 2])>,
    figures: &'a Figures,
    values: (Quantiles, Intervals),
    switches_per_op: Option<f64>,
}

impl<'a> InRegime<'a> {
    fn each(record: &'a Record) -> Vec<Self> {
        let whole = InRegime {
            reference_ns: None,
            share: 1.0,
            blocks: record.disturbance.blocks,
            one_way: record.one_way.as_ref(),
            rate: record.rate_per_s.zip(record.interval95.rate_per_s),
            figures: &record.figures,
            values: (record.quantiles, record.interval95),
            switches_per_op: record.cost.voluntary_switches_per_op.map(f64::from),
        };
        if record.regimes.is_empty() {
            return vec![whole];
        }
        let of = |regime: &'a crate::Regime| InRegime {
            reference_ns: Some(regime.reference_ns.get()),
            share: regime.share.get(),
            blocks: regime.blocks,
            one_way: regime.one_way.as_ref(),
            rate: regime.rate_per_s.zip(regime.interval95.rate_per_s),
            figures: &regime.figures,
            values: (regime.quantiles, regime.interval95),
            switches_per_op: regime.cost.voluntary_switches_per_op.map(f64::from),
        };
        record.regimes.iter().map(of).collect()
    }

    /// Returns `true` if wake-ups take more than a tenth of the time per operation.
    fn sleeps(&self, figure: Figure, value: f64) -> bool {
        let each_ns = match figure {
            Figure::OneWayMedian
            | Figure::DeliveryMedian
            | Figure::BurstTime
            | Figure::SendCallMedian
            | Figure::ReceiveTime => value,
            Figure::Rate => 1e9 / value,
            Figure::Speedup => return false,
        };
        self.switches_per_op.is_some_and(|switches| switches * WAKE_NS > 0.1 * each_ns)
    }

    /// The compared figure and its interval; `None` if they are unknown or not positive.
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
            RecordKind::Delivery => match self.figures.open_loop().and_then(|own| own.burst) {
                Some(burst) => {
                    (Figure::BurstTime, burst.last_ns?.get(), burst.last_interval95?.map(Ns::get))
                }
                None => {
                    let (quantiles, intervals) = self.values;
                    (Figure::DeliveryMedian, quantiles.p50?.get(), intervals.p50?.map(Ns::get))
                }
            },
            RecordKind::Calls => {
                let calls = self.figures.depth()?.calls;
                let interval = calls.receive_interval95?.map(Ns::get);
                (Figure::ReceiveTime, calls.receive_ns?.get(), interval)
            }
            RecordKind::SendCall => {
                let (quantiles, intervals) = self.values;
                (Figure::SendCallMedian, quantiles.p50?.get(), intervals.p50?.map(Ns::get))
            }
            RecordKind::Wait => {
                let contention = self.figures.contention()?;
                match &contention.overload {
                    Some(overload) => {
                        let (in_time, interval) = overload.in_time_per_s();
                        (Figure::Rate, in_time, interval?)
                    }
                    None => {
                        let interval = contention.speedup_interval95?.map(f64::from);
                        (Figure::Speedup, contention.speedup?.get(), interval)
                    }
                }
            }
        };
        let positive = [interval[0], value, interval[1]].iter().all(|figure| *figure > 0.0);
        (positive && interval[0] <= interval[1]).then_some((figure, value, interval))
    }
}

/// Regimes of the machine in both runs, from the times of the reference. A gap above [`ALIKE`]
/// separates two regimes.
pub(super) struct Regimes {
    /// Logarithm of the reference's longest time in each regime, in ascending order.
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
