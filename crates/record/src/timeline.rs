use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::TIMELINE;
use crate::{Count, Plan, Text};

/// The first acquisitions of a block in which threads contend for a lock. A thread that neither
/// waits for the lock nor holds it is working.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    /// Id of the run.
    pub run: Text,
    /// Index of the group in the plan.
    pub group: usize,
    /// Attempt at measuring the group, from 1.
    pub attempt: u32,
    /// Index of the cell in its group.
    pub cell: usize,
    /// Index of the block's round, from 0.
    pub seq: u32,
    /// True if no disturbance of the block reached its threshold.
    pub clean: bool,
    /// Length of the timeline, in nanoseconds.
    pub elapsed_ns: Count,
    /// Acquisitions of each thread, in order, at most 1,000 in all. Each has three times, in
    /// nanoseconds since the timeline began: when the lock was requested, acquired and released.
    /// Times before the beginning count as 0, and times after the end as `elapsed_ns`.
    pub acquisitions: Vec<Vec<[Count; 3]>>,
}

impl Timeline {
    pub(crate) fn validate(&self, plan: &Plan) -> Result<(), String> {
        if self.run != plan.run {
            return Err("the timeline belongs to another run".into());
        }
        let Some(planned) = plan.groups.get(self.group).and_then(|group| group.get(self.cell))
        else {
            return Err(format!("the plan has no cell {} in group {}", self.cell, self.group));
        };
        if self.seq >= planned.budget.rounds {
            return Err(format!("the plan has no round {} in group {}", self.seq, self.group));
        }
        let threads = planned.cell.lock().map_or(0, |lock| lock.threads as usize);
        if threads < 2 || self.acquisitions.len() != threads {
            return Err("the timeline does not match its cell's lock or number of threads".into());
        }
        let count: usize = self.acquisitions.iter().map(Vec::len).sum();
        if !(1..=TIMELINE).contains(&count) {
            return Err(format!("a timeline must have 1 to {TIMELINE} acquisitions"));
        }
        let in_order = |thread: &Vec<[Count; 3]>| {
            let moments = thread.as_flattened();
            moments.is_sorted() && moments.last().is_none_or(|last| *last <= self.elapsed_ns)
        };
        if self.elapsed_ns.get() == 0 || !self.acquisitions.iter().all(in_order) {
            return Err("the acquisitions of the timeline are not in order".into());
        }
        Ok(())
    }
}
