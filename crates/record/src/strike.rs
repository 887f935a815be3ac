use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cell, Layout, Pause, Plan, Subject, Text};

/// A cell that failed. Neither the cell nor the unmeasured cells of its row have a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Strike {
    /// Id of the run.
    pub run: Text,
    /// Time at which the cell was given up, RFC 3339 UTC.
    pub at: Text,
    /// Index of the group in the plan.
    pub group: usize,
    /// Attempt at measuring the group, from 1. The failure ends the attempt.
    pub attempt: u32,
    /// Index of the cell in its group.
    pub cell: usize,
    /// The failure, as a clause such as `it made no progress for 20 s`.
    pub what: Text,
}

impl Strike {
    /// Returns `true` if this line gives up the given cell: the cell that failed, or a cell of the
    /// failed cell's row in the same group or a later one.
    pub fn covers(&self, plan: &Plan, group: usize, cell: usize) -> bool {
        let (Some(failed), Some(other)) =
            (plan.find(self.group, self.cell), plan.find(group, cell))
        else {
            return false;
        };
        group >= self.group && failed.same_row(other) && plan.may_strike(group, cell)
    }

    /// Name of the row that was given up, such as `rtrb (poll)`.
    pub fn name(&self, plan: &Plan) -> String {
        plan.find(self.group, self.cell).map_or_else(String::new, Cell::row)
    }

    pub(crate) fn validate(&self, plan: &Plan) -> Result<(), String> {
        if self.run != plan.run {
            return Err("the line about a failed cell belongs to another run".into());
        }
        let Some(group) = plan.groups.get(self.group) else {
            return Err(format!("the plan has no group {}", self.group));
        };
        if self.cell >= group.len() {
            return Err(format!("group {} of the plan has no cell {}", self.group, self.cell));
        }
        if !plan.may_strike(self.group, self.cell) {
            return Err("a reference row was given up, but the run did not end".into());
        }
        Ok(())
    }
}

impl Plan {
    fn find(&self, group: usize, cell: usize) -> Option<&Cell> {
        Some(&self.groups.get(group)?.get(cell)?.cell)
    }

    /// Returns `true` if the group is still meaningful without the cell, because the cell is not
    /// the group's reference.
    pub fn may_strike(&self, group: usize, cell: usize) -> bool {
        let cells = self.find(group, 0).zip(self.find(group, cell));
        cells.is_some_and(|(reference, cell)| cell != reference)
    }
}

impl Cell {
    fn same_row(&self, other: &Cell) -> bool {
        let same = match (&self.subject, &other.subject) {
            (Subject::Queue(one), Subject::Queue(other)) => one.wait == other.wait,
            (Subject::Mechanism { .. }, Subject::Mechanism { .. }) => {
                (self.line, self.pause) == (other.line, other.pause)
            }
            (Subject::Lock(_), Subject::Lock(_)) => true,
            _ => false,
        };
        same && self.name() == other.name()
    }

    fn row(&self) -> String {
        let mut ways = Vec::new();
        ways.extend(self.queue().map(|queue| queue.wait.name()));
        ways.extend((self.line == Some(Layout::Shared)).then_some("shared line"));
        ways.extend((self.pause == Some(Pause::On)).then_some("pause"));
        if ways.is_empty() {
            self.name().to_string()
        } else {
            format!("{} ({})", self.name(), ways.join(", "))
        }
    }
}
