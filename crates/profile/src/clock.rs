//! The clocks that the profiler reads, in nanoseconds.

use rustix::time::{ClockId, clock_gettime};

/// The time on `CLOCK_MONOTONIC`.
pub(crate) fn now() -> u64 {
    read(ClockId::Monotonic)
}

/// Time since boot, the clock on which the kernel gives the start times of processes.
pub(crate) fn since_boot() -> u64 {
    read(ClockId::Boottime)
}

/// CPU time that the calling thread has used.
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

/// Sleeps until this time; a signal may end the sleep early.
pub(crate) fn sleep_until(at: u64) {
    let time = libc::timespec {
        tv_sec: (at / 1_000_000_000) as libc::time_t,
        tv_nsec: (at % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `time` outlives the call, and no remainder is asked for. A signal may end the sleep
    // early, which the caller notices by the clock.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const time,
            std::ptr::null_mut(),
        )
    };
}
