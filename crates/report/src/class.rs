//! The class of a record, for findings.

use threadtoll_record::{Cell, Class, Record, Relation};

/// Class of the ends of a cell; `None` if it is adaptive or unknown.
pub(crate) fn class(cell: &Cell) -> Option<Class> {
    match cell.relation {
        Relation::SameThread => Some(Class::OneThread),
        _ => cell.subject.class(),
    }
}

/// Returns `true` if the ends slept at each hand-off, judging by the context switches.
pub(crate) fn slept(record: &Record) -> bool {
    class(&record.cell) == Some(Class::Sleep)
        && record.cost.voluntary_switches_per_op.is_none_or(|switches| switches > 0.5)
}
