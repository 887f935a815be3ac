//! The clocks that the profiler reads, in nanoseconds.

use rustix::time::{ClockId, clock_gettime};

/// Time on `CLOCK_MONOTONIC`.
pub(crate) fn now() -> u64 {
    read(ClockId::Monotonic)
}

pub(crate) fn since_boot() -> u64 {
    read(ClockId::Boottime)
}

pub(crate) fn thread_cpu() -> u64 {
    read(ClockId::ThreadCPUTime)
}

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
    // SAFETY: `time` outlives the call, and the pointer for the remaining time may be null.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const time,
            std::ptr::null_mut(),
        )
    };
}
