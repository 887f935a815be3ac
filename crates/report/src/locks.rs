//! Locks: the speed-up of threads that share one, measured and predicted.

mod claims;
mod columns;
mod findings;
mod map;

use std::collections::{BTreeMap, BTreeSet};

use threadtoll_record::{
    CellPrediction, Contention, LockSubject, Placement, Record, Share, Spread, Work, file::Results,
};

pub(crate) use findings::findings;

use crate::clean::clean;
use crate::experiment::{FREQUENCY_SWEEP, contention_scenario};
use crate::figure::Figure;
use crate::label::on_machine;
use crate::table::{Label, Marks, Note, Section, Table, Topic};
use crate::units::{digits, share, time};

/// A measured cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    record: &'a Record,
    subject: &'a LockSubject,
    contention: &'a Contention,
}

impl Row<'_> {
    /// The properties in which it differs from other rows of its sweep.
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

    fn marks(&self) -> Marks {
        Marks::of(self.record)
    }

    fn predicted(&self) -> Option<&CellPrediction> {
        self.contention.predicted.as_ref()
    }

    /// Error of the prediction as a share of the measured speed-up, or of the measured time for all
    /// tasks.
    fn error(&self) -> Option<f64> {
        let prediction = self.predicted()?;
        let (predicted, measured) = match prediction.total_s.zip(self.contention.total_s) {
            Some((predicted, measured)) => (predicted.get(), measured.get()),
            None => (prediction.speedup.get(), self.contention.speedup?.get()),
        };
        Some(predicted / measured - 1.0).filter(|error| error.is_finite())
    }
}

/// Everything by which sweeps differ, in the order in which tables are sorted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Criteria {
    scenario: String,
    placement: Placement,
    work: Work,
    lock: String,
    read_share: Option<Share>,
    spread: Spread,
    /// Time between two acquisitions, except where the cells differ in it.
    cycle_ns: Option<u64>,
}

/// The property in which the cells of a sweep differ, apart from their threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    HoldShare,
    Interval,
    None,
}

/// Cells of one lock that differ in threads, and in one other property.
#[derive(Debug)]
pub(crate) struct Sweep<'a> {
    criteria: Criteria,
    rows: Vec<Row<'a>>,
}

impl Sweep<'_> {
    fn axis(&self) -> Axis {
        let several = |value: fn(&LockSubject) -> u64| {
            self.rows.iter().map(|row| value(row.subject)).collect::<BTreeSet<u64>>().len() > 1
        };
        match self.criteria.cycle_ns {
            Some(_) if several(|subject| subject.hold_ns) => Axis::HoldShare,
            None if several(LockSubject::cycle_ns) => Axis::Interval,
            _ => Axis::None,
        }
    }

    fn lock(&self) -> String {
        clean(&self.criteria.lock)
    }

    fn scenario(&self) -> &str {
        &self.criteria.scenario
    }

    /// Returns `true` for one lock that admits one thread at a time: no counter, no stripes, no
    /// readers.
    fn is_exclusive(&self) -> bool {
        let lock = &self.criteria.lock;
        self.criteria.read_share.is_none()
            && !lock.starts_with("counter-")
            && !lock.starts_with("striped")
    }

    fn heading(&self) -> String {
        let axis = self.axis();
        let mut parts = vec![format!("{}: {}", clean(self.scenario()), self.lock())];
        let first = self.rows.first().map(|row| row.subject);
        if let Some(share) = self.criteria.read_share {
            parts.push(format!("{}% reads", digits(share.value() * 100.0)));
        }
        match (self.criteria.cycle_ns, first) {
            (Some(cycle_ns), Some(subject)) if axis == Axis::HoldShare => {
                parts.push(format!("taken every {}", time(cycle_ns as f64)));
                if subject.spread == Spread::Fixed {
                    parts.push("fixed times".into());
                }
            }
            (_, Some(subject)) if axis == Axis::Interval => {
                parts.push(format!("held for {} of the time", share(subject.hold_share())));
            }
            (_, Some(subject)) => {
                parts.push(format!("hold {}", time(subject.hold_ns as f64)));
                parts.push(format!("think {}", time(subject.think_ns as f64)));
            }
            (_, None) => {}
        }
        if let Some(tasks) = first.and_then(|subject| subject.tasks) {
            parts.push(format!("{tasks} tasks"));
        }
        if self.criteria.work == Work::Sleep {
            parts.push("asleep".into());
        }
        if self.criteria.placement != Placement::Pinned {
            parts.push(self.criteria.placement.to_string());
        }
        parts.join(", ")
    }

    fn section(&self) -> Section {
        let axis = self.axis();
        let label = |row: &Row<'_>| Label::of(row.name(axis), row.record);
        Section {
            figure: map::map(self).map(Figure::SpeedUp),
            ..Section::new(self.heading(), "cell", columns::columns(self), &self.rows, label)
        }
    }
}

/// The sweeps among the records. Cells of one thread without a lock are in none: all others are
/// measured against them.
fn sweeps(records: &[Record]) -> Vec<Sweep<'_>> {
    let mut sweeps: BTreeMap<Criteria, Vec<Row<'_>>> = BTreeMap::new();
    for record in records {
        let (Some(scenario), Some(subject), Some(contention)) =
            (contention_scenario(record), record.cell.lock(), &record.contention)
        else {
            continue;
        };
        if subject.is_alone() {
            continue;
        }
        let criteria = Criteria {
            scenario: scenario.to_string(),
            placement: record.cell.placement,
            work: subject.work,
            lock: subject.lock.to_string(),
            read_share: subject.read_share,
            spread: subject.spread,
            cycle_ns: (scenario != FREQUENCY_SWEEP).then(|| subject.cycle_ns()),
        };
        sweeps.entry(criteria).or_default().push(Row { record, subject, contention });
    }
    let mut all: Vec<Sweep<'_>> =
        sweeps.into_iter().map(|(criteria, rows)| Sweep { criteria, rows }).collect();
    for sweep in &mut all {
        sweep.rows.sort_by_key(|row| {
            (row.subject.cycle_ns(), row.subject.hold_ns, row.subject.threads, row.record.group)
        });
    }
    all
}

pub(crate) fn table(results: &Results, records: &[Record]) -> Option<Table> {
    let sweeps = sweeps(records);
    if sweeps.is_empty() {
        return None;
    }
    let sections: Vec<Section> = sweeps.iter().map(Sweep::section).collect();
    let mut notes = Marks::notes(&sections);
    if sweeps.iter().flat_map(|sweep| &sweep.rows).any(|row| row.predicted().is_none()) {
        notes.push(Note::new(
            "Where nothing is predicted, what was calibrated lies outside of what the models accept.",
        ));
    }
    Some(Table {
        topic: Topic::Locks,
        heading: on_machine("Locks", &results.machine),
        introduction: "Speed-up: work per second of all threads against one thread alone without the lock. What is predicted was written down before the cell was measured.".into(),
        sections,
        notes,
    })
}
