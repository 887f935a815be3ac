//! Number and length of the calibration runs that precede a group of locks.

use threadtoll_record::{LockSubject, Work};

/// Slices of which the median counts: short enough that most of them pass between two
/// interruptions, and enough of them that the others drop out.
pub(crate) const SLICES: usize = 41;
pub(crate) const SLICE_NS: u64 = 500_000;
/// Slices that show by how much threads slow each other down: over half a second, because what they
/// share with others changes from one tenth of a second to the next.
const SLOWDOWN_SLICES: usize = 602;
/// Most CPUs on which the speed of one thread alone is measured.
pub(crate) const MAX_ALONE: usize = 8;
/// Sleeps whose overshoot is measured, over all threads, as far as time allows.
const SLEEPS: u64 = 400;
/// Longest time for which sleeps are watched.
const SLEEPING_NS: u64 = 3_000_000_000;

/// Rounds of slices, one on each of some CPUs alone and one on all together.
pub(crate) fn slowdown_rounds(alone_on: usize) -> usize {
    (SLOWDOWN_SLICES / (alone_on + 1)).max(SLICES)
}

/// Sleeping cycles of each thread that are watched, and for how long, in nanoseconds.
pub(crate) fn sleeps(subject: &LockSubject, threads: u32) -> (u64, u64) {
    let cycles = (SLEEPS / u64::from(threads.max(1))).max(6);
    let cycle_ns = subject.cycle_ns();
    (cycles, cycles.saturating_mul(cycle_ns).min(SLEEPING_NS.max(cycle_ns.saturating_mul(2))))
}

/// Estimated time for the calibration of a cell, in nanoseconds, near enough for a forecast.
pub(crate) fn calibration_ns(subject: &LockSubject) -> u64 {
    match subject.work {
        Work::Sleep => sleeps(subject, subject.threads).1,
        // The speed of one thread and of all, and the cost of the loop with the lock and without.
        Work::Spin => {
            let alone_on = (subject.threads as usize).min(MAX_ALONE);
            let slices = slowdown_rounds(alone_on) * (alone_on + 1) + 6 * SLICES;
            // A slice, its warm-up and its notice.
            slices as u64 * 2 * SLICE_NS
        }
    }
}
