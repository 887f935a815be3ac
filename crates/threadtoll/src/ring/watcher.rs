//! The wakers of readers for which a `Select` waits.
//!
//! Each reader has a cell for its waker. Whoever wakes the followers of an end takes the wakers of
//! all readers of the ring, because an end does not know its followers: a reader whose dependency
//! leaves follows others from then on. So a waker may be taken by an end for which its reader does
//! not wait. The `Select` then wakes up, finds nothing, and leaves its waker again, as before each
//! sleep.

use std::iter;
use std::sync::OnceLock;
use std::task::Waker;

use crate::sync::{Arc, mutate};
use crate::wait::WakerCell;

/// The cell of a reader. Those of a ring are a list, which begins with the unused one of the
/// writer.
#[derive(Debug)]
pub(super) struct Watcher {
    cell: WakerCell,
    next: OnceLock<Arc<Watcher>>,
}

impl Watcher {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Watcher { cell: WakerCell::new(), next: OnceLock::new() })
    }

    fn all(&self) -> impl Iterator<Item = &Watcher> {
        iter::successors(Some(self), |watcher| watcher.next.get().map(|next| &**next))
    }

    /// Adds a watcher to the list that begins with this one. Only one thread at a time may call
    /// this.
    pub(super) fn add(&self) -> Arc<Watcher> {
        let last = self.all().last().unwrap_or(self);
        Arc::clone(last.next.get_or_init(Watcher::new))
    }

    /// Wakes every `Select` that has left its waker in the list that begins with this watcher.
    pub(super) fn wake_all(&self) {
        self.all().for_each(|watcher| mutate!(ring_watcher, watcher.cell.wake() => ()));
    }

    /// Leaves a waker. Returns `false` if another end is taking the last one away, so that the
    /// caller has to poll.
    pub(super) fn leave(&self, waker: &Waker) -> bool {
        self.cell.register(waker).is_ok()
    }

    /// Takes the waker back, if it is still there.
    pub(super) fn withdraw(&self) {
        drop(self.cell.withdraw());
    }
}
