use std::collections::BTreeSet;

use super::{Axis, Row, Sweep};
use crate::figure::Map;
use crate::units::{share, time};

/// Returns `None` if there is only one number of threads.
pub(super) fn map(sweep: &Sweep<'_>) -> Option<Map> {
    let position = |row: &Row<'_>| match sweep.axis {
        Axis::HoldShare => row.subject.hold_ns,
        Axis::Interval | Axis::None => row.subject.cycle_ns(),
    };
    let threads: BTreeSet<u32> = sweep.rows.iter().map(|row| row.subject.threads).collect();
    let columns: BTreeSet<u64> = sweep.rows.iter().map(position).collect();
    if threads.len() < 2 {
        return None;
    }
    let grid = |figure: &dyn Fn(&Row<'_>) -> Option<f64>| -> Vec<Vec<Option<f64>>> {
        let value = |threads: u32, column: u64| {
            let mut rows = sweep.rows.iter();
            figure(rows.find(|row| (row.subject.threads, position(row)) == (threads, column))?)
        };
        let row = |threads: &u32| columns.iter().map(|column| value(*threads, *column)).collect();
        threads.iter().map(row).collect()
    };
    let heading = |column: &u64| {
        let row = sweep.rows.iter().find(|row| position(row) == *column)?;
        Some(match sweep.axis {
            Axis::HoldShare => share(row.subject.hold_share()),
            Axis::Interval | Axis::None => time(row.subject.cycle_ns() as f64),
        })
    };
    Some(Map {
        across: match sweep.axis {
            Axis::HoldShare => "hold share",
            Axis::Interval | Axis::None => "interval",
        },
        measured: grid(&|row| row.contention.speedup.map(f64::from)),
        predicted: grid(&|row| row.predicted()?.speedup.map(f64::from)),
        columns: columns.iter().filter_map(heading).collect(),
        threads: threads.into_iter().collect(),
        unpredicted: Vec::new(),
    })
}
