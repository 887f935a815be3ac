//! Limits that apply both to the types and to the folding of blocks.

/// Maximum number of threads that a cell may have.
pub(crate) const MAX_THREADS: u32 = 1 << 16;
/// Number of longest samples that a record keeps.
pub const WORST: usize = 64;
/// Maximum number of acquisitions in a timeline. Each has a wait and a hold, so there are at most
/// 2,000 events.
pub const TIMELINE: usize = 1000;
/// A block counts as undisturbed if the time of the reference changes by at most this fraction from
/// just before the block until just after it. The limit is higher if the reference usually changes
/// by more.
pub(crate) const DRIFT: f64 = 0.10;
