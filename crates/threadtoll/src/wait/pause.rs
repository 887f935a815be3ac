//! A pause of a known length.
//!
//! The pause hint of a CPU takes 3 to 70 ns, depending on the model. A wait wants about 25 ns
//! between two looks, about half the time that a cache line takes between two near cores. Where the
//! hint is shorter, several make one pause.

// Statistics that order nothing: a model checker would only be slowed down by them.
#![allow(clippy::disallowed_types)]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

use crate::sync::spin_loop;

/// A pause takes about so long, or one hint where that takes longer.
const PAUSE_NS: u64 = 25;
/// Hints in a pause at most.
const MAX_HINTS: u64 = 16;
/// Hints that are timed together.
const TIMED: u64 = 16;

/// Hints in a pause; 0 until they were timed.
static HINTS: AtomicU32 = AtomicU32::new(0);

/// Pauses. Before [`calibrate_pause`] has been called, for the length of one hint.
#[inline(always)]
pub(super) fn pause() {
    spin_loop();
    if cfg!(any(threadtoll_loom, threadtoll_shuttle)) {
        return;
    }
    for _ in 1..HINTS.load(Relaxed) {
        spin_loop();
    }
}

/// Finds out how many hints make a pause, if nobody has: about a microsecond, once in a process.
pub(super) fn calibrate_pause() {
    if HINTS.load(Relaxed) != 0 || cfg!(any(threadtoll_loom, threadtoll_shuttle)) {
        return;
    }
    // The least of a few: a thread that loses its CPU meanwhile takes too long.
    let least = (0..3).map(|_| {
        let began = Instant::now();
        (0..TIMED).for_each(|_| spin_loop());
        began.elapsed().as_nanos() as u64
    });
    HINTS.store(hints(least.min().unwrap_or(0)), Relaxed);
}

/// Hints in a pause, if [`TIMED`] of them take so long.
fn hints(ns: u64) -> u32 {
    (PAUSE_NS * TIMED).checked_div(ns).unwrap_or(1).clamp(1, MAX_HINTS) as u32
}

#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn short_hints_are_repeated() {
        assert_eq!(hints(TIMED * 28), 1);
        assert_eq!(hints(TIMED * 70), 1);
        assert_eq!(hints(TIMED * 3), 8);
        assert_eq!((hints(1), hints(0)), (16, 1));
        calibrate_pause();
        assert!((1..=16).contains(&HINTS.load(Relaxed)));
    }
}
