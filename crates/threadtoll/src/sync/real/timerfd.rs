//! `timerfd(2)`: a file descriptor that is readable once some time has passed.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct TimerFd(OwnedFd);

impl TimerFd {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: takes no pointer.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened, and nothing else owns it.
        Ok(TimerFd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Makes the descriptor readable once this time has passed from now; never if there is none.
    /// The time must not be 0. Replaces the last call.
    pub(crate) fn set(&self, time: Option<Duration>) {
        // SAFETY: all zeros is a valid `itimerspec`: one that never expires.
        let mut setting: libc::itimerspec = unsafe { std::mem::zeroed() };
        if let Some(time) = time {
            setting.it_value.tv_sec = time.as_secs().try_into().unwrap_or(libc::time_t::MAX);
            setting.it_value.tv_nsec = time.subsec_nanos() as libc::c_long;
        }
        // SAFETY: the setting is valid, and the old one is not asked for.
        unsafe { libc::timerfd_settime(self.0.as_raw_fd(), 0, &setting, std::ptr::null_mut()) };
    }
}

impl AsRawFd for TimerFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
