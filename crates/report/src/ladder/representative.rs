use threadtoll_record::{Cell, Class, Layout, Pause, Placement, Record};

use super::Row;
use crate::class::{class, slept};

/// The mechanism that represents those that sleep.
pub(super) const SLEEPER: &str = "futex";

/// The record that represents all mechanisms of a class. It is always that of `atomic-store` or
/// `futex`, so that noise does not decide the choice. If that mechanism was not measured and the
/// class has a single record, that record represents the class.
pub(crate) fn representative<'r>(rows: &'r [Row<'_>], wanted: Class) -> Option<&'r Record> {
    let name = match wanted {
        Class::Spin => "atomic-store",
        Class::Sleep => SLEEPER,
        _ => return None,
    };
    let eligible = |record: &&Record| {
        class(&record.cell) == Some(wanted)
            && is_plain(&record.cell)
            && record.cell.line.is_none_or(|line| line == Layout::Own)
            && record.cell.pause.is_none_or(|pause| pause == Pause::Off)
            && p50(record).is_some()
            && (wanted != Class::Sleep || slept(record))
    };
    let records: Vec<&Record> = pinned(rows).filter(eligible).collect();
    match (records.iter().find(|record| record.cell.name() == name), records.as_slice()) {
        (Some(named), _) => Some(named),
        (None, [only]) => Some(only),
        _ => None,
    }
}

pub(crate) fn pinned<'r>(rows: &'r [Row<'_>]) -> impl Iterator<Item = &'r Record> {
    rows.iter().filter_map(|row| row.record(Placement::Pinned))
}

pub(crate) fn p50(record: &Record) -> Option<f64> {
    record.one_way_p50().filter(|p50| *p50 > 0.0 && p50.is_finite())
}

/// A plain cell has messages of 8 B, no neighbours, and no spinner that keeps the CPU awake.
pub(crate) fn is_plain(cell: &Cell) -> bool {
    cell.payload_bytes == 8 && cell.neighbour.is_none() && !cell.keep_awake
}
