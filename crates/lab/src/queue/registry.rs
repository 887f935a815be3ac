//! All queues that can be measured.

use threadtoll_record::{PlannedCell, QueueSubject};

use super::ours;
use super::scenario::Scenario;
use super::way::{Flow, Queue, Usage, class};
use crate::program::Program;
use crate::rows::{Rows, row};

row!(Queue, ours());

/// All known queues: ours first, then the caller's peers.
pub type Queues = Rows<Queue>;

impl Queues {
    /// Returns the program of a cell's threads; `None` if the queue is unknown or does not support
    /// the cell.
    pub(crate) fn program(&self, planned: &PlannedCell, subject: &QueueSubject) -> Option<Program> {
        let scenario = Scenario::of(&planned.experiment)?;
        let queue = self.find(&subject.queue)?;
        let usage = Usage {
            flow: Flow::of(subject),
            class: class(subject.wait),
            grows: !queue.bounded(),
            load: subject.load.clone(),
            payload_bytes: planned.cell.payload_bytes,
        };
        queue.way(subject.wait)?.program(scenario.name, usage)
    }
}
