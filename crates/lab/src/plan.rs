//! Plans: cells to measure, their CPUs, their groups, and their measuring time.
//!
//! A plan depends only on the topology, so it can also be made for another machine.

mod cells;
mod groups;
mod locks;
mod queues;
mod remaining;
mod requested;
mod split_blocks;
mod survey;
mod validate;

use threadtoll_record::{PlannedCell, Refused};

pub use crate::budget::{MAX_BLOCK_SAMPLES, MAX_SAMPLES, ROUNDS, budget};
pub use cells::{CpuSelection, MechanismChoice, Missing};
pub use groups::estimate_ns;
pub use locks::{LockChoice, contention};
pub use queues::{QueueChoice, queue, wants};
pub use remaining::{remaining_ns, wait_ns};
pub use requested::{latency, matrix};
pub use split_blocks::split_blocks;
pub use survey::{Depth, survey};
pub use validate::{MAX_NS, MAX_PAYLOAD, validate};

/// Groups of cells, each beginning with the reference cell; and the refused cells, with reasons.
pub type Planned = (Vec<Vec<PlannedCell>>, Vec<Refused>);
