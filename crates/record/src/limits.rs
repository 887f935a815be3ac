//! Limits that apply both to the types and to the folding of blocks.

pub(crate) const MAX_THREADS: u32 = 1 << 16;
/// Number of longest samples that a record keeps.
pub const WORST: usize = 64;
/// Maximum number of acquisitions in a timeline. Each has a wait and a hold, so there are at most
/// 2,000 events.
pub const TIMELINE: usize = 1000;
/// Largest relative change of the reference's time, from just before a block until just after it,
/// that does not disturb the block. The limit is higher if larger changes are usual.
pub(crate) const DRIFT: f64 = 0.10;
