//! What is measured where, in which groups, and for how long.
//!
//! Everything here is arithmetic on the topology: a plan for another machine's tree is made as well as for this one.

mod cells;
mod groups;
mod requested;
mod sound;
mod survey;

pub use cells::{Choice, Lacking, Site};
pub use groups::{Effort, estimate_ns};
pub use requested::{latency, matrix};
pub use sound::{LONGEST_NS, MOST_PAYLOAD, unsound};
pub use survey::{Depth, survey};

/// Groups of cells, the reference first in each, and what was left out with its reason.
pub type Planned = (Vec<Vec<threadtoll_record::PlannedCell>>, Vec<threadtoll_record::Refused>);
