//! A process under observation: its threads, memory and mappings, seen from outside.
//!
//! Everything comes from `/proc/PID` (proc(5)) and `process_vm_readv(2)`; the process is never
//! stopped, traced or written to. Everything that it can influence (names, arguments, paths,
//! mappings, its very existence) is treated as hostile: reads are bounded, and a process that ends,
//! executes another program or unmaps memory in the meantime is an answer, not an error.
//!
//! A process is represented by its directory in `/proc`, which still belongs to this process after
//! its PID has been given to another. Only [`Memory`] uses the PID: bytes that it reads are valid
//! only if the process is still [running](Process::is_running) afterwards.
//!
//! | module | contents |
//! |---|---|
//! | [`thread`] | threads, and the system calls in which they sleep |
//! | [`activity`] | what a thread was doing when it was sampled |
//! | [`memory`] | many small reads of the memory at once |
//! | [`maps`] | mappings |
//! | [`launch`] | a program that is observed from its start |
//! | [`family`] | a process and its descendants |
//! | [`facts`] | state, name and process of any thread |
//! | [`error`] | reasons why a process cannot be observed |
//! | [`descriptors`] | the limit on open files |

pub mod activity;
pub mod descriptors;
mod ending;
pub mod error;
pub mod facts;
pub mod family;
mod file_locks;
mod files;
pub mod launch;
pub mod maps;
pub mod memory;
mod open_files;
mod orphans;
mod program_run;
mod sockets;
mod stat;
#[cfg(test)]
mod tests;
pub mod thread;
mod unlisted;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use files::ShortPath;
use stat::Stat;

pub use activity::{Activity, SystemCall};
pub use error::{ProcessError, Refusal};
pub use facts::{KernelState, ThreadFacts};
pub use family::{Family, FamilyEvent, number_of_children};
pub use file_locks::{ContendedFileLock, FileId, contended_file_locks};
pub use launch::{HeldProgram, LaunchError, Launched, exit_code};
pub use maps::Mapping;
pub use memory::{Batch, Memory};
pub use open_files::{EpollEntry, PipeEnd};
pub use orphans::{Former, orphans, own_session};
pub use program_run::ProgramRun;
pub use sockets::{Client, Sockets};
pub use thread::{Thread, ThreadSample};

/// Maximum number of threads that are checked for having been stopped by a debugger as well.
const MAX_TRACED: usize = 64;
/// Longest command line that is read.
const MAX_COMMAND_LINE: usize = 64 << 10;
/// Longest auxiliary vector that is read; the kernel's own have about 20 entries of 16 bytes.
const MAX_AUXILIARY_VECTOR: usize = 4 << 10;

/// TIDs of a container's threads: keys are numbered by its own PID namespace, values by ours. Words
/// in the container's memory contain its own numbers; everything else uses ours.
pub type InnerTids = HashMap<u32, u32>;

/// Time for which a listing is reused if the number of threads stays the same: this long, or this
/// many times as long as the listing took, whichever is longer. Listing a thousand threads takes
/// milliseconds.
const LISTING_HOLDS: Duration = Duration::from_secs(1);
const LISTING_HOLDS_TIMES: u32 = 1_000;

/// A process under observation.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    start_time: u64,
    directory: Arc<OwnedFd>,
    tasks: OwnedFd,
    /// `None` before Linux 5.3, or if a sandbox refuses it.
    pidfd: Option<OwnedFd>,
    /// A thread that still has the memory of the process: the first thread gives it up when it
    /// ends, even if others go on.
    witness: u32,
    threads: Vec<Thread>,
    listing: Vec<u32>,
    /// Link count of the directory of its threads (two more than the number of threads), and the
    /// time, when they were last listed.
    listed: Option<(u64, Instant)>,
    listing_took: Duration,
    inner: Option<InnerTids>,
    /// Number of threads that were new in a listing, except the first one.
    births: u64,
    /// True if the first thread has ended and others go on: it stays in the directory of threads.
    first_ended: bool,
}

impl Process {
    /// Opens the process with this PID. It has no [threads](Process::threads) before the first
    /// [refresh](Process::refresh).
    ///
    /// # Errors
    ///
    /// [`ProcessError`] if there is no such process, it cannot be profiled, or permission is
    /// missing.
    pub fn open(pid: u32) -> Result<Process, ProcessError> {
        if pid == std::process::id() {
            return Err(ProcessError::Itself);
        }
        let id = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let id = id.ok_or(ProcessError::NotFound(pid))?;
        let unreadable = |source: Errno| match source {
            Errno::NOENT | Errno::SRCH => ProcessError::Ended(pid),
            source => ProcessError::Unreadable { pid, source: source.into() },
        };

        let directory = rustix::fs::openat(
            CWD,
            format!("/proc/{pid}"),
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        );
        let directory = match directory {
            Ok(directory) => Arc::new(directory),
            Err(Errno::NOENT) => {
                let hidden = rustix::process::test_kill_process(id) != Err(Errno::SRCH);
                return Err(match hidden {
                    true => ProcessError::NotPermitted { pid, refusal: Refusal::Hidden },
                    false => ProcessError::NotFound(pid),
                });
            }
            Err(source) => return Err(unreadable(source)),
        };
        let status = files::Status::read(&directory).map_err(unreadable)?;
        if status.process != pid {
            return Err(ProcessError::Thread { tid: pid, process: status.process });
        }
        let pidfd = match pidfd_open(id, PidfdFlags::empty()) {
            Err(Errno::SRCH) => return Err(ProcessError::Ended(pid)),
            pidfd => pidfd.ok(),
        };
        // Read after the pidfd was opened: if the PID still belonged to this process then, so does
        // the pidfd.
        let stat = Stat::read(&directory, &stat_path()).map_err(unreadable)?;
        if stat.kernel_thread() {
            return Err(ProcessError::KernelThread { pid, name: stat.name });
        }
        if stat.ended() {
            return Err(ProcessError::Ended(pid));
        }
        let tasks = rustix::fs::openat(
            &directory,
            "task",
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(unreadable)?;

        let mut listing = Vec::new();
        if stat.first_thread_ended() {
            files::list_numbers(&tasks, &mut listing).map_err(unreadable)?;
        }
        let witness = listing.iter().copied().find(|&tid| tid != pid).unwrap_or(pid);

        let inner = files::inner_tid(&directory, pid).map(|_| InnerTids::new());
        let process = Process {
            pid,
            start_time: stat.start_time,
            directory,
            tasks,
            pidfd,
            witness,
            threads: Vec::new(),
            listing,
            listed: None,
            listing_took: Duration::ZERO,
            inner,
            births: 0,
            first_ended: false,
        };
        process.check_permission(status.owner)?;
        Ok(process)
    }

    /// Opens a process again that is known to have started at this time.
    ///
    /// # Errors
    ///
    /// Like [`open`](Process::open). If its PID now belongs to another process, this one has ended.
    pub fn open_again(pid: u32, start_time: u64) -> Result<Process, ProcessError> {
        let process = Process::open(pid)?;
        match process.start_time == start_time {
            true => Ok(process),
            false => Err(ProcessError::Ended(pid)),
        }
    }

    fn check_permission(&self, owner: u32) -> Result<(), ProcessError> {
        let pid = self.pid;
        // The files of a thread without memory belong to root.
        let tid = self.witness;
        let refused = || ProcessError::NotPermitted { pid, refusal: Refusal::diagnose(owner) };
        match files::open(&self.directory, &ShortPath::task(tid, "syscall")) {
            Err(Errno::ACCESS | Errno::PERM) => return Err(refused()),
            // This thread has just ended; others may go on.
            Err(Errno::NOENT | Errno::SRCH) if tid != pid => return Ok(()),
            Err(Errno::NOENT | Errno::SRCH) if self.is_running() => {
                return Err(ProcessError::Unsupported("/proc/PID/syscall"));
            }
            Err(Errno::NOENT | Errno::SRCH) => return Err(ProcessError::Ended(pid)),
            Err(source) => return Err(ProcessError::Unreadable { pid, source: source.into() }),
            Ok(file) => {
                if let Err(Errno::ACCESS | Errno::PERM) = rustix::io::pread(file, &mut [0; 16], 0) {
                    return Err(refused());
                }
            }
        }
        match self.memory().probe() {
            Err(Errno::PERM | Errno::ACCESS) if Memory::is_forbidden() => {
                Err(ProcessError::NotPermitted { pid, refusal: Refusal::Sandboxed })
            }
            Err(Errno::PERM | Errno::ACCESS) => Err(refused()),
            Err(Errno::NOSYS) => Err(ProcessError::Unsupported("process_vm_readv")),
            // Also if the thread has just ended; there may be others to ask.
            Err(_) | Ok(()) => Ok(()),
        }
    }

    /// Its PID.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// A thread that still has its memory and its files.
    pub(crate) fn witness(&self) -> u32 {
        self.witness
    }

    /// Its start time, in clock ticks since boot. Together with the PID, this identifies it: no
    /// other process has both.
    pub fn start_time(&self) -> u64 {
        self.start_time
    }

    /// A descriptor that becomes readable when the process ends; `None` before Linux 5.3.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Returns `true` while any of its threads runs. Takes one system call.
    pub fn is_running(&self) -> bool {
        match &self.pidfd {
            Some(pidfd) => {
                let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
                let mut descriptor = [PollFd::new(pidfd, PollFlags::IN)];
                poll(&mut descriptor, Some(&at_once)) == Ok(0)
            }
            None => Stat::read(&self.directory, &stat_path()).is_ok_and(|stat| !stat.ended()),
        }
    }

    /// Its exit status. `None` if it still runs, or if the kernel does not report the status:
    /// before Linux 6.15, the kernel forgets it as soon as the parent has asked for it.
    pub fn ending(&self) -> Option<ExitStatus> {
        if self.is_running() {
            return None;
        }
        match Stat::read(&self.directory, &stat_path()) {
            Ok(stat) => stat.ended().then(|| ExitStatus::from_raw(stat.exit_code)),
            Err(_) => ending::of_reaped(self.pidfd()?),
        }
    }

    /// Its session: that of its parent, unless it has started one of its own, like a daemon.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn session(&self) -> io::Result<u32> {
        Ok(Stat::read(&self.directory, &stat_path())?.session)
    }

    /// The PID of its present parent.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn parent(&self) -> io::Result<u32> {
        Ok(Stat::read(&self.directory, &stat_path())?.parent)
    }

    /// Number of clock ticks for which its threads, including those that have ended, were on a CPU:
    /// in its own code, and in the kernel.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn cpu_ticks(&self) -> io::Result<[u64; 2]> {
        Ok(Stat::read(&self.directory, &stat_path())?.ticks)
    }

    /// The nice value of a thread, from -20 (highest priority) to 19 (lowest). `None` if the thread
    /// has ended.
    pub fn thread_nice(&self, tid: u32) -> Option<i64> {
        let path = ShortPath::task(tid, "stat");
        Stat::read(&self.directory, &path).ok().map(|stat| stat.nice)
    }

    /// If a signal or a debugger has stopped it with all its threads, the number of times that one
    /// of its threads had left its CPU: this grows once the process goes on. `None` if it runs.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn stopped(&self) -> io::Result<Option<u64>> {
        let state = |tid| -> io::Result<KernelState> {
            let stat = Stat::read(&self.directory, &ShortPath::task(tid, "stat"))?;
            Ok(KernelState::of(stat.state))
        };
        let first = state(self.witness)?;
        // A debugger may have stopped only this thread.
        let mut others = self.threads.iter().take(MAX_TRACED);
        let mut all =
            || others.all(|thread| state(thread.tid()).is_ok_and(KernelState::is_stopped));
        if !first.is_stopped() || first == KernelState::Traced && !all() {
            return Ok(None);
        }
        let facts = ThreadFacts::read(self.witness);
        Ok(Some(facts.and_then(|facts| facts.switches).unwrap_or(0)))
    }

    /// The name of its first thread, at most 15 bytes: any bytes but NUL.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn name(&self) -> io::Result<OsString> {
        self.thread_name(self.pid)
    }

    /// The name of a thread, at most 15 bytes: any bytes but NUL.
    ///
    /// # Errors
    ///
    /// If the thread has ended.
    pub fn thread_name(&self, tid: u32) -> io::Result<OsString> {
        let mut name = files::read(&self.directory, &ShortPath::task(tid, "comm"), 64)?;
        if name.last() == Some(&b'\n') {
            name.pop();
        }
        Ok(OsString::from_vec(name))
    }

    /// Its command line, up to 64 KiB. The process may have rewritten it.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn command_line(&self) -> io::Result<Vec<OsString>> {
        let path = ShortPath::task(self.witness, "cmdline");
        let bytes = files::read(&self.directory, &path, MAX_COMMAND_LINE)?;
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
        Ok(bytes.split(|&byte| byte == 0).map(|word| OsStr::from_bytes(word).into()).collect())
    }

    /// The path of the program that it executes, as the kernel names it: followed by ` (deleted)`
    /// if the file is gone.
    ///
    /// # Errors
    ///
    /// If the process has ended or permission is missing.
    pub fn program(&self) -> io::Result<PathBuf> {
        let path = ShortPath::task(self.witness, "exe");
        let target = rustix::fs::readlinkat(&self.directory, path.as_str(), Vec::new())?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    /// Returns `true` for a 32-bit program, whose system calls have other numbers.
    ///
    /// # Errors
    ///
    /// If the process has ended or permission is missing.
    pub fn is_32_bit(&self) -> io::Result<bool> {
        const CLASS: usize = 4;
        const CLASS_32: u8 = 1;
        let mut head = [0; 5];
        let file = files::open(&self.directory, &ShortPath::task(self.witness, "exe"))?;
        let length = rustix::io::pread(file, &mut head, 0)?;
        Ok(length == head.len() && head.starts_with(b"\x7fELF") && head[CLASS] == CLASS_32)
    }

    /// Identifies the program image that it executes now.
    ///
    /// # Errors
    ///
    /// If the process has ended, is just about to execute another program, or permission is
    /// missing.
    pub fn image(&self) -> io::Result<ProgramImage> {
        let path = ShortPath::task(self.witness, "auxv");
        let vector = files::read(&self.directory, &path, MAX_AUXILIARY_VECTOR)?;
        // When a process ends, it gives up its memory first, so there is no vector. When it
        // executes a program, it has the new memory before the kernel writes the vector, which is
        // then all zeros.
        let none = vector.iter().all(|&byte| byte == 0);
        if none { Err(Errno::SRCH.into()) } else { Ok(ProgramImage(vector)) }
    }

    /// Its mappings, lowest address first; see [`maps`].
    ///
    /// # Errors
    ///
    /// If permission is missing. A process that has ended has no mappings.
    pub fn maps(&self) -> io::Result<Vec<Mapping>> {
        match files::open(&self.directory, &ShortPath::task(self.witness, "maps")) {
            Ok(file) => maps::read(file),
            Err(Errno::NOENT | Errno::SRCH) => Ok(Vec::new()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Its memory. Valid until the next [refresh](Process::refresh).
    #[inline]
    pub fn memory(&self) -> Memory {
        Memory::of(self.witness)
    }

    /// Its threads, ascending by TID, as of the last [refresh](Process::refresh).
    #[inline]
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// One of its threads.
    #[inline]
    pub fn thread(&self, tid: u32) -> Option<&Thread> {
        let place = self.threads.binary_search_by_key(&tid, Thread::tid).ok()?;
        self.threads.get(place)
    }

    /// Returns `true` if this is one of its threads now. The TID may since have been given to a
    /// thread of another process.
    pub fn has_thread(&self, tid: u32) -> bool {
        let path = ShortPath::task(tid, "stat");
        rustix::fs::accessat(&self.directory, path.as_str(), Access::EXISTS, AtFlags::empty())
            .is_ok()
    }

    /// Time for which a thread has been on a CPU or waited for one, in nanoseconds, since it began;
    /// `None` if it has ended, or the kernel does not count that. Time that a hypervisor took, or
    /// interrupts, may be missing.
    pub fn cpu_ns(&self, tid: u32) -> Option<u64> {
        const MOST: usize = 64;
        let line = files::read(&self.directory, &ShortPath::task(tid, "schedstat"), MOST).ok()?;
        let mut fields = std::str::from_utf8(&line).ok()?.split_ascii_whitespace();
        let mut next = || fields.next()?.parse::<u64>().ok();
        let ns = next()?.checked_add(next()?)?;
        // Kernels that do not count give nothing but zeros.
        next().filter(|&runs| runs > 0).map(|_| ns)
    }

    /// The TIDs of its threads in its own PID namespace, if that differs from ours.
    #[inline]
    pub fn inner_tids(&self) -> Option<&InnerTids> {
        self.inner.as_ref()
    }

    /// Makes the next [refresh](Process::refresh) list the threads even if their number has not
    /// changed.
    pub fn list_anew(&mut self) {
        self.listed = None;
    }

    /// Lists the threads again, and opens the new ones. A process that has ended has none. If there
    /// are as many threads as a moment ago, and none of them was seen to be gone, they are most
    /// likely the same ones, so they are not listed.
    ///
    /// Returns `true` if they have changed.
    ///
    /// # Errors
    ///
    /// If `/proc` cannot be read.
    pub fn refresh(&mut self) -> io::Result<bool> {
        let (links, now) = (rustix::fs::fstat(&self.tasks)?.st_nlink, Instant::now());
        let holds = LISTING_HOLDS.max(self.listing_took * LISTING_HOLDS_TIMES);
        let lately = |&(then, at): &(u64, Instant)| then == links && now - at < holds;
        if self.listed.as_ref().is_some_and(lately) && !self.threads.iter().any(Thread::is_gone) {
            return Ok(false);
        }
        files::list_numbers(&self.tasks, &mut self.listing)?;
        let first_listing = self.listed.is_none() && self.threads.is_empty();
        (self.listed, self.listing_took) = (Some((links, now)), now.elapsed());
        // The first thread stays listed for as long as others go on. A thread that executes a
        // program takes over its TID.
        let listed = self.listing.binary_search(&self.pid).is_ok();
        if listed && self.thread(self.pid).is_some_and(Thread::is_gone) {
            self.first_ended = self.unlisted(self.pid).sample() == ThreadSample::Gone;
        }
        if self.first_ended {
            self.listing.retain(|&tid| tid != self.pid);
        }
        let listing = &self.listing;
        // The TID of a thread that is gone may now belong to a new one.
        let before = self.threads.len();
        self.threads
            .retain(|thread| !thread.is_gone() && listing.binary_search(&thread.tid()).is_ok());
        let known = self.threads.len();
        for &tid in listing {
            if self.threads[..known].binary_search_by_key(&tid, Thread::tid).is_err() {
                self.threads.push(Thread::new(tid, &self.directory));
                if let Some(inner) = &mut self.inner
                    && let Some(named) = files::inner_tid(&self.directory, tid)
                {
                    inner.insert(named, tid);
                }
            }
        }
        if let Some(inner) = &mut self.inner {
            inner.retain(|_, tid| listing.binary_search(tid).is_ok());
        }
        let changed = known < before || known < self.threads.len();
        if !first_listing {
            self.births += (self.threads.len() - known) as u64;
        }
        self.threads.sort_unstable_by_key(Thread::tid);
        if self.thread(self.witness).is_some_and(Thread::lives) {
            return Ok(changed);
        }
        if let Some(living) = self.threads.iter().find(|thread| thread.lives()) {
            self.witness = living.tid();
        }
        Ok(changed)
    }
}

fn stat_path() -> ShortPath {
    ShortPath::new(format_args!("stat"))
}

/// A program image. Two images of one process are equal if it has not executed another program in
/// between.
///
/// This is the auxiliary vector, which contains the addresses at which the kernel placed the
/// program, its loader and its random bytes. If address randomisation is off, a process that
/// executes the same program again appears unchanged; its code is then where it was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramImage(Vec<u8>);
