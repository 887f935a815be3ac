//! An `eventfd(2)` in semaphore mode as a lock: a *kernel* lock in the sense of *Locks aren't slow*
//! (J. Preshing, 2011), which enters the kernel for every operation, contended or not.
//!
//! The counter is 1 while the lock is free. A read takes the lock, and sleeps while the counter is
//! zero. A write releases the lock and wakes all waiting threads; the first of them to run gets the
//! lock.

use std::fs::File;
use std::io::{Read, Write};

use rustix::event::{EventfdFlags, eventfd};

use crate::error::Unavailable;

use super::{GrantPolicy, Lock, RawLock, Wrap};

pub(super) fn locks<W: Wrap>() -> [Lock; 1] {
    [Lock::ours::<W, _>(
        "kernel-eventfd",
        GrantPolicy::Barging,
        "an eventfd in semaphore mode: a kernel lock, with a system call for every operation",
        |count| (0..count).map(|_| KernelEventFd::new()).collect(),
    )]
}

struct KernelEventFd(File);

impl KernelEventFd {
    fn new() -> Result<Self, Unavailable> {
        match eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE) {
            Ok(opened) => Ok(KernelEventFd(File::from(opened))),
            Err(error) => Err(Unavailable::new("eventfd", error.into())),
        }
    }
}

impl RawLock for KernelEventFd {
    type ThreadState = ();

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        let mut taken = [0; 8];
        // The read is repeated if a signal handler interrupts it.
        while (&self.0).read(&mut taken).is_err() {}
        let done = section();
        // A write could block only if the counter were full, and the counter is 0 here.
        let _ = (&self.0).write(&1u64.to_ne_bytes());
        done
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    fn is_free(lock: &KernelEventFd) -> bool {
        let mut poll = libc::pollfd { fd: lock.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, valid for the call, which returns at once.
        unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
    }

    #[test]
    fn the_counter_says_if_the_lock_is_free() {
        let Ok(lock) = KernelEventFd::new() else {
            println!("skipped: no eventfd here");
            return;
        };
        for _ in 0..3 {
            assert!(is_free(&lock));
            lock.hold(&mut (), || assert!(!is_free(&lock)));
        }
        assert!(is_free(&lock));
    }
}
