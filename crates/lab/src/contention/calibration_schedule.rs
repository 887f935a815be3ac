//! Number and length of the calibration runs before a group of locks is measured.

use threadtoll_record::{LockSubject, Work};

use super::repeated::BATCHES;

/// Number of passes in which a group of cells is calibrated. Each pass repeats every measurement,
/// so that the repeats of each are spread over the whole calibration: wake-ups and speeds drift
/// from one second to the next.
pub(crate) const PASSES: usize = 3;

/// Number of slices (short timed runs) over which a median is taken, in all passes together.
pub(crate) const SLICES: usize = 45;
/// Time that a CPU needs to reach its frequency after idling for some milliseconds: on a virtual
/// machine with an EPYC, it computed 19% more slowly for the first 0.5 to 0.75 ms, and at full
/// speed after 1.5 ms.
pub(crate) const SETTLING_NS: u64 = 2_000_000;
/// Length of a slice: long enough to include timer ticks, as blocks do.
pub(crate) const SLICE_NS: u64 = 5_000_000;
/// Warm-up of a slice.
pub(crate) const SLICE_WARM_UP_NS: u64 = SETTLING_NS;
/// Approximate time from the start of a slice until all threads have received their task.
const LEAD_NS: u64 = 500_000;
/// Number of slices that measure how much threads slow each other down. The number is high because
/// the load that other tenants put on shared resources changes every tenth of a second.
const SLOWDOWN_SLICES: usize = 135;
/// Minimum number of cycles in a slice that measures slow-down; the slice is longer than others if
/// necessary.
const SLOWDOWN_CYCLES: u64 = 20;
/// Maximum length of a slice that measures slow-down, in nanoseconds.
const MAX_SLOWDOWN_NS: u64 = 50_000_000;
/// Maximum number of CPUs on which single-thread speed is measured.
pub(crate) const MAX_ALONE: usize = 8;
/// Number of sleeps whose overshoot is measured, over all threads and passes; fewer if these take
/// longer than `SLEEPING_NS`.
const SLEEPS: u64 = 400;
const SLEEPING_NS: u64 = 3_000_000_000;

/// Number of rounds of slices in a pass. In each round, `alone_on` threads run alone, one after
/// another, in a slice each, and then all threads run together in one slice.
pub(crate) fn slowdown_rounds(alone_on: usize) -> usize {
    (SLOWDOWN_SLICES / (alone_on + 1)).max(BATCHES) / PASSES
}

/// Length of these slices.
pub(crate) fn slowdown_slice_ns(subject: &LockSubject) -> u64 {
    subject.cycle_ns().saturating_mul(SLOWDOWN_CYCLES).clamp(SLICE_NS, MAX_SLOWDOWN_NS)
}

/// Number of sleep cycles to measure per thread in a pass, and the time limit of a pass in
/// nanoseconds.
pub(crate) fn sleeps(subject: &LockSubject, threads: u32) -> (u64, u64) {
    let passes = PASSES as u64;
    let cycles = (SLEEPS / passes / u64::from(threads.max(1))).max(2);
    let cycle_ns = subject.cycle_ns();
    let limit_ns = (SLEEPING_NS / passes).max(cycle_ns.saturating_mul(2));
    (cycles, cycles.saturating_mul(cycle_ns).min(limit_ns))
}

/// Estimated calibration time of a cell in nanoseconds.
pub(crate) fn calibration_ns(subject: &LockSubject) -> u64 {
    match subject.work {
        Work::Sleep => PASSES as u64 * sleeps(subject, subject.threads).1,
        // Slices for: speed of single threads, speed of all threads, and cost of the loop with and
        // without the lock.
        Work::Spin => {
            let alone_on = (subject.threads as usize).min(MAX_ALONE);
            let around_ns = LEAD_NS + SLICE_WARM_UP_NS;
            let slowdown = PASSES * slowdown_rounds(alone_on) * (alone_on + 1);
            slowdown as u64 * (around_ns + slowdown_slice_ns(subject))
                + 6 * SLICES as u64 * (around_ns + SLICE_NS)
        }
    }
}
