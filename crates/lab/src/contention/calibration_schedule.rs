use threadtoll_record::{LockSubject, Work};

use super::repeated::BATCHES;

/// Number of calibration passes over a group. Each pass repeats every measurement, because wake-ups
/// and speeds drift from one second to the next.
pub(crate) const PASSES: usize = 3;

/// Number of slices (short timed runs) per median, over all passes.
pub(crate) const SLICES: usize = 45;
/// Time for a CPU to reach full speed after some idle milliseconds. An EPYC under virtualisation
/// computed 19% more slowly for the first 0.5 to 0.75 ms, and at full speed after 1.5 ms.
pub(crate) const SETTLING_NS: u64 = 2_000_000;
/// Length of a slice: long enough to include timer ticks, as blocks do.
pub(crate) const SLICE_NS: u64 = 5_000_000;
pub(crate) const SLICE_WARM_UP_NS: u64 = SETTLING_NS;
/// Approximate time from the start of a slice until all threads have received their task.
const LEAD_NS: u64 = 500_000;
/// Number of slices that measure how much threads slow each other down: high, because the load that
/// other tenants put on shared resources changes every tenth of a second.
const SLOWDOWN_SLICES: usize = 135;
/// Minimum number of cycles, and maximum length, of a slice that measures slow-down.
const SLOWDOWN_CYCLES: u64 = 20;
const MAX_SLOWDOWN_NS: u64 = 50_000_000;
/// Maximum number of CPUs on which single-thread speed is measured.
pub(crate) const MAX_ALONE: usize = 8;
/// Number of sleeps whose overshoot is measured, over all threads and passes; fewer if these take
/// longer than `SLEEPING_NS`.
const SLEEPS: u64 = 400;
const SLEEPING_NS: u64 = 3_000_000_000;

/// Number of rounds in a pass. In a round, each of `alone_on` threads runs alone for a slice, and
/// then all threads run together for one slice.
pub(crate) fn slowdown_rounds(alone_on: usize) -> usize {
    (SLOWDOWN_SLICES / (alone_on + 1)).max(BATCHES) / PASSES
}

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

/// Number of holds in which threads contend for a lock that is always held, in a pass.
pub(crate) const TURNS: u64 = 24;

pub(crate) fn calibration_ns(subject: &LockSubject) -> u64 {
    if subject.overload.is_some() {
        let turns_ns = TURNS.saturating_mul(subject.hold_ns);
        return PASSES as u64 * turns_ns.saturating_add(sleeps(subject, 1).1);
    }
    match subject.work {
        Work::Sleep => PASSES as u64 * sleeps(subject, subject.threads).1,
        // Slices for the speed of single threads, for the speed of all threads together, and for
        // the cost of the loop with and without the lock.
        Work::Spin => {
            let alone_on = (subject.threads as usize).min(MAX_ALONE);
            let around_ns = LEAD_NS + SLICE_WARM_UP_NS;
            let slowdown = PASSES * slowdown_rounds(alone_on) * (alone_on + 1);
            slowdown as u64 * (around_ns + slowdown_slice_ns(subject))
                + 6 * SLICES as u64 * (around_ns + SLICE_NS)
        }
    }
}
