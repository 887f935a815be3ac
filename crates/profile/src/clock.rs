//! The clocks that the profiler reads, in nanoseconds.

use rustix::time::{ClockId, clock_gettime};

/// The time on `CLOCK_MONOTONIC`.
pub(crate) fn now() -> u64 {
    read(ClockId::Monotonic)
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu() -> u64 {
    read(ClockId::ThreadCPUTime)
}

/// CPU time of this process.
pub(crate) fn process_cpu() -> u64 {
    read(ClockId::ProcessCPUTime)
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
