//! Temporary fences: how ends that sleep often avoid the barrier that a sleep otherwise needs.
//!
//! The barrier interrupts, for some microseconds, every CPU that runs a thread of the process. So a
//! queue whose ends sleep often has a bit that makes them execute a fence instead. The bit is in
//! the word that ends read after they have published, and the fence comes between publishing and
//! reading. While the bit is set, an end that goes to sleep needs only a fence. The value that the
//! word had when the sleeper set its own bit decides if the fence is enough. That is sound,
//! whichever end has set the fence bit:
//!
//! - If the sleeper has set the fence bit, the sleeper also executed the barrier one last time. The
//!   other end sees the bit in everything that it publishes after the barrier.
//! - If the other end has set the fence bit, that end executes fences from then on. What it
//!   published before is visible to a sleeper that has read the bit, because both updates are
//!   read-modify-writes.
//!
//! An end that clears the fence bit also does so by a read-modify-write. There are two cases.
//! Either it finds the bit of a sleeper that relied on the fence, so that it knows about the
//! sleeper from then on; or the sleeper finds the fence bit cleared, and executes the barrier.

use crate::sync::{AtomicU64, Ordering};

/// Minimum number of messages between two sleeps for which one interruption of the other CPUs (some
/// microseconds) costs less than a fence for each message (some tens of nanoseconds).
const DENSE: u64 = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 2 } else { 64 };

/// Position in the stream of messages at which a thread last slept. Used by one end only.
#[derive(Debug)]
pub(crate) struct LastSleep(AtomicU64);

impl LastSleep {
    pub(crate) fn new() -> Self {
        LastSleep(AtomicU64::new(0))
    }

    /// Records a sleep after this many messages.
    pub(crate) fn record(&self, messages: u64) {
        self.0.store(messages, Ordering::Relaxed);
    }

    /// Returns `true` if there have been enough messages since the last sleep for a barrier at the
    /// next sleep to cost less than a fence for each of them.
    pub(crate) fn is_far(&self, messages: u64) -> bool {
        messages - self.0.load(Ordering::Relaxed) >= DENSE
    }
}
