//! The word on which a `Select` sleeps, and the waker by which other ends wake it.

#![allow(clippy::disallowed_types, reason = "a waker is made of an `Arc` of the standard library")]

use std::sync::Arc;
use std::task::{Wake, Waker};

use crate::sync::{AtomicU32, Ordering, mutate};
use crate::wait::{ALIVE, Parker, Wait, WaitStats, wake};

/// Set while the `Select` sleeps, or is about to. `ALIVE` is always set: a forked child may use its
/// copy of a `Select`.
const SLEEPS: u32 = 1 << 1;

/// Sides of [`WaitStats`].
const RINGER: usize = 0;
const SELECT: usize = 1;

pub(super) struct Bell {
    shared: Arc<Shared>,
    /// Rings the bell.
    pub(super) waker: Waker,
}

struct Shared {
    word: AtomicU32,
    stats: WaitStats,
}

impl Bell {
    pub(super) fn new(wait: Wait) -> Self {
        let shared = Arc::new(Shared { word: AtomicU32::new(ALIVE), stats: WaitStats::new(wait) });
        Bell { waker: Waker::from(Arc::clone(&shared)), shared }
    }

    /// Clears the bit that a wait may have left set because it panicked.
    pub(super) fn reset(&self) {
        let word = &self.shared.word;
        if word.load(Ordering::Relaxed) & SLEEPS != 0 {
            word.fetch_and(!SLEEPS, Ordering::Relaxed);
        }
    }

    pub(super) fn parker(&self) -> Parker<'_> {
        Parker {
            word: &self.shared.word,
            bit: SLEEPS,
            sticky_bits: 0,
            stats: &self.shared.stats,
            side: SELECT,
            task: None,
            pending_wakeups: None,
            spins_before_park: 0,
            process: 0,
        }
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        mutate!(ring_bell, wake(&self.word, SLEEPS, None, &self.stats, RINGER) => ());
    }
}
