use threadtoll_record::{Idle, IdleState, Record};

use super::columns::Column;
use super::{Comparison, Row};
use crate::clean::clean;
use crate::table::{Cell, Note};
use crate::units::share;

fn idle(record: &Record) -> Option<&Idle> {
    record.figures.open_loop()?.idle.as_ref()
}

fn deepest(record: &Record) -> Option<&IdleState> {
    idle(record)?.deepest()
}

/// Such as `C6 97%`.
fn state(state: &IdleState) -> String {
    format!("{} {}", clean(&state.name), share(state.share.get()))
}

fn has_states(row: &Row<'_>) -> bool {
    idle(&row.record).is_some_and(|idle| !idle.states.is_empty())
}

/// The column for the deepest state, if any row has states.
pub(super) fn column<'c, 'a>(comparison: &'c Comparison<'a>) -> Option<Column<'c, 'a>> {
    let column = || {
        Column::new("", "idle in", 3, |row| match deepest(&row.record) {
            Some(deepest) => Cell::new(Some(deepest.share.get()), state(deepest)),
            None if has_states(row) => Cell::text("none"),
            None => Cell::unknown(),
        })
    };
    comparison.rows.iter().any(has_states).then(column)
}

/// Note for kernels that have no idle-state counters.
pub(super) fn note(comparisons: &[Comparison<'_>]) -> Option<Note> {
    let rows = || comparisons.iter().flat_map(|comparison| &comparison.rows);
    let all = || rows().filter_map(|row| idle(&row.record));
    let no_counters = all().next().is_some() && all().all(|idle| idle.states.is_empty());
    let text = "This kernel has no idle-state counters (no cpuidle driver): it is not known how deep the receiver’s CPU slept.";
    no_counters.then(|| Note::new(text))
}
