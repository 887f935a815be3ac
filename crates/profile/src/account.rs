//! Shares, queues and their intervals, folded from looks.

mod mean;
mod occupation;

pub use mean::{Estimate, Mean};
pub use occupation::{Device, Occupation};
