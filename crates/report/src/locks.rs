//! Locks: the speed-up of threads that share one, measured and predicted.

mod claims;
mod columns;
mod findings;
mod map;

use std::collections::BTreeMap;

use threadtoll_record::{
    CellPrediction, Contention, Experiment, LockSubject, Placement, Record, Refusal, Share, Spread,
    Work, file::Results,
};

pub(crate) use findings::findings;

use findings::{Errors, enough_threads};

use crate::clean::clean;
use crate::figure::Figure;
use crate::label::{on_machine, plural};
use crate::table::{Label, Marks, Note, Section, Table, Topic};
use crate::units::{digits, digits_range, share, time};

/// A measured cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    record: &'a Record,
    subject: &'a LockSubject,
    contention: &'a Contention,
}

impl Row<'_> {
    /// The properties that distinguish it from other rows of its sweep.
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
        let twin = if self.record.cell.is_twin() { " (twin)" } else { "" };
        Label::of(format!("{}{twin}", self.name(axis)), self.record)
    }

    fn marks(&self) -> Marks {
        Marks::of(self.record)
    }

    /// The prediction, unless no model describes the cell.
    fn predicted(&self) -> Option<&CellPrediction> {
        self.contention.predicted.as_ref().filter(|told| told.refused.is_none())
    }

    fn refused(&self) -> Option<Refusal> {
        self.contention.predicted.as_ref()?.refused
    }

    /// Returns `true` if the measured speed-up lies in the predicted interval.
    fn within(&self) -> Option<bool> {
        let [low, high] = self.predicted()?.speedup_interval95?;
        let measured = self.contention.speedup?;
        Some(low <= measured && measured <= high)
    }

    /// Error of the prediction as a share of the measured speed-up, or of the measured time for all
    /// tasks.
    fn error(&self) -> Option<f64> {
        let prediction = self.predicted()?;
        let (predicted, measured) = match prediction.total_s.zip(self.contention.total_s) {
            Some((predicted, measured)) => (predicted.get(), measured.get()),
            None => (prediction.speedup?.get(), self.contention.speedup?.get()),
        };
        Some(predicted / measured - 1.0).filter(|error| error.is_finite())
    }
}

/// The properties that distinguish sweeps, in the order of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Criteria<'a> {
    scenario: &'a str,
    placement: Placement,
    work: Work,
    lock: &'a str,
    read_share: Option<Share>,
    spread: Spread,
}

/// The property, apart from threads, that varies within a sweep.
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

/// Cells of one lock that differ in threads and in one other property.
#[derive(Debug)]
struct Sweep<'a> {
    criteria: Criteria<'a>,
    axis: Axis,
    /// Without twins.
    rows: Vec<Row<'a>>,
    /// With twins.
    all: Vec<Row<'a>>,
}

impl<'a> Sweep<'a> {
    fn new(criteria: Criteria<'a>, mut all: Vec<Row<'a>>) -> Self {
        all.sort_by_key(|row| {
            let subject = row.subject;
            (subject.cycle_ns(), subject.hold_ns, subject.threads, row.record.group, subject.origin)
        });
        let rows: Vec<Row<'a>> =
            all.iter().copied().filter(|row| !row.record.cell.is_twin()).collect();
        Sweep { criteria, axis: Axis::of(&rows), rows, all }
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

    fn section(&self) -> Section {
        let label = |row: &Row<'_>| row.label(self.axis);
        Section {
            figure: map::map(self).map(Figure::SpeedUp),
            ..Section::new(self.heading(), "cell", columns::columns(self), &self.all, label)
        }
    }
}

/// The sweeps among the records. Baselines, with one thread and no lock, are in none of them.
fn sweeps(records: &[Record]) -> Vec<Sweep<'_>> {
    let mut sweeps: BTreeMap<Criteria<'_>, Vec<Row<'_>>> = BTreeMap::new();
    for record in records {
        let (Experiment::Contention(scenario), Some(subject), Some(contention)) =
            (&record.experiment, record.cell.lock(), &record.contention)
        else {
            continue;
        };
        if subject.is_alone() {
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
        sweeps.entry(criteria).or_default().push(Row { record, subject, contention });
    }
    sweeps.into_iter().map(|(criteria, rows)| Sweep::new(criteria, rows)).collect()
}

pub(crate) struct Card {
    pub(crate) figure: String,
    pub(crate) heading: String,
    pub(crate) detail: String,
}

/// Cards with the number of threads worth having at the first lock, and the predictions' error.
pub(crate) fn cards(records: &[Record]) -> Vec<Card> {
    let sweeps = sweeps(records);
    let mut cards = Vec::new();
    for sweep in sweeps.iter().take(MAX_CARDS) {
        cards.extend(enough_threads(sweep).map(|enough| Card {
            figure: plural(enough.threads.into(), "thread"),
            heading: format!("worth having, {}", sweep.lock()),
            detail: format!("all tasks in {}; more gain less than 5%", enough.time),
        }));
    }
    cards.extend(sweeps.first().and_then(knee));
    cards.extend(Errors::of(&sweeps).card());
    cards
}

const MAX_CARDS: usize = 2;

/// The longest hold share at which two threads surely do more than one.
fn knee(sweep: &Sweep<'_>) -> Option<Card> {
    let pairs = sweep.rows.iter().filter(|row| row.subject.threads == 2);
    let (row, interval) = pairs
        .filter(|_| sweep.axis == Axis::HoldShare)
        .filter_map(|row| Some((row, row.contention.speedup_interval95?.map(f64::from))))
        .filter(|(_, [low, _])| *low > 1.0)
        .max_by_key(|(row, _)| row.subject.hold_ns)?;
    Some(Card {
        figure: share(row.subject.hold_share()),
        heading: "hold share up to which two threads do more than one".into(),
        detail: format!("{}: speed-up {} at this share", sweep.lock(), digits_range(interval)),
    })
}

pub(crate) fn table(results: &Results, records: &[Record]) -> Option<Table> {
    let sweeps = sweeps(records);
    if sweeps.is_empty() {
        return None;
    }
    let sections: Vec<Section> = sweeps.iter().map(Sweep::section).collect();
    let mut notes = Marks::notes(&sections);
    notes.extend(unpredicted(&sweeps));
    Some(Table {
        topic: Topic::Locks,
        heading: on_machine("Locks", &results.machine),
        introduction: "Speed-up: work per second of all threads, divided by that of one thread without the lock. Predictions were written before the cell was measured.".into(),
        sections,
        notes,
    })
}

/// Notes on the cells without a prediction.
fn unpredicted(sweeps: &[Sweep<'_>]) -> Vec<Note> {
    let all = || sweeps.iter().flat_map(|sweep| &sweep.rows);
    let refused = |why: Refusal| all().filter(|row| row.refused() == Some(why)).count() as u64;
    let below = refused(Refusal::Below1us);
    let crowded = refused(Refusal::OversubscribedSpin);
    let mut notes = Vec::new();
    if below > 0 {
        notes.push(Note::new(format!(
            "No prediction for {} with holds below 1 µs: which thread has the lock’s cache line decides, and no model describes that.",
            plural(below, "cell"),
        )));
    }
    if crowded > 0 {
        notes.push(Note::new(format!(
            "No prediction for {} with more computing threads than CPUs: the scheduler decides, and no model describes it.",
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
