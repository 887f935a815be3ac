//! What is measured where, in which groups, and for how long.
//!
//! Everything here is arithmetic on the topology: a plan for another machine's tree is made as well
//! as for this one.

mod cells;
mod fit;
mod groups;
mod locks;
mod queues;
mod requested;
mod survey;
mod validate;

use threadtoll_record::{PlannedCell, Refused};

pub use cells::{CpuSelection, MechanismChoice, Missing};
pub use fit::fit;
pub use groups::{MAX_SAMPLES, ROUNDS, budget, estimate_ns};
pub use locks::{LockChoice, contention};
pub use queues::{MAX_BATCH, QueueChoice, ask_reply_budget, queue, stream_budget, wants};
pub use requested::{latency, matrix};
pub use survey::{Depth, survey};
pub use validate::{MAX_NS, MAX_PAYLOAD, validate};

/// Groups of cells, the reference first in each, and what was left out with its reason.
pub type Planned = (Vec<Vec<PlannedCell>>, Vec<Refused>);
