//! The class of a record (how its threads wait), for findings.

use threadtoll_record::{Cell, Class, Record, Relation, WaitFamily};

/// Class of a cell; `None` if its threads wait adaptively, or if it is unknown how they wait.
pub(crate) fn class(cell: &Cell) -> Option<Class> {
    match cell.relation {
        Relation::SameThread => Some(Class::OneThread),
        _ => cell.subject.class(),
    }
}

/// Returns `true` if a thread slept at each hand-off, according to the number of context switches.
/// If this number is unknown, returns `true` for a mechanism that sleeps, but not for a queue,
/// whose receiver may find a message before it goes to sleep.
pub(crate) fn slept(record: &Record) -> bool {
    let switches = record.cost.voluntary_switches_per_op;
    match record.cell.queue() {
        Some(queue) => {
            queue.wait.family() == WaitFamily::Blocking
                && switches.is_some_and(|switches| switches > 0.5)
        }
        None => {
            class(&record.cell) == Some(Class::Sleep)
                && switches.is_none_or(|switches| switches > 0.5)
        }
    }
}
