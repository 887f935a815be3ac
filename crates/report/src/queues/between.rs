//! Columns and sentences on the receiver's CPU and pages between two messages.

use std::collections::BTreeSet;

use threadtoll_record::{Between, BetweenMessages, IdleState, Record, median};

use super::columns::Column;
use super::{Comparison, Row, base};
use crate::clean::clean;
use crate::sentences::{self as say, Sentence};
use crate::table::Cell;
use crate::units::{digits, per_op, share};

fn deepest(record: &Record) -> Option<&IdleState> {
    record.idle.as_ref()?.deepest()
}

/// `C6 97%`.
fn state(state: &IdleState) -> String {
    format!("{} {}", clean(&state.name), share(state.share.get()))
}

fn has_states(row: &Row<'_>) -> bool {
    row.record.idle.as_ref().is_some_and(|idle| !idle.states.is_empty())
}

/// Columns in addition to those of open loops.
pub(super) fn columns<'c, 'a>(comparison: &'c Comparison<'a>) -> Vec<Column<'c, 'a>> {
    let mut columns = Vec::new();
    let between = comparison.criteria.load.between;
    if between.is_some() {
        let title = "ratio of the medians in paired blocks, to the queue with nothing between";
        // No queue is better for being cold.
        columns.push(Column::new("to nothing", "between", 1, title, |row| Cell {
            verdict: None,
            ..base::cell(&row.record)
        }));
    }
    if between == Some(Between::GiveBackPages) {
        let title = "page faults of the receiver per message";
        columns.push(Column::new("per message", "faults", 2, title, |row| {
            let between = row.record.between;
            Cell::figure(between.map(|own| own.page_faults_per_message), per_op)
        }));
    }
    if comparison.rows.iter().any(has_states) {
        let title = "deepest idle state that the receiver’s CPU entered, and its share of the time";
        columns.push(Column::new("", "idle in", 3, title, |row| match deepest(&row.record) {
            Some(deepest) => Cell::new(Some(deepest.share.get()), state(deepest)),
            None if has_states(row) => Cell::text("none"),
            None => Cell::unknown(),
        }));
    }
    columns
}

/// Details of a mark in a chart.
pub(super) fn lines(record: &Record) -> Vec<String> {
    let states = record.idle.iter().flat_map(|idle| &idle.states);
    let states: Vec<String> = states.map(state).collect();
    let faults = |own: BetweenMessages| per_op(own.page_faults_per_message.get());
    let idle = (!states.is_empty()).then(|| format!("idle: {}", states.join(", ")));
    let faults = record.between.map(|own| format!("per message: {} page faults", faults(own)));
    idle.into_iter().chain(faults).collect()
}

/// Sentences on what was done, and on what the kernel does not tell.
pub(super) fn findings(comparisons: &[Comparison<'_>]) -> Vec<Sentence> {
    let rows = || comparisons.iter().flat_map(|comparison| &comparison.rows);
    let idle = || rows().filter_map(|row| row.record.idle.as_ref());
    let done = |between| {
        let own = rows().filter(move |row| {
            row.queue().is_some_and(|queue| queue.load.between == Some(between))
        });
        own.filter_map(|row| row.record.between).collect::<Vec<BetweenMessages>>()
    };
    let no_counters = idle().next().is_some() && idle().all(|idle| idle.states.is_empty());
    let emptied = done(Between::FlushCaches);
    let given = done(Between::GiveBackPages);
    let faults = median(given.iter().map(|own| own.page_faults_per_message.get()));
    let given_back = faults.map(|faults| match given.iter().any(had_faults) {
        true => say::pages_given_back(sizes(&given), per_op(faults)),
        false => say::pages_stayed(),
    });
    no_counters
        .then(say::no_idle_counters)
        .into_iter()
        .chain((!emptied.is_empty()).then(|| say::caches_emptied(sizes(&emptied))))
        .chain(given_back)
        .collect()
}

fn had_faults(own: &BetweenMessages) -> bool {
    own.page_faults_per_message.get() > 0.0
}

/// `4.10 MiB`, or `1.06 to 4.10 MiB`.
fn sizes(all: &[BetweenMessages]) -> String {
    let mib = |bytes: u64| digits(bytes as f64 / f64::from(1 << 20));
    let all: BTreeSet<u64> = all.iter().map(|own| own.bytes.get()).collect();
    match (all.first(), all.last()) {
        (Some(least), Some(most)) if mib(*least) != mib(*most) => {
            format!("{} to {} MiB", mib(*least), mib(*most))
        }
        (least, _) => format!("{} MiB", mib(least.copied().unwrap_or(0))),
    }
}
