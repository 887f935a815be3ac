//! Locks: the speed-up of threads that share a lock, measured and predicted.

mod columns;
mod findings;
mod knee;
mod map;
mod screen;
mod timeline;

use std::collections::BTreeMap;
use std::slice;

use threadtoll_record::{
    CellPrediction, Contention, Experiment, LockSubject, Placement, Record, Refusal, Share, Spread,
    Work, file::Results,
};
use threadtoll_stats::median;

pub(crate) use findings::limits;
pub(crate) use screen::screen;
pub(crate) use timeline::timelines;

use crate::claims;
use crate::clean::clean;
use crate::figure::{Figure, Map};
use crate::label::{on_machine, plural};
use crate::table::{self, Cell, Label, Marks, Note, Section, Table, Topic};
use crate::units::{digits, share, time};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    record: &'a Record,
    subject: &'a LockSubject,
    contention: &'a Contention,
}

impl Row<'_> {
    fn name(&self, axis: Axis) -> String {
        let threads = match self.subject.threads {
            1 => "1 thread".to_string(),
            threads => format!("{threads} threads"),
        };
        match axis {
            Axis::HoldShare => format!("{}, {threads}", share(self.subject.hold_share())),
            Axis::Interval => format!("{}, {threads}", time(self.subject.cycle_ns() as f64)),
            Axis::None => threads,
        }
    }

    fn label(&self, axis: Axis) -> Label {
        Label::of(self.name(axis), self.record)
    }

    fn marks(&self) -> Marks {
        Marks::of(self.record)
    }

    fn predicted(&self) -> Option<&CellPrediction> {
        self.contention.predicted.as_ref().filter(|told| told.refused.is_none())
    }

    fn refused(&self) -> Option<Refusal> {
        self.contention.predicted.as_ref()?.refused
    }

    /// Error of the prediction, relative to the measured speed-up or, for a pool, to the measured
    /// time for all tasks.
    fn error(&self) -> Option<f64> {
        let prediction = self.predicted()?;
        let (predicted, measured) = match prediction.total_s.zip(self.contention.total_s) {
            Some((predicted, measured)) => (predicted.get(), measured.get()),
            None => (prediction.speedup?.get(), self.contention.speedup?.get()),
        };
        Some(predicted / measured - 1.0).filter(|error| error.is_finite())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Criteria<'a> {
    scenario: &'a str,
    placement: Placement,
    work: Work,
    lock: &'a str,
    read_share: Option<Share>,
    spread: Spread,
}

/// The property, other than the number of threads, that varies within a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    HoldShare,
    /// Time between two acquisitions.
    Interval,
    None,
}

impl Axis {
    fn of(rows: &[Row<'_>]) -> Axis {
        let differ = |value: fn(&LockSubject) -> u64| {
            rows.windows(2).any(|pair| value(pair[0].subject) != value(pair[1].subject))
        };
        if differ(LockSubject::cycle_ns) {
            Axis::Interval
        } else if differ(|subject| subject.hold_ns) {
            Axis::HoldShare
        } else {
            Axis::None
        }
    }
}

/// Cells of one lock that differ in the number of threads and in one other property.
#[derive(Debug)]
struct Sweep<'a> {
    criteria: Criteria<'a>,
    axis: Axis,
    rows: Vec<Row<'a>>,
}

impl<'a> Sweep<'a> {
    fn new(criteria: Criteria<'a>, mut rows: Vec<Row<'a>>) -> Self {
        rows.sort_by_key(|row| {
            let subject = row.subject;
            (subject.cycle_ns(), subject.hold_ns, subject.threads, row.record.group)
        });
        Sweep { criteria, axis: Axis::of(&rows), rows }
    }

    fn lock(&self) -> String {
        clean(self.criteria.lock)
    }

    fn heading(&self) -> String {
        let mut parts = vec![format!("{}: {}", clean(self.criteria.scenario), self.lock())];
        let first = self.rows.first().map(|row| row.subject);
        if let Some(share) = self.criteria.read_share {
            parts.push(format!("{}% reads", digits(share.value() * 100.0)));
        }
        if let Some(subject) = first {
            match self.axis {
                Axis::HoldShare => {
                    parts.push(format!("acquired every {}", time(subject.cycle_ns() as f64)));
                    if subject.spread == Spread::Fixed {
                        parts.push("fixed times".into());
                    }
                }
                Axis::Interval => {
                    parts.push(format!("held {} of the time", share(subject.hold_share())));
                }
                Axis::None => {
                    parts.push(format!("hold {}", time(subject.hold_ns as f64)));
                    parts.push(format!("think {}", time(subject.think_ns as f64)));
                }
            }
        }
        if let Some(tasks) = first.and_then(|subject| subject.tasks) {
            parts.push(format!("{tasks} tasks"));
        }
        if self.criteria.work == Work::Sleep {
            parts.push("sleeping".into());
        }
        if self.criteria.placement != Placement::Pinned {
            parts.push(self.criteria.placement.to_string());
        }
        parts.join(", ")
    }

    fn unpredicted(&self) -> Vec<String> {
        unpredicted(slice::from_ref(self)).into_iter().map(|note| note.text).collect()
    }

    fn section(&self) -> Section {
        let label = |row: &Row<'_>| row.label(self.axis);
        Section {
            figure: map::map(self)
                .map(|map| Figure::SpeedUp(Map { unpredicted: self.unpredicted(), ..map })),
            ..Section::new(self.heading(), "cell", columns::columns(self), &self.rows, label)
        }
    }
}

/// The sweeps in the order of the plan. Baselines (one thread without a lock) belong to no sweep.
fn sweeps(records: &[Record]) -> Vec<Sweep<'_>> {
    let mut sweeps: BTreeMap<Criteria<'_>, (usize, Vec<Row<'_>>)> = BTreeMap::new();
    for (index, record) in records.iter().enumerate() {
        let (Experiment::Contention(scenario), Some(subject), Some(contention)) =
            (&record.experiment, record.cell.lock(), record.figures.contention())
        else {
            continue;
        };
        // Overloaded locks have a topic of their own.
        if subject.is_alone() || subject.overload.is_some() {
            continue;
        }
        let criteria = Criteria {
            scenario,
            placement: record.cell.placement,
            work: subject.work,
            lock: &subject.lock,
            read_share: subject.read_share,
            spread: subject.spread,
        };
        let (_, rows) = sweeps.entry(criteria).or_insert((index, Vec::new()));
        rows.push(Row { record, subject, contention });
    }
    let mut sweeps: Vec<_> = sweeps.into_iter().collect();
    sweeps.sort_by_key(|(_, (first, _))| *first);
    sweeps.into_iter().map(|(criteria, (_, rows))| Sweep::new(criteria, rows)).collect()
}

/// The sweeps of `some`, with rows named as in `all`, the sweeps of all records.
fn within<'r>(all: &[Sweep<'_>], some: &'r [Record]) -> Vec<Sweep<'r>> {
    let mut found = sweeps(some);
    for sweep in &mut found {
        let whole = all.iter().find(|whole| whole.criteria == sweep.criteria);
        sweep.axis = whole.map_or(sweep.axis, |whole| whole.axis);
    }
    found
}

pub(crate) fn table(results: &Results, records: &[Record]) -> Option<Table> {
    let sweeps = sweeps(records);
    if sweeps.is_empty() {
        return None;
    }
    let mut sections: Vec<Section> = sweeps.iter().map(Sweep::section).collect();
    let mut notes = Marks::notes(&sections);
    notes.extend(unpredicted(&sweeps));
    if sweeps.iter().flat_map(|sweep| &sweep.rows).any(|row| row.contention.queue_told.is_some()) {
        notes.push(Note::new(
            "Each task, from the queue: queue × hold + hold + rest, with the number of waiting threads that the lock itself told each thread that acquired it.",
        ));
    }
    if let Some(section) = uncontended(&sweeps) {
        sections.push(section);
        if sweeps.iter().any(|sweep| sweep.criteria.lock == "std-mutex") {
            let (source, time) = claims::UNCONTENDED;
            notes.push(Note::new(format!(
                "{source} measured {time} for an uncontended lock and unlock on another machine."
            )));
        }
    }
    Some(Table {
        topic: Topic::Locks,
        heading: on_machine("Locks", &results.machine),
        introduction: "Speed-up: work per second of all threads, divided by that of one thread without the lock. Predictions were made before the row was measured.".into(),
        sections,
        notes,
    })
}

/// Time of an uncontended lock and unlock, or of incrementing a counter, from the calibrations of a
/// frequency sweep.
fn uncontended(sweeps: &[Sweep<'_>]) -> Option<Section> {
    let of_lock = |sweep: &Sweep<'_>| {
        let predicted = |row: &Row<'_>| row.contention.predicted.as_ref()?.from;
        let calibrated = sweep.rows.iter().filter_map(predicted).map(|from| from.pair_ns.get());
        let mut ns: Vec<f64> = calibrated.filter(|ns| *ns > 0.0).collect();
        ns.sort_by(f64::total_cmp);
        (!ns.is_empty()).then(|| (sweep.lock(), ns))
    };
    let sweeps = sweeps.iter().filter(|sweep| sweep.criteria.scenario == "frequency-sweep");
    let rows: Vec<(String, Vec<f64>)> = sweeps.filter_map(of_lock).collect();
    type Column = table::Column<'static, (String, Vec<f64>)>;
    let columns: Vec<Column> = vec![
        Column::new("", "median", 0, |(_, ns)| Cell::figure(median(ns.iter().copied()), time)),
        Column::new("", "least", 1, |(_, ns)| Cell::figure(ns.first().copied(), time)),
        Column::new("", "most", 1, |(_, ns)| Cell::figure(ns.last().copied(), time)),
    ];
    let heading = "Uncontended lock and unlock, or increment of a counter";
    (!rows.is_empty())
        .then(|| Section::new(heading, "lock", columns, &rows, |(lock, _)| Label::new(lock)))
}

fn unpredicted(sweeps: &[Sweep<'_>]) -> Vec<Note> {
    let all = || sweeps.iter().flat_map(|sweep| &sweep.rows);
    let refused = |why: Refusal| all().filter(|row| row.refused() == Some(why)).count() as u64;
    let below = refused(Refusal::Below1us);
    let crowded = refused(Refusal::OversubscribedSpin);
    let mut notes = Vec::new();
    if below > 0 {
        notes.push(Note::new(format!(
            "No prediction for {} with holds below 1 µs: their speed-ups depend on which thread has the lock’s cache line, which no model describes.",
            plural(below, "cell"),
        )));
    }
    if crowded > 0 {
        notes.push(Note::new(format!(
            "No prediction for {} with more computing threads than CPUs: their speed-ups depend on the scheduler, which no model describes.",
            plural(crowded, "cell"),
        )));
    }
    if all().any(|row| row.contention.predicted.is_none()) {
        notes.push(Note::new(
            "No prediction: the calibration is outside the range that the models accept.",
        ));
    }
    notes
}
