//! Overloaded locks: callers in time, late and refused, their queue, and the recovery.

mod columns;
mod over_time;
mod screen;

use std::collections::BTreeMap;

use threadtoll_record::{
    CellPrediction, LockSubject, Overload, OverloadFigures, Placement, PredictedOverload, Record,
    Work, file::Results,
};

pub(crate) use over_time::queues;
pub(crate) use screen::screen;

use crate::clean::clean;
use crate::label::{on_machine, plural};
use crate::table::{Label, Marks, Note, Section, Table, Topic};
use crate::units::{round_digits, round_time};

/// Predictions of shorter queues, in callers, and of shorter recoveries, in hold times, are off by
/// chance.
const QUEUE: f64 = 1.0;
const RECOVERY: f64 = 10.0;

/// A rule at one rate of arrivals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    record: &'a Record,
    subject: &'a LockSubject,
    load: &'a Overload,
    found: &'a OverloadFigures,
    prediction: Option<&'a CellPrediction>,
}

impl<'a> Row<'a> {
    fn of(record: &'a Record) -> Option<Self> {
        let contention = record.figures.contention()?;
        let subject = record.cell.lock()?;
        Some(Row {
            record,
            subject,
            load: subject.overload.as_ref()?,
            found: contention.overload.as_deref()?,
            prediction: contention.predicted.as_ref(),
        })
    }

    fn predicted(&self) -> Option<&'a PredictedOverload> {
        self.prediction?.overload.as_deref()
    }

    /// Such as `2×`.
    fn rate(&self) -> String {
        format!("{}×", round_digits(self.load.arrivals.value()))
    }

    fn rule(&self) -> String {
        match self.load.bound {
            Some(bound) => format!("bound {bound}"),
            None if self.load.gives_up => "give up".into(),
            None => "no bound".into(),
        }
    }

    fn label(&self) -> Label {
        Label::of(format!("{}, {}", self.rate(), self.rule()), self.record)
    }

    /// Errors of the predictions, relative to the measured figures; 1 if something else happened.
    fn errors(&self) -> Vec<f64> {
        let Some(predicted) = self.predicted() else { return Vec::new() };
        let long_ns = RECOVERY * self.subject.hold_ns as f64;
        let in_time = Some((predicted.in_time_share.get(), self.found.in_time_share.get()));
        let queue = self.prediction.and_then(|told| told.queue_mean).map(f64::from);
        let queue = queue.zip(Some(self.found.queue_mean.get()).filter(|mean| *mean >= QUEUE));
        let recoveries = [predicted.recovery_ns, self.found.recovery_ns];
        let recovery = match recoveries.map(|ns| ns.map(f64::from)) {
            [Some(predicted), Some(measured)] => {
                (measured >= long_ns).then_some((predicted, measured))
            }
            [None, None] => None,
            // Only one of the two is sure that the queue drains.
            [Some(ns), None] | [None, Some(ns)] => Some((ns, 0.0)),
        };
        [in_time, queue, recovery]
            .into_iter()
            .flatten()
            .map(|(predicted, measured)| match measured {
                0.0 => f64::from(u8::from(predicted > 0.0)),
                _ => predicted / measured - 1.0,
            })
            .collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Criteria<'a> {
    placement: Placement,
    work: Work,
    lock: &'a str,
    threads: u32,
    hold_ns: u64,
    deadline_ns: u64,
}

/// Cells of one lock that differ in the rate of arrivals and in the rule for those who wait.
#[derive(Debug)]
struct Rates<'a> {
    criteria: Criteria<'a>,
    rows: Vec<Row<'a>>,
}

impl Criteria<'_> {
    fn lock(&self) -> String {
        clean(self.lock)
    }

    fn work(&self) -> String {
        match self.work {
            Work::Sleep => "asleep".into(),
            Work::Spin => "computing".into(),
        }
    }

    fn threads(&self) -> String {
        plural(self.threads.into(), "thread")
    }

    fn deadline(&self) -> String {
        format!("deadline {}", round_time(self.deadline_ns as f64))
    }

    fn placement(&self) -> String {
        self.placement.to_string()
    }
}

/// Names that tell these rates apart, as short as possible; empty if there is only one.
fn short_names(all: &[Rates<'_>]) -> Vec<String> {
    let parts: [fn(&Criteria<'_>) -> String; 5] = [
        |it| it.lock(),
        |it| it.work(),
        |it| it.deadline(),
        |it| it.threads(),
        |it| it.placement(),
    ];
    let mut names = vec![String::new(); all.len()];
    for part in parts {
        let own: Vec<String> = all.iter().map(|rates| part(&rates.criteria)).collect();
        let is_ambiguous = |nth: usize| {
            (0..all.len()).any(|other| names[other] == names[nth] && own[other] != own[nth])
        };
        let ambiguous: Vec<usize> = (0..all.len()).filter(|nth| is_ambiguous(*nth)).collect();
        for nth in ambiguous {
            let comma = if names[nth].is_empty() { "" } else { ", " };
            names[nth] = format!("{}{comma}{}", names[nth], own[nth]);
        }
    }
    names
}

impl<'a> Rates<'a> {
    /// Such as `std-mutex held for 5 ms, asleep`.
    fn name(&self) -> String {
        let Criteria { hold_ns, .. } = self.criteria;
        let hold = round_time(hold_ns as f64);
        format!("{} held for {hold}, {}", self.criteria.lock(), self.criteria.work())
    }

    fn heading(&self) -> String {
        let Criteria { placement, .. } = self.criteria;
        let (threads, deadline) = (self.criteria.threads(), self.criteria.deadline());
        let mut heading = format!("overload: {}, {threads}, {deadline}", self.name());
        if placement != Placement::Pinned {
            heading.push_str(&format!(", {placement}"));
        }
        heading
    }

    /// Rows by rate of arrivals, lowest first.
    fn by_rate(&self) -> Vec<Vec<Row<'a>>> {
        let mut rates: BTreeMap<_, Vec<Row<'a>>> = BTreeMap::new();
        for row in &self.rows {
            rates.entry(row.load.arrivals).or_default().push(*row);
        }
        rates.into_values().collect()
    }

    fn section(&self) -> Section {
        Section::new(self.heading(), "arrivals", columns::columns(), &self.rows, Row::label)
    }
}

/// In the order of the plan.
fn rates(records: &[Record]) -> Vec<Rates<'_>> {
    let mut all: Vec<Rates<'_>> = Vec::new();
    for row in records.iter().filter_map(Row::of) {
        let criteria = Criteria {
            placement: row.record.cell.placement,
            work: row.subject.work,
            lock: &row.subject.lock,
            threads: row.subject.threads,
            hold_ns: row.subject.hold_ns,
            deadline_ns: row.load.deadline_ns,
        };
        match all.iter_mut().find(|rates| rates.criteria == criteria) {
            Some(rates) => rates.rows.push(row),
            None => all.push(Rates { criteria, rows: vec![row] }),
        }
    }
    // Groups hold several rates, so those of a row that was measured again come last.
    all.iter_mut().for_each(|rates| rates.rows.sort_by_key(|row| row.load.arrivals));
    all
}

pub(crate) fn table(results: &Results, records: &[Record]) -> Option<Table> {
    let all = rates(records);
    if all.is_empty() {
        return None;
    }
    let sections: Vec<Section> = all.iter().map(Rates::section).collect();
    let mut notes = Marks::notes(&sections);
    notes.push(Note::new(
        "arrivals: in the overload, as a multiple of what the lock can serve (one caller per hold time). in time: callers who get the lock within the deadline of their arrival. wasted: of those who get it, callers who get it later. recovery: from the end of the overload until nobody waits.",
    ));
    notes.push(Note::new(
        "Unless a lock has a bound of its own, callers are counted in front of it. in front: callers for whom no thread was free. noticed late: delay with which a sleeping thread noticed its caller; waits include it.",
    ));
    let refused = |row: &&Row<'_>| row.prediction.is_some_and(|told| told.refused.is_some());
    let crowded = all.iter().flat_map(|rates| &rates.rows).filter(refused).count() as u64;
    if crowded > 0 {
        notes.push(Note::new(format!(
            "No prediction for {} with more computing threads than CPUs: their figures depend on the scheduler, which no model describes.",
            plural(crowded, "cell"),
        )));
    }
    Some(Table {
        topic: Topic::Overload,
        heading: on_machine("Overload", &results.machine),
        introduction: "Callers arrive at random, whether or not others wait; in the overload, more of them than the lock can serve. Predictions were made before the row was measured.".into(),
        sections,
        notes,
    })
}
