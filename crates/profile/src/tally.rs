//! Bounded counts.

use std::collections::HashMap;

/// Maximum number of kinds, such as threads, that are counted separately.
pub(crate) const MAX_KINDS: usize = 4096;

/// Counts one more of a kind. Ignores a new kind if there are too many already.
pub(crate) fn count(counts: &mut HashMap<u32, u64>, of: u32) {
    if counts.len() < MAX_KINDS || counts.contains_key(&of) {
        *counts.entry(of).or_default() += 1;
    }
}
