//! A pause of a known length.
//!
//! A CPU's pause hint takes 3 to 70 ns, depending on the model. A wait needs about 25 ns between
//! two polls, which is half the time that a cache line takes between two close cores. If the hint
//! is shorter, several of them make up one pause.

// These atomics order no other memory access, so a model checker need not see them.
#![allow(clippy::disallowed_types)]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

use crate::sync::{CachePadded, spin_loop};

/// Length of a pause, unless a single hint takes longer.
const PAUSE_NS: u64 = 25;
/// Maximum number of hints in a pause.
const MAX_HINTS: u64 = 16;
/// Number of hints that are timed together.
const TIMED: u64 = 16;

/// Number of hints in a pause; 0 until they have been timed.
static HINTS: CachePadded<AtomicU32> = CachePadded(AtomicU32::new(0));

/// Pauses. Before [`calibrate_pause`] was called, this is a single hint.
#[inline(always)]
pub(crate) fn pause() {
    spin_loop();
    if cfg!(any(threadtoll_loom, threadtoll_shuttle)) {
        return;
    }
    for _ in 1..HINTS.load(Relaxed) {
        spin_loop();
    }
}

/// Times the hints, once per process. Takes about a microsecond.
pub(crate) fn calibrate_pause() {
    if HINTS.load(Relaxed) != 0 || cfg!(any(threadtoll_loom, threadtoll_shuttle)) {
        return;
    }
    // The shortest of three measurements counts, in case the thread loses its CPU.
    let least = (0..3).map(|_| {
        let began = Instant::now();
        (0..TIMED).for_each(|_| spin_loop());
        began.elapsed().as_nanos() as u64
    });
    HINTS.store(hints(least.min().unwrap_or(0)), Relaxed);
}

/// Number of hints in a pause, if [`TIMED`] of them take `ns`.
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
