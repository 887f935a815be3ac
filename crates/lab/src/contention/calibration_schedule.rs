//! Number and length of the calibration runs before a group of locks.

use threadtoll_record::{LockSubject, Work};

/// Slices per median.
pub(crate) const SLICES: usize = 41;
/// Length of a slice: CPUs take a millisecond or so to settle at the frequency that they have in a
/// block, and ticks belong to both.
pub(crate) const SLICE_NS: u64 = 5_000_000;
/// A slice's warm-up.
pub(crate) const SLICE_WARM_UP_NS: u64 = 500_000;
/// Time until all threads have a slice's task, about.
const LEAD_NS: u64 = 500_000;
/// Slices for measuring how much threads slow each other down. They span over half a second,
/// because load on resources shared with other tenants changes every tenth of a second.
const SLOWDOWN_SLICES: usize = 120;
/// Most CPUs on which single-thread speed is measured.
pub(crate) const MAX_ALONE: usize = 8;
/// Sleeps whose overshoot is measured, over all threads, if time allows.
const SLEEPS: u64 = 400;
const SLEEPING_NS: u64 = 3_000_000_000;

/// Rounds of slices: one on each of some CPUs alone, and one on all together.
pub(crate) fn slowdown_rounds(alone_on: usize) -> usize {
    (SLOWDOWN_SLICES / (alone_on + 1)).max(SLICES)
}

/// Sleep cycles to measure per thread, and the time limit in nanoseconds.
pub(crate) fn sleeps(subject: &LockSubject, threads: u32) -> (u64, u64) {
    let cycles = (SLEEPS / u64::from(threads.max(1))).max(6);
    let cycle_ns = subject.cycle_ns();
    (cycles, cycles.saturating_mul(cycle_ns).min(SLEEPING_NS.max(cycle_ns.saturating_mul(2))))
}

/// Estimated calibration time of a cell in nanoseconds.
pub(crate) fn calibration_ns(subject: &LockSubject) -> u64 {
    match subject.work {
        Work::Sleep => sleeps(subject, subject.threads).1,
        // Single-thread speed, all-thread speed, and the cost of the loop with and without the
        // lock.
        Work::Spin => {
            let alone_on = (subject.threads as usize).min(MAX_ALONE);
            let slices = slowdown_rounds(alone_on) * (alone_on + 1) + 6 * SLICES;
            slices as u64 * (LEAD_NS + SLICE_WARM_UP_NS + SLICE_NS)
        }
    }
}
