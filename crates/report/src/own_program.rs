//! The column for rows that programs in other languages measured themselves.

use threadtoll_record::Record;

use crate::table::{Cell, Column};
use crate::units::long_time;

pub(crate) fn column<'c, R>(
    rank: u8,
    rows: &[R],
    record: impl Fn(&R) -> Option<&Record> + 'c,
) -> Option<Column<'c, R>> {
    let own = move |row: &R| record(row)?.own_program;
    if rows.iter().all(|row| own(row).is_none()) {
        return None;
    }
    Some(Column::new("own program", "warm-up", rank, move |row| match own(row) {
        None => Cell::empty(),
        Some(own) => {
            let ns = own.warm_up_ms.map(|ms| ms.as_f64() * 1e6);
            Cell::new(ns, ns.map_or_else(|| "yes".to_string(), long_time))
        }
    }))
}
