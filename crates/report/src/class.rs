use threadtoll_record::{Cell, Class, Record, Relation, WaitFamily};

/// `None` if the cell's threads wait adaptively, or if it is unknown how they wait.
pub(crate) fn class(cell: &Cell) -> Option<Class> {
    match cell.relation {
        Relation::SameThread => Some(Class::OneThread),
        _ => cell.subject.class(),
    }
}

/// Returns `true` if each hand-off put a thread to sleep, judged by the context switches. If their
/// number is unknown, a mechanism that sleeps counts as having slept. A queue does not, because its
/// receiver may find a message before going to sleep.
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
