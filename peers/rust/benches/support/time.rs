//! Clocks.

use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// A moment from which nanoseconds are counted.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock(Instant::now())
    }

    #[inline(always)]
    pub(crate) fn ns(self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}

pub(crate) fn thread_cpu() -> Duration {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Number of times that the calling thread slept.
pub(crate) fn thread_sleeps() -> u64 {
    let mut usage = MaybeUninit::zeroed();
    // SAFETY: writes `usage`, which is valid for the call.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: all zeros are valid numbers.
    let usage: libc::rusage = unsafe { usage.assume_init() };
    usage.ru_nvcsw.unsigned_abs()
}

pub(crate) fn process_cpu() -> Duration {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Time since boot, which [`sleep_until`] takes.
pub(crate) fn monotonic() -> Duration {
    read(libc::CLOCK_MONOTONIC)
}

/// Sleeps until [`monotonic`] reaches `due`.
pub(crate) fn sleep_until(due: Duration) {
    let due = libc::timespec {
        tv_sec: due.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(due.subsec_nanos()),
    };
    let until = |due: &libc::timespec| {
        let (clock, absolute) = (libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME);
        // SAFETY: reads `due`; with an absolute time nothing is written.
        unsafe { libc::clock_nanosleep(clock, absolute, due, std::ptr::null_mut()) }
    };
    while until(&due) == libc::EINTR {}
}

fn read(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes `time`, which is valid for the call.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
