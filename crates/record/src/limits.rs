//! Limits that both the types and the folding of blocks keep.

/// Most threads that a cell may have.
pub(crate) const MAX_THREADS: u32 = 1 << 16;
/// Number of longest samples in a record.
pub const WORST: usize = 64;
/// Largest change of the reference between two of its blocks for which the blocks between them
/// count as undisturbed, unless it usually changes more.
pub(crate) const DRIFT: f64 = 0.10;
