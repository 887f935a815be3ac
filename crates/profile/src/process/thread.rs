//! The threads of a process, and what each is doing.
//!
//! A look is one pread(2) of `/proc/PID/task/TID/syscall`, whose descriptor is kept; it goes on to
//! mean this thread even after its TID has been given to another. A thread without a descriptor,
//! because too many are open, costs three system calls.
//!
//! The kernel answers at once for threads that sleep or run. It waits for one that is about to
//! sleep but has been preempted, up to a tick of its clock (`wait_task_inactive`), so that a look
//! may rarely take milliseconds.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use super::descriptors::Permit;
use super::files::{self, ShortPath};
use crate::activity::Activity;

/// Longest line: a number, eight addresses of 18 digits, and blanks.
const MAX_LINE: usize = 192;

/// A thread.
#[derive(Debug)]
pub struct Thread {
    tid: u32,
    directory: Arc<OwnedFd>,
    kept: Option<(OwnedFd, Permit)>,
    gone: AtomicBool,
}

/// An answer to a look at a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The thread was doing this.
    Seen(Activity),
    /// The thread has ended.
    Gone,
    /// The kernel does not say: the process has executed a program with other privileges.
    Refused,
}

impl Thread {
    pub(crate) fn open(tid: u32, directory: &Arc<OwnedFd>) -> Thread {
        let file = |permit| {
            let file = files::open(directory, &ShortPath::task(tid, "syscall")).ok()?;
            Some((file, permit))
        };
        Thread {
            tid,
            directory: Arc::clone(directory),
            kept: Permit::take().and_then(file),
            gone: AtomicBool::new(false),
        }
    }

    #[cfg(test)]
    pub(crate) fn without_descriptor(tid: u32, directory: &Arc<OwnedFd>) -> Thread {
        let directory = Arc::clone(directory);
        Thread { tid, directory, kept: None, gone: AtomicBool::new(false) }
    }

    /// Its TID, as this process's PID namespace counts.
    pub fn tid(&self) -> u32 {
        self.tid
    }

    /// What it is doing at this moment. Allocates nothing.
    #[inline]
    pub fn look(&self) -> Look {
        let mut line = [0; MAX_LINE];
        let length = match &self.kept {
            Some((file, _)) => rustix::io::pread(file, &mut line, 0),
            None => self.read_anew(&mut line),
        };
        match length {
            Ok(length) => self.judge(&line[..length]),
            Err(Errno::SRCH | Errno::NOENT) => self.end(),
            Err(_) => Look::Refused,
        }
    }

    #[inline]
    fn judge(&self, line: &[u8]) -> Look {
        match Activity::parse(line) {
            // A thread that has ended and was not reaped yet, such as the first one of a process
            // in which others go on, has no stack.
            Some(Activity::Faulting { stack_pointer: 0, program_counter: 0 }) => self.end(),
            Some(activity) => Look::Seen(activity),
            None if line.is_empty() => self.end(),
            None => Look::Refused,
        }
    }

    #[cold]
    fn read_anew(&self, line: &mut [u8]) -> Result<usize, Errno> {
        let file = files::open(&self.directory, &ShortPath::task(self.tid, "syscall"))?;
        rustix::io::pread(file, line, 0)
    }

    #[cold]
    fn end(&self) -> Look {
        // Read by the next refresh, on this thread or behind a lock of the caller.
        self.gone.store(true, Ordering::Relaxed);
        Look::Gone
    }

    /// A look has found that it has ended.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// It can be looked at. An ordinary user is refused a first thread that has ended.
    pub(crate) fn lives(&self) -> bool {
        matches!(self.look(), Look::Seen(_))
    }
}
