//! The class of a record, for findings.

use threadtoll_record::{Cell, Class, Record, Relation, WaitFamily};

/// Class of the ends of a cell; `None` if it is adaptive or unknown.
pub(crate) fn class(cell: &Cell) -> Option<Class> {
    match cell.relation {
        Relation::SameThread => Some(Class::OneThread),
        _ => cell.subject.class(),
    }
}

/// Returns `true` if the ends slept at each hand-off, according to their context switches. A
/// queue's receiver may find a message before it sleeps, so it counts only if it was seen to sleep.
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
