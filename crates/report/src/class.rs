//! The class of a mechanism, as the findings need it.

use threadtoll_record::{Cell, Class, Record, Relation};

/// How the ends of a cell wait; `None` if they spin or sleep by their own judgement, or it is not
/// known.
pub(crate) fn class(cell: &Cell) -> Option<Class> {
    match cell.relation {
        Relation::SameThread => Some(Class::OneThread),
        _ => cell.subject.class(),
    }
}

/// Returns `true` if the record's ends really slept at each hand-off, as far as its context
/// switches tell.
pub(crate) fn slept(record: &Record) -> bool {
    class(&record.cell) == Some(Class::Sleep)
        && record.cost.voluntary_switches_per_op.is_none_or(|switches| switches > 0.5)
}
