//! A process under observation: its threads, memory and mappings, seen from outside.
//!
//! Everything comes from `/proc/PID` (proc(5)) and `process_vm_readv(2)`; the process is never
//! stopped, traced or written to. Everything that it can influence (names, arguments, paths,
//! mappings, its very existence) is treated as hostile: reads are bounded, and a process that ends,
//! executes another program or unmaps memory in the meantime is an answer, not an error.
//!
//! A process is held by its directory in `/proc`, which still belongs to this process after its PID
//! has been given to another. Only [`Memory`] goes by PID: its bytes count only if the process
//! still [runs](Process::is_running) afterwards.
//!
//! | module | contents |
//! |---|---|
//! | [`thread`] | threads, and the system calls in which they sleep |
//! | [`activity`] | what a thread was doing when it was looked at |
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
mod files;
pub mod launch;
pub mod maps;
pub mod memory;
mod open_files;
mod orphans;
mod program_run;
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
pub use facts::{ThreadFacts, ThreadState};
pub use family::{Family, FamilyEvent};
pub use launch::{Held, LaunchError, Launched, exit_code};
pub use maps::Mapping;
pub use memory::{Batch, Memory};
pub use open_files::{EpollEntry, PipeEnd};
pub use orphans::{Former, orphans, own_session};
pub use program_run::ProgramRun;
pub use thread::{Look, Thread};

/// Most threads that are asked whether a debugger has stopped them, too.
const MAX_TRACED: usize = 64;
/// Longest command line that is read.
const MAX_COMMAND_LINE: usize = 64 << 10;
/// Longest auxiliary vector that is read; the kernel's own have about 20 entries of 16 bytes.
const MAX_AUXILIARY_VECTOR: usize = 4 << 10;

/// TIDs of a container's threads: those that its own PID namespace counts, with ours. Words of its
/// memory hold the former, and all else the latter.
pub type InnerTids = HashMap<u32, u32>;

/// A listing of as many threads is taken for the same one for this long, and for this many times
/// as long as it took: a thousand threads take milliseconds.
const LISTING_HOLDS: Duration = Duration::from_secs(1);
const LISTING_HOLDS_TIMES: u32 = 1_000;

/// A process under observation.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    start_time: u64,
    directory: Arc<OwnedFd>,
    tasks: OwnedFd,
    /// `None` before Linux 5.3, or where a sandbox refuses it.
    pidfd: Option<OwnedFd>,
    /// A thread that still has the memory of the process: the first one gives it up when it ends,
    /// even if others go on.
    witness: u32,
    threads: Vec<Thread>,
    listing: Vec<u32>,
    /// Links of the folder of its threads, two more than there were threads, and the time, when
    /// they were listed.
    listed: Option<(u64, Instant)>,
    listing_took: Duration,
    inner: Option<InnerTids>,
    /// Threads that were new when they were listed, but for the first listing.
    births: u64,
    /// The first thread has ended, and others go on: it stays in the folder of threads.
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
        // Read after the pidfd was opened: the PID was still this process's, so the pidfd is.
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

    /// Opens a process once more that has been seen to start at this time.
    ///
    /// # Errors
    ///
    /// As [`open`](Process::open): it has ended if its PID is another process's by now.
    pub fn open_again(pid: u32, start_time: u64) -> Result<Process, ProcessError> {
        let process = Process::open(pid)?;
        match process.start_time == start_time {
            true => Ok(process),
            false => Err(ProcessError::Ended(pid)),
        }
    }

    fn check_permission(&self, owner: u32) -> Result<(), ProcessError> {
        let pid = self.pid;
        // The files of a thread without memory are root's.
        let tid = self.witness;
        let refused = || ProcessError::NotPermitted { pid, refusal: Refusal::diagnose(owner) };
        match files::open(&self.directory, &ShortPath::task(tid, "syscall")) {
            Err(Errno::ACCESS | Errno::PERM) => return Err(refused()),
            // That thread has just ended; others may go on.
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
            // Also of a thread that has just ended; there may be others to ask.
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

    /// Its start, in clock ticks since boot: with the PID, an identity that no other process has.
    pub fn start_time(&self) -> u64 {
        self.start_time
    }

    /// A descriptor that becomes readable when the process ends; `None` before Linux 5.3.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Returns `true` while any thread of it runs. One system call.
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

    /// Its exit status. `None` if it still runs, or the kernel does not say: before Linux 6.15, it
    /// forgets as soon as the parent has asked.
    pub fn ending(&self) -> Option<ExitStatus> {
        if self.is_running() {
            return None;
        }
        match Stat::read(&self.directory, &stat_path()) {
            Ok(stat) => stat.ended().then(|| ExitStatus::from_raw(stat.exit_code)),
            Err(_) => ending::of_reaped(self.pidfd()?),
        }
    }

    /// Its session: that of its parent, unless it has begun one of its own, as daemons do.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn session(&self) -> io::Result<u32> {
        Ok(Stat::read(&self.directory, &stat_path())?.session)
    }

    /// The PID of its parent now.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn parent(&self) -> io::Result<u32> {
        Ok(Stat::read(&self.directory, &stat_path())?.parent)
    }

    /// Clock ticks for which its threads, those that have ended included, were on a CPU: in its own
    /// code, and in the kernel.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn cpu_ticks(&self) -> io::Result<[u64; 2]> {
        Ok(Stat::read(&self.directory, &stat_path())?.ticks)
    }

    /// The nice value of a thread, from -20, which goes before others, to 19, which gives way to
    /// them. `None` if the thread has ended.
    pub fn thread_nice(&self, tid: u32) -> Option<i64> {
        let path = ShortPath::task(tid, "stat");
        Stat::read(&self.directory, &path).ok().map(|stat| stat.nice)
    }

    /// How often one of its threads had left its CPU, if a signal or a debugger has stopped it with
    /// all its threads: that number grows once it goes on. `None` if it runs.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn stopped(&self) -> io::Result<Option<u64>> {
        let state = |tid| -> io::Result<ThreadState> {
            let stat = Stat::read(&self.directory, &ShortPath::task(tid, "stat"))?;
            Ok(ThreadState::of(stat.state))
        };
        let first = state(self.witness)?;
        // A debugger may have stopped this thread alone.
        let mut others = self.threads.iter().take(MAX_TRACED);
        let mut all =
            || others.all(|thread| state(thread.tid()).is_ok_and(ThreadState::is_stopped));
        if !first.is_stopped() || first == ThreadState::Traced && !all() {
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

    /// Its command line, up to 64 KiB. A process may have rewritten it.
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

    /// The path of the program that it executes, as the kernel names it: ` (deleted)` follows if
    /// the file is gone.
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
    pub fn image(&self) -> io::Result<Image> {
        let path = ShortPath::task(self.witness, "auxv");
        let vector = files::read(&self.directory, &path, MAX_AUXILIARY_VECTOR)?;
        // As it ends, a process gives up its memory first: then there is no vector. As it executes
        // a program, it has the new memory before the kernel writes the vector: then it is zeros.
        let none = vector.iter().all(|&byte| byte == 0);
        if none { Err(Errno::SRCH.into()) } else { Ok(Image(vector)) }
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

    /// A thread of it.
    #[inline]
    pub fn thread(&self, tid: u32) -> Option<&Thread> {
        let place = self.threads.binary_search_by_key(&tid, Thread::tid).ok()?;
        self.threads.get(place)
    }

    /// It has this thread now: another process's may have got the TID.
    pub fn has_thread(&self, tid: u32) -> bool {
        let path = ShortPath::task(tid, "stat");
        rustix::fs::accessat(&self.directory, path.as_str(), Access::EXISTS, AtFlags::empty())
            .is_ok()
    }

    /// The TIDs of its threads as its own PID namespace counts, if that is another one.
    #[inline]
    pub fn inner_tids(&self) -> Option<&InnerTids> {
        self.inner.as_ref()
    }

    /// The next [refresh](Process::refresh) lists the threads, even if there are as many as before.
    pub fn list_anew(&mut self) {
        self.listed = None;
    }

    /// Lists the threads again, and opens those that are new. A process that has ended has none.
    /// As many threads as a moment ago, none of which was seen to be gone, are most likely the
    /// same ones, and not listed.
    ///
    /// Returns true if they have changed.
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
        // It stays on the list for as long as others go on. One that executes a program takes over
        // the TID.
        let listed = self.listing.binary_search(&self.pid).is_ok();
        if listed && self.thread(self.pid).is_some_and(Thread::is_gone) {
            self.first_ended = self.unlisted(self.pid).look() == Look::Gone;
        }
        if self.first_ended {
            self.listing.retain(|&tid| tid != self.pid);
        }
        let listing = &self.listing;
        // The TID of a thread that is gone may be that of a new one by now.
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

/// A program image: two of one process are equal if it has not executed another program meanwhile.
///
/// It is the auxiliary vector, which holds the addresses at which the kernel placed the program,
/// its loader and its random bytes. Where address randomisation is off, a process that executes
/// the same program again looks unchanged; its code is then where it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image(Vec<u8>);
