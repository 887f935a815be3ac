//! What an owner and its handles share.

use crate::sync::{Arc, AtomicUsize, Ordering, this_thread};
use crate::wait::Wait;

/// What an owner and its handles share besides the queue. None of it orders anything else. On cache
/// lines of its own, because each clone of a handle counts itself before it.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Shared {
    pub(super) wait: Wait,
    /// 1 once the owner has been told to stop.
    stopped: AtomicUsize,
    /// The thread that last ran the owner; 0 before.
    own_thread: AtomicUsize,
    /// Number of timers that were cancelled since the owner last looked for them.
    pub(super) cancelled: Arc<AtomicUsize>,
}

impl Shared {
    pub(super) fn new(wait: Wait) -> Self {
        Shared {
            wait,
            stopped: AtomicUsize::new(0),
            own_thread: AtomicUsize::new(0),
            cancelled: Arc::new(AtomicUsize::new(0)),
        }
    }

    /// Returns `true` for the first caller.
    pub(super) fn stop(&self) -> bool {
        self.stopped.swap(1, Ordering::Relaxed) == 0
    }

    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) != 0
    }

    /// Says that this thread runs the owner.
    #[inline]
    pub(super) fn is_run_here(&self) {
        if !self.is_own_thread() {
            self.own_thread.store(this_thread(), Ordering::Relaxed);
        }
    }

    /// Returns `true` on the thread that last ran the owner: a thread sees its own store.
    #[inline]
    pub(super) fn is_own_thread(&self) -> bool {
        self.own_thread.load(Ordering::Relaxed) == this_thread()
    }
}
