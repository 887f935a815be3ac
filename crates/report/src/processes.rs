//! The column for the variance between processes.

use threadtoll_record::Record;

use crate::table::{Cell, Column};
use crate::units::share;

/// The column; `None` if each cell was measured by a single process.
pub(crate) fn column<'c, R>(
    rank: u8,
    rows: &[R],
    record: impl Fn(&R) -> Option<&Record> + 'c,
) -> Option<Column<'c, R>> {
    let known = move |row: &R| record(row)?.between_processes_share;
    if rows.iter().all(|row| known(row).is_none()) {
        return None;
    }
    let title = "share of the blocks’ variance that lies between processes";
    Some(Column::new("between", "processes", rank, title, move |row| {
        Cell::figure(known(row), share)
    }))
}
