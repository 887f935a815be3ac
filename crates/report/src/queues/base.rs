//! Ratios of rows to the same queue with one receiver, or with messages that are moved.

use threadtoll_record::{Against, Load, Record};

use super::decided;
use crate::table::Cell;
use crate::units::{digits_range, ratio};

fn against(record: &Record) -> Option<&Against> {
    let base = record.cell.queue()?.load.base()?;
    record.against.iter().find(|against| {
        let load = |load: &Load| *load == base;
        against.cell.queue().is_some_and(|other| load(&other.load))
    })
}

pub(super) fn cell(record: &Record) -> Cell {
    let Some(against) = against(record) else { return Cell::unknown() };
    Cell {
        verdict: decided(against),
        title: digits_range(against.interval95.map(f64::from)),
        ..Cell::figure(Some(against.ratio), ratio)
    }
}
