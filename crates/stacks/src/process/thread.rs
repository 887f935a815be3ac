//! Threads of a process, and what each is doing.
//!
//! A sample takes one pread(2) of `/proc/PID/task/TID/syscall`. The first sample opens the
//! descriptor, which is kept and refers to the same thread even after the kernel reuses the TID. If
//! too many descriptors are open, a thread has none. A sample then takes six system calls, because
//! it compares the thread's start time each time.
//!
//! For a thread that sleeps or runs, the kernel answers at once. For a thread that was preempted
//! just before it went to sleep, the kernel waits for up to a tick of its clock
//! (`wait_task_inactive`), so a sample may occasionally take milliseconds.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::activity::Activity;
use super::descriptors::Permit;
use super::files::{self, ShortPath};
use super::stat::Stat;

/// Maximum length of a line in bytes: a number, eight addresses of 18 digits, and blanks.
const MAX_LINE: usize = 192;

/// A thread under observation.
#[derive(Debug)]
pub struct Thread {
    tid: u32,
    directory: Arc<OwnedFd>,
    /// Opened by the first sample, because most of a process's threads may never be sampled.
    kept: OnceLock<Kept>,
    gone: AtomicBool,
}

#[derive(Debug)]
enum Kept {
    Descriptor(OwnedFd, Permit),
    /// Start time of a thread without a descriptor, in clock ticks since boot; `None` if the thread
    /// had already ended at its first sample.
    Start(Option<u64>),
}

/// Result of a sample of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadSample {
    /// Activity of the thread.
    Seen(Activity),
    /// The thread has ended.
    Gone,
    /// The kernel refuses access to the thread: the process has executed a program with other
    /// privileges.
    Refused,
}

impl Thread {
    pub(crate) fn new(tid: u32, directory: &Arc<OwnedFd>) -> Thread {
        let directory = Arc::clone(directory);
        Thread { tid, directory, kept: OnceLock::new(), gone: AtomicBool::new(false) }
    }

    /// The thread with this TID, in any process; `None` if there is none.
    pub fn of_any_process(tid: u32) -> Option<Thread> {
        let path = ShortPath::new(format_args!("/proc/{tid}"));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(CWD, path.as_str(), flags, Mode::empty()).ok()?;
        Some(Thread::new(tid, &Arc::new(directory)))
    }

    #[cfg(test)]
    pub(crate) fn without_descriptor(
        tid: u32,
        directory: &Arc<OwnedFd>,
        start: Option<u64>,
    ) -> Thread {
        let thread = Thread::new(tid, directory);
        assert!(thread.kept.set(Kept::Start(start)).is_ok());
        thread
    }

    /// TID of the thread in this process's PID namespace.
    #[inline]
    pub fn tid(&self) -> u32 {
        self.tid
    }

    /// The thread's activity at this instant. Does not allocate.
    #[inline]
    pub fn sample(&self) -> ThreadSample {
        let mut line = [0; MAX_LINE];
        let length = match self.kept.get_or_init(|| self.open()) {
            Kept::Descriptor(file, _) => rustix::io::pread(file, &mut line, 0),
            Kept::Start(start) => self.read_anew(*start, &mut line),
        };
        match length {
            Ok(length) => self.judge(&line[..length]),
            Err(Errno::SRCH | Errno::NOENT) => self.end(),
            Err(_) => ThreadSample::Refused,
        }
    }

    #[inline]
    fn judge(&self, line: &[u8]) -> ThreadSample {
        match Activity::parse(line) {
            // A thread that has ended but was not reaped has no stack, such as the main thread of a
            // process whose other threads still run.
            Some(Activity::Faulting { stack_pointer: 0, program_counter: 0 }) => self.end(),
            Some(activity) => ThreadSample::Seen(activity),
            None if line.is_empty() => self.end(),
            None => ThreadSample::Refused,
        }
    }

    #[cold]
    fn open(&self) -> Kept {
        let file = |permit| {
            let file = files::open(&self.directory, &ShortPath::task(self.tid, "syscall")).ok()?;
            Some(Kept::Descriptor(file, permit))
        };
        let start = || Kept::Start(start_time(&self.directory, self.tid));
        Permit::take().and_then(file).unwrap_or_else(start)
    }

    #[cold]
    fn read_anew(&self, start: Option<u64>, line: &mut [u8]) -> Result<usize, Errno> {
        let file = files::open(&self.directory, &ShortPath::task(self.tid, "syscall"))?;
        let length = rustix::io::pread(file, line, 0)?;
        // Compared after the read, to show that the TID belonged to this thread throughout.
        match start.is_some() && start_time(&self.directory, self.tid) == start {
            true => Ok(length),
            false => Err(Errno::SRCH),
        }
    }

    #[cold]
    fn end(&self) -> ThreadSample {
        // `Relaxed` suffices: the next refresh reads the flag on the same thread, or after the
        // caller has taken a lock.
        self.gone.store(true, Ordering::Relaxed);
        ThreadSample::Gone
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// Returns `true` if the thread can be sampled. An ordinary user cannot sample a main thread
    /// that has ended.
    pub(crate) fn lives(&self) -> bool {
        matches!(self.sample(), ThreadSample::Seen(_))
    }
}

pub(crate) fn start_time(directory: &OwnedFd, tid: u32) -> Option<u64> {
    Stat::read(directory, &ShortPath::task(tid, "stat")).ok().map(|stat| stat.start_time)
}
