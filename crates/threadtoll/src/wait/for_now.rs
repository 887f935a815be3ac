//! Fences for now: how ends that sleep often avoid the barrier that a sleep needs.
//!
//! The barrier interrupts every CPU that runs a thread of the process for some microseconds. So a
//! queue whose ends sleep often has a bit, in the word that ends read after they have published,
//! that makes them fence between the two. While it is set, a sleeper needs a fence only. It decides
//! by the word as it was when the sleeper set its own bit. That is sound whoever has set the bit:
//!
//! - An end that goes to sleep sets it and executes the barrier a last time. The other end sees the
//!   bit in all that it publishes after the barrier.
//! - The other end has set it, and so fences from then on. What it published before is visible to a
//!   sleeper that has read the bit, since both updates are read-modify-writes.
//!
//! An end clears the bit by a read-modify-write as well. Either that finds the bit of a sleeper
//! that has relied on it, which the end sees from then on, or the sleeper finds the bit cleared,
//! and executes the barrier.

use crate::sync::{AtomicU64, Ordering};

/// Number of messages between two sleeps from which one interruption of the other CPUs, of some
/// microseconds, costs less than a fence for each message, of some tens of nanoseconds.
const DENSE: u64 = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 2 } else { 64 };

/// Position in the stream of messages at which somebody last slept. Used by one end alone.
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

    /// Returns `true` if there were so many messages since the last sleep that a barrier for the
    /// next one costs less than a fence for each of them.
    pub(crate) fn is_far(&self, messages: u64) -> bool {
        messages - self.0.load(Ordering::Relaxed) >= DENSE
    }
}
