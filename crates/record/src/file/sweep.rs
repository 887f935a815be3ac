//! The end of a sweep of message rates. A group is not measured once all of its rows are above
//! their saturation. It then counts as complete, without records.
//!
//! Only earlier groups decide if a group is measured. They are complete by then, so a run, its
//! resumption and every reader of its file leave out the same groups.

use std::collections::BTreeMap;

use crate::{Cell, PlannedCell, Record};

use super::read::Results;

#[derive(Clone, Copy)]
struct Highest {
    rate_per_s: u64,
    /// True if the row was saturated in all groups at that rate.
    saturated: bool,
}

/// The cell without its rate, and the rate; `None` if the cell has no rate.
fn row(cell: &Cell) -> Option<(Cell, u64)> {
    let rate_per_s = cell.queue()?.load.rate_per_s?.get();
    let mut row = cell.clone();
    if let crate::Subject::Queue(queue) = &mut row.subject {
        queue.load.rate_per_s = None;
    }
    Some((row, rate_per_s))
}

fn take(highest: &mut BTreeMap<Cell, Highest>, record: &Record) {
    let Some((row, rate_per_s)) = row(&record.cell) else { return };
    let saturated = record.figures.open_loop().is_some_and(|own| own.open_loop.saturated);
    let known = highest.entry(row).or_insert(Highest { rate_per_s, saturated });
    if rate_per_s > known.rate_per_s {
        *known = Highest { rate_per_s, saturated };
    } else if rate_per_s == known.rate_per_s {
        known.saturated &= saturated;
    }
}

/// Returns `true` if every row of `group` was saturated at a lower rate. `group` must not contain
/// cells that were given up.
fn all_saturated(group: &[PlannedCell], highest: &BTreeMap<Cell, Highest>) -> bool {
    let mut rows = group.iter().filter_map(|planned| row(&planned.cell)).peekable();
    rows.peek().is_some()
        && rows.all(|(row, rate_per_s)| {
            highest.get(&row).is_some_and(|row| row.saturated && row.rate_per_s < rate_per_s)
        })
}

impl Results {
    /// For each group, `true` if the group is complete: it has records, or is [above
    /// saturation](Self::above_saturation).
    pub fn complete_groups(&self) -> Vec<bool> {
        let mut complete = self.above_saturation();
        for (complete, group) in complete.iter_mut().zip(&self.groups) {
            *complete |= group.records.is_some();
        }
        complete
    }

    /// For each group, `true` if the group is not measured, because each of its rows was saturated
    /// at the next lower rate at which the row was measured. Always `false` unless the plan is
    /// [until saturated](crate::Plan::until_saturated).
    pub fn above_saturation(&self) -> Vec<bool> {
        let mut above = vec![false; self.groups.len()];
        if !self.plan.until_saturated {
            return above;
        }
        let mut highest = BTreeMap::new();
        for (index, group) in self.groups.iter().enumerate() {
            match &group.records {
                Some(records) => records.iter().for_each(|record| take(&mut highest, record)),
                None if self.plan.repeated_by(index).is_some() => break,
                None if all_saturated(&self.remaining_cells(index), &highest) => {
                    above[index] = true;
                }
                // Nothing can be decided for groups after an incomplete one.
                None => break,
            }
        }
        above
    }

    /// Rows of the groups above saturation, by the highest rate at which each row was measured.
    pub fn saturated_rows(&self) -> BTreeMap<u64, Vec<Cell>> {
        let above = self.above_saturation();
        let records = self.groups.iter().filter_map(|group| group.records.as_ref()).flatten();
        let mut highest = BTreeMap::new();
        records.for_each(|record| take(&mut highest, record));
        let mut rows: BTreeMap<u64, Vec<Cell>> = BTreeMap::new();
        let left_out = (0..self.groups.len()).filter(|index| above[*index]);
        for planned in left_out.flat_map(|index| self.remaining_cells(index).into_owned()) {
            let Some((row, rate_per_s)) = row(&planned.cell) else { continue };
            let Some(measured) = highest.get(&row).map(|row| row.rate_per_s) else { continue };
            let of_rate = rows.entry(measured).or_default();
            // Skips a row that another group measured at this rate or a higher one.
            if measured < rate_per_s && !of_rate.contains(&row) {
                of_rate.push(row);
            }
        }
        rows.retain(|_, rows| !rows.is_empty());
        rows
    }
}
