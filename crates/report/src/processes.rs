//! The column for the variance between processes.

use threadtoll_record::Record;

use crate::table::{Cell, Column};
use crate::units::share;

pub(crate) fn column<'c, R>(
    rank: u8,
    rows: &[R],
    record: impl Fn(&R) -> Option<&Record> + 'c,
) -> Option<Column<'c, R>> {
    let known = move |row: &R| record(row)?.between_processes_share;
    if rows.iter().all(|row| known(row).is_none()) {
        return None;
    }
    Some(Column::new("between", "processes", rank, move |row| Cell::figure(known(row), share)))
}
