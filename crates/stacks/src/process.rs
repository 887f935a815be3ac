//! A process under observation: its threads, memory and mappings, seen from outside.
//!
//! Everything comes from `/proc/PID` (proc(5)) and `process_vm_readv(2)`; the process is never
//! stopped, traced or written to. All data that the process controls (names, arguments, paths,
//! mappings) is treated as hostile, so reads are bounded. A process may end, execute another
//! program or unmap memory at any time; that is a normal result, not an error.
//!
//! A process is identified by an open descriptor of its directory in `/proc`, which stays valid
//! when the kernel reuses the PID. Only [`Memory`] uses the PID: the bytes that it reads count only
//! if the process is still [running](Process::is_running) afterwards.
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
mod semaphores;
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
pub use facts::{KernelState, Switches, ThreadFacts};
pub use family::{Family, FamilyEvent, number_of_children};
pub use file_locks::{ContendedFileLock, FileId, contended_file_locks};
pub use launch::{HeldProgram, LaunchError, Launched, exit_code};
pub use maps::Mapping;
pub use memory::{Batch, Memory};
pub use open_files::{EpollEntry, PipeEnd};
pub use orphans::{Former, orphans, own_session};
pub use program_run::ProgramRun;
pub use semaphores::{SemaphoreGoal, SemaphoreId, SemaphoreState, SemaphoreWait};
pub use sockets::{Client, Sockets};
pub use thread::{Thread, ThreadSample};

/// Maximum number of threads that are checked to tell if a debugger has stopped all of them.
const MAX_TRACED: usize = 64;
const MAX_COMMAND_LINE: usize = 64 << 10;
/// Maximum length of an auxiliary vector, in bytes; the kernel's have about 20 entries of 16 bytes.
const MAX_AUXILIARY_VECTOR: usize = 4 << 10;

/// Maps the TIDs that a container's memory contains to the TIDs in our PID namespace.
pub type InnerTids = HashMap<u32, u32>;

/// While the number of threads stays the same, their list is reused for this long, or for
/// `LISTING_HOLDS_TIMES` times as long as listing took, whichever is longer. Listing a thousand
/// threads takes milliseconds.
const LISTING_HOLDS: Duration = Duration::from_secs(1);
const LISTING_HOLDS_TIMES: u32 = 1_000;

/// A process under observation.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    start_time: u64,
    directory: Arc<OwnedFd>,
    tasks: OwnedFd,
    /// `None` before Linux 5.3, or if a sandbox refuses pidfds.
    pidfd: Option<OwnedFd>,
    /// TID of a thread that still has the process's memory. The first thread gives up its memory
    /// when it ends, even if other threads go on.
    witness: u32,
    threads: Vec<Thread>,
    listing: Vec<u32>,
    /// At the last listing: link count of `/proc/PID/task` (number of threads + 2), and the time.
    listed: Option<(u64, Instant)>,
    listing_took: Duration,
    inner: Option<InnerTids>,
    /// Number of new threads in all listings but the first.
    births: u64,
    /// True if the first thread has ended while others go on; `/proc/PID/task` still lists it.
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

    /// Opens the process with this PID if it has this start time.
    ///
    /// # Errors
    ///
    /// As for [`open`](Process::open). If the PID now belongs to another process, the error is
    /// [`ProcessError::Ended`].
    pub fn open_again(pid: u32, start_time: u64) -> Result<Process, ProcessError> {
        let process = Process::open(pid)?;
        match process.start_time == start_time {
            true => Ok(process),
            false => Err(ProcessError::Ended(pid)),
        }
    }

    fn check_permission(&self, owner: u32) -> Result<(), ProcessError> {
        let pid = self.pid;
        // In `/proc`, files of a thread without memory belong to root, so a thread with memory is
        // asked.
        let tid = self.witness;
        let refused = || ProcessError::NotPermitted { pid, refusal: Refusal::diagnose(owner) };
        match files::open(&self.directory, &ShortPath::task(tid, "syscall")) {
            Err(Errno::ACCESS | Errno::PERM) => return Err(refused()),
            // The witness has just ended; other threads may go on.
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
            // The thread may have just ended; other threads may go on.
            Err(_) | Ok(()) => Ok(()),
        }
    }

    /// PID of the process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn witness(&self) -> u32 {
        self.witness
    }

    /// Start time, in clock ticks since boot. No other process has the same PID and start time.
    pub fn start_time(&self) -> u64 {
        self.start_time
    }

    /// A descriptor that becomes readable when the process ends; `None` before Linux 5.3.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Returns `true` while any thread of the process runs. Takes one system call.
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

    /// Exit status. `None` if the process still runs, or if the kernel does not report the status:
    /// before Linux 6.15, the status is lost as soon as the parent has reaped the process.
    pub fn ending(&self) -> Option<ExitStatus> {
        if self.is_running() {
            return None;
        }
        match Stat::read(&self.directory, &stat_path()) {
            Ok(stat) => stat.ended().then(|| ExitStatus::from_raw(stat.exit_code)),
            Err(_) => ending::of_reaped(self.pidfd()?),
        }
    }

    /// Session of the process: its parent's, unless the process has started its own, like a daemon.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn session(&self) -> io::Result<u32> {
        Ok(Stat::read(&self.directory, &stat_path())?.session)
    }

    /// PID of the current parent.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn parent(&self) -> io::Result<u32> {
        Ok(Stat::read(&self.directory, &stat_path())?.parent)
    }

    /// CPU time in clock ticks, in user mode and in the kernel, of all threads, including ended
    /// ones.
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

    /// Returns `None` unless a signal or a debugger has stopped the whole process. Otherwise,
    /// returns the number of context switches of one thread, which grows once the process goes on.
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
        Ok(Some(facts.and_then(|facts| facts.switches).map_or(0, Switches::all)))
    }

    /// Name of the first thread: at most 15 bytes, any but NUL.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn name(&self) -> io::Result<OsString> {
        self.thread_name(self.pid)
    }

    /// Name of a thread: at most 15 bytes, any but NUL.
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

    /// Command line, up to 64 KiB. The process may have rewritten it.
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

    /// Path of the executed program as the kernel names it. It ends in ` (deleted)` if the file is
    /// gone.
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

    /// Identifies the program image that the process executes now.
    ///
    /// # Errors
    ///
    /// If the process has ended, is just about to execute another program, or permission is
    /// missing.
    pub fn image(&self) -> io::Result<ProgramImage> {
        let path = ShortPath::task(self.witness, "auxv");
        let vector = files::read(&self.directory, &path, MAX_AUXILIARY_VECTOR)?;
        // A process that is ending gives up its memory first, so its vector is empty. A process
        // that is executing a program gets the new memory before the kernel writes the vector, so
        // its vector is all zeros.
        let none = vector.iter().all(|&byte| byte == 0);
        if none { Err(Errno::SRCH.into()) } else { Ok(ProgramImage(vector)) }
    }

    /// Mappings of the process, lowest address first; see [`maps`].
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

    /// Memory of the process. Valid until the next [refresh](Process::refresh).
    #[inline]
    pub fn memory(&self) -> Memory {
        Memory::of(self.witness)
    }

    /// Threads in ascending order of TID, as of the last [refresh](Process::refresh).
    #[inline]
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// The thread with this TID, as of the last [refresh](Process::refresh).
    #[inline]
    pub fn thread(&self, tid: u32) -> Option<&Thread> {
        let place = self.threads.binary_search_by_key(&tid, Thread::tid).ok()?;
        self.threads.get(place)
    }

    /// Returns `true` if the process has a thread with this TID now.
    pub fn has_thread(&self, tid: u32) -> bool {
        let path = ShortPath::task(tid, "stat");
        rustix::fs::accessat(&self.directory, path.as_str(), Access::EXISTS, AtFlags::empty())
            .is_ok()
    }

    /// Time in ns that a thread has run or waited for a CPU since it began. `None` if the thread
    /// has ended, or if the kernel does not count this time. Time taken by a hypervisor or by
    /// interrupts may be missing.
    pub fn cpu_ns(&self, tid: u32) -> Option<u64> {
        const MOST: usize = 64;
        let line = files::read(&self.directory, &ShortPath::task(tid, "schedstat"), MOST).ok()?;
        let mut fields = std::str::from_utf8(&line).ok()?.split_ascii_whitespace();
        let mut next = || fields.next()?.parse::<u64>().ok();
        let ns = next()?.checked_add(next()?)?;
        // All fields are zero if the kernel does not count.
        next().filter(|&runs| runs > 0).map(|_| ns)
    }

    /// TIDs of the threads in the process's own PID namespace, if that differs from ours.
    #[inline]
    pub fn inner_tids(&self) -> Option<&InnerTids> {
        self.inner.as_ref()
    }

    /// Makes the next [refresh](Process::refresh) list the threads even if their number has not
    /// changed.
    pub fn list_anew(&mut self) {
        self.listed = None;
    }

    /// Lists the threads and opens the new ones. A process that has ended has none. The listing is
    /// skipped if there are as many threads as a moment ago and none was seen to end, because they
    /// are then most likely the same threads.
    ///
    /// Returns `true` if the threads have changed.
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
        // The first thread stays listed while other threads go on. A thread that executes a program
        // takes over the TID of the first thread.
        let listed = self.listing.binary_search(&self.pid).is_ok();
        if listed && self.thread(self.pid).is_some_and(Thread::is_gone) {
            self.first_ended = self.unlisted(self.pid).sample() == ThreadSample::Gone;
        }
        if self.first_ended {
            self.listing.retain(|&tid| tid != self.pid);
        }
        let listing = &self.listing;
        // The TID of an ended thread may now belong to a new one.
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

/// A program image. Two images of a process are equal if it has executed no program in between.
///
/// This is the auxiliary vector, which contains the addresses of the program, its loader and its
/// random bytes. Without address randomisation, a process that executes the same program again
/// appears unchanged; its code is then at the same addresses as before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramImage(Vec<u8>);
