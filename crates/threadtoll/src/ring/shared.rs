//! The part of a ring that all its ends share.

use super::progress::Progress;
use super::slots::Slots;
use crate::sync::{AtomicUsize, Ordering};
use crate::wait::Wait;

pub(super) struct Ring<T> {
    /// Dropped by the last end.
    pub(super) slots: Slots<T>,
    /// Number of events between the slowest reader and the writer, at most.
    pub(super) capacity: u64,
    pub(super) writer: Progress,
    /// Number of readers that have not left.
    readers: AtomicUsize,
    pub(super) wait: Wait,
    pub(super) must_fence: bool,
}

// SAFETY: the writer changes an event while no reader may use its slot, and readers share events
// between their threads, as `T: Sync` allows. `Progress` orders these accesses. The last end drops
// the events, on any thread, as `T: Send` allows. All other fields are `Send` and `Sync`.
unsafe impl<T: Send + Sync> Send for Ring<T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Send + Sync> Sync for Ring<T> {}

impl<T> Ring<T> {
    pub(super) fn new(
        capacity: usize,
        make: impl FnMut() -> T,
        wait: Wait,
        must_fence: bool,
    ) -> Self {
        Ring {
            slots: Slots::new(capacity, make),
            capacity: capacity as u64,
            writer: Progress::new(wait, must_fence),
            readers: AtomicUsize::new(0),
            wait,
            must_fence,
        }
    }

    pub(super) fn reader_comes(&self) {
        // Relaxed: the ring has not been started.
        self.readers.fetch_add(1, Ordering::Relaxed);
    }

    /// Called by a reader when it leaves.
    pub(super) fn reader_leaves(&self, progress: &Progress) {
        progress.leave();
        // AcqRel: the last one comes after the others, so a writer that learns of it finds that all
        // have left.
        if self.readers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.writer.say_readers_gone();
        }
        // Last, so that a writer that is woken finds all of this.
        progress.wake_followers();
    }
}
