//! A thread that counts its interruptions.

use std::sync::atomic::{AtomicBool, Ordering};

use super::time::Clock;

/// A reading this much later than the previous one means an interruption.
const INTERRUPTED_NS: u64 = 300;

/// Result of an observer.
pub(crate) struct Seen {
    /// Readings of the clock per microsecond, its only work.
    pub(crate) readings_per_us: f64,
    /// Percent of its time lost to interruptions.
    pub(crate) lost_percent: f64,
    pub(crate) interruptions_per_s: f64,
}

/// Reads the clock without a pause until `over` is set.
pub(crate) fn observe(over: &AtomicBool) -> Seen {
    let clock = Clock::start();
    let (mut last, mut lost, mut interruptions, mut readings) = (0, 0, 0u32, 0u64);
    while !over.load(Ordering::Relaxed) {
        let now = clock.ns();
        readings += 1;
        if now - last >= INTERRUPTED_NS {
            lost += now - last;
            interruptions += 1;
        }
        last = now;
    }
    let ns = last as f64;
    Seen {
        readings_per_us: readings as f64 * 1e3 / ns,
        lost_percent: 100.0 * lost as f64 / ns,
        interruptions_per_s: f64::from(interruptions) * 1e9 / ns,
    }
}
