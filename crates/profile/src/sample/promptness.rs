//! Makes the sampling thread run on time.
//!
//! On a busy machine, a thread that wakes up waits for a CPU. It often gets one just when a thread
//! that computed under a lock releases both the lock and the CPU, so late samples see locks held
//! too rarely. A short slice (`sched_setattr`, Linux 6.12 and later, no privilege needed) makes the
//! scheduler run the thread sooner, in exchange for shorter runs, which suits a sample.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Requested slice in nanoseconds. A sample takes less time, so the scheduler lets it finish.
const SLICE_NS: u64 = 100_000;

/// The kernel's `struct sched_attr`, first version: see sched_setattr(2).
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Asks for a short slice and exact timers for the calling thread.
///
/// # Errors
///
/// If the kernel refuses. Older kernels accept the request and ignore the slice.
pub(super) fn be_prompt() -> io::Result<()> {
    // SAFETY: the call only sets a number of the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
    let size = size_of::<SchedAttr>() as u32;
    let mut attr = SchedAttr { size, ..SchedAttr::default() };
    // SAFETY: `attr` is as large as the kernel is told, and outlives the call.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attr, size, 0u32) };
    if got != 0 {
        return Err(io::Error::last_os_error());
    }
    if attr.policy != libc::SCHED_OTHER as u32 {
        // A real-time thread is prompt already.
        return Ok(());
    }
    attr.runtime = SLICE_NS;
    // SAFETY: the kernel only reads `attr`, as many bytes as its `size` says.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    if set != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[derive(Debug, Default)]
pub(super) struct RunDelay {
    /// `None` if the kernel does not show the time.
    schedstat: Option<File>,
    last: u64,
}

impl RunDelay {
    pub(super) fn of_this_thread() -> Self {
        let schedstat = File::open("/proc/thread-self/schedstat").ok();
        let mut delay = RunDelay { schedstat, last: 0 };
        delay.since_last();
        delay
    }

    /// Nanoseconds spent waiting since the last call; `None` if the kernel does not show them.
    pub(super) fn since_last(&mut self) -> Option<u64> {
        let mut line = [0; 64];
        let length = self.schedstat.as_ref()?.read_at(&mut line, 0).ok()?;
        let line = std::str::from_utf8(&line[..length]).ok()?;
        let total: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
        let delay = total.saturating_sub(self.last);
        self.last = total;
        Some(delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_granted_or_refused_but_never_harms() {
        std::thread::spawn(|| {
            if let Err(error) = be_prompt() {
                // A sandbox may forbid the call.
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        })
        .join()
        .unwrap();
    }
}
