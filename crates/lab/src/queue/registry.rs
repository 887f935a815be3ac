//! All queues that can be measured.

use std::sync::Arc;

use threadtoll_record::{PlannedCell, QueueSubject};

use super::ours;
use super::scenario::Scenario;
use super::way::{Flow, Queue, Usage, class};
use crate::program::Program;

/// All known queues: ours first, then the caller's peers.
#[derive(Clone, Debug)]
pub struct Queues {
    all: Arc<[Queue]>,
}

impl Default for Queues {
    fn default() -> Self {
        Self::with(Vec::new())
    }
}

impl Queues {
    /// Our queues, followed by these peers.
    pub fn with(peers: Vec<Queue>) -> Self {
        Queues { all: ours().into_iter().chain(peers).collect() }
    }

    /// All queues, ours first.
    pub fn all(&self) -> impl Iterator<Item = &Queue> {
        self.all.iter()
    }

    /// Returns the queue with this name.
    pub fn find(&self, name: &str) -> Option<&Queue> {
        self.all().find(|queue| queue.name == name)
    }

    /// The program of a cell's threads; `None` if there is no such queue or it does not support the
    /// cell.
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
