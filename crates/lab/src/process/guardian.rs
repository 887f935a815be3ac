//! A process between this one and one that runs the code of a peer, so that nothing that the code
//! starts outlives either of them.
//!
//! The kernel kills a child when its parent dies, but not the child's own children. So this process
//! forks a guardian, which forks the other one and adopts whatever that leaves behind, however it
//! was started and in whichever session. It waits for the other one to end, or for this process to
//! close its end of a pipe, which the kernel does if this process is killed. Then it kills and
//! reaps all that is left, and ends as the other one did. If the guardian is killed, the kernel
//! kills the other one.
//!
//! It does not help against code that stops its guardian, or kills it after it has left its process
//! group.

use std::fs::File;
use std::io::{self, PipeWriter, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpid, getppid,
    kill_process, kill_process_group, pidfd_open, set_child_subreaper,
    set_parent_process_death_signal, setpgid, setsid,
};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Longest time that the guardian takes to end what is left.
const SWEEP: Duration = Duration::from_secs(5);
/// Time between two looks at what is left.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// Time between two looks at the ward where it cannot be waited for: it may be measured meanwhile.
const GLANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// A process whose guardian lives. Dropping it kills the process and everything that it started.
#[derive(Debug)]
pub(super) struct Guarded {
    guardian: Child,
    /// Once this is closed, the guardian kills everything.
    lifeline: Option<PipeWriter>,
    pid: Pid,
}

impl Guarded {
    /// Starts a process on these CPUs, or wherever this process may run if there are none. It leads
    /// a process group and cannot be interrupted from this process's terminal.
    ///
    /// # Errors
    ///
    /// If it, or its guardian, cannot be started.
    pub(super) fn start(mut command: Command, cpus: &[u32]) -> io::Result<Self> {
        let (watched, lifeline) = io::pipe()?;
        let (mut born, tell) = io::pipe()?;
        let (watched_fd, tell_fd) = (watched.as_raw_fd(), tell.as_raw_fd());
        let mut set = CpuSet::new();
        cpus.iter().for_each(|cpu| set.set(*cpu as usize));
        let placed = !cpus.is_empty();
        let fork = move || {
            if placed {
                sched_setaffinity(None, &set)?;
            }
            fork_guarded(watched_fd, tell_fd)
        };
        // SAFETY: between fork and exec, `fork` makes system calls alone and allocates nothing.
        unsafe { command.pre_exec(fork) };
        let mut guardian = command.spawn()?;
        // Also its ends of pipes to the process, which would hold them open.
        drop((command, watched, tell));
        let mut bytes = [0; 4];
        let read = born.read_exact(&mut bytes);
        match (read, Pid::from_raw(i32::from_ne_bytes(bytes))) {
            (Ok(()), Some(pid)) => Ok(Guarded { guardian, lifeline: Some(lifeline), pid }),
            _ => {
                drop(lifeline);
                let _ = guardian.wait();
                Err(io::Error::other("the process that was to watch over it ended"))
            }
        }
    }

    /// The process itself.
    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// The process's standard input and output, if they are pipes and were not taken before.
    pub(super) fn take_pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        self.guardian.stdin.take().zip(self.guardian.stdout.take())
    }

    /// The process's standard error, if it is a pipe and was not taken before.
    pub(super) fn take_errors(&mut self) -> Option<ChildStderr> {
        self.guardian.stderr.take()
    }

    /// Its guardian, which ends after the process and everything that this started.
    pub(super) fn guardian(&self) -> Pid {
        Pid::from_child(&self.guardian)
    }

    /// Waits until the process and everything that it started have ended. Returns how the process
    /// ended, or `None` after `limit`.
    pub(super) fn ending(&mut self, limit: Duration) -> Option<ExitStatus> {
        let begun = Instant::now();
        loop {
            match self.guardian.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if begun.elapsed() < limit => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// Kills the process and everything that it started, waits until they have ended, and returns
    /// how the process ended.
    ///
    /// # Errors
    ///
    /// If its end is unknown, because something else has waited for the guardian.
    pub(super) fn kill(&mut self) -> io::Result<ExitStatus> {
        let lived = self.lifeline.take().is_some();
        let status = match self.ending(2 * SWEEP) {
            Some(status) => status,
            None => {
                let _ = self.guardian.kill();
                self.guardian.wait()?
            }
        };
        // The guardian may have been killed itself, and so have left the group. Later the number
        // may be another group's.
        if lived && status.signal() == Some(Signal::KILL.as_raw()) {
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
        Ok(status)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Forks the process, in which this function returns. In the guardian it does not.
fn fork_guarded(watched: RawFd, tell: RawFd) -> io::Result<()> {
    // Signals from a terminal are for the tool, which then ends its processes in order.
    setsid()?;
    let guardian = getpid();
    // Where a sandbox forbids this, processes that leave their group are not found.
    let _ = set_child_subreaper(Some(guardian));
    // SAFETY: the child has a single thread, and only makes system calls until it executes.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            setpgid(None, None)?;
            let _ = set_parent_process_death_signal(Some(Signal::KILL));
            if getppid() != Some(guardian) {
                return Err(Errno::SRCH.into());
            }
            Ok(())
        }
        forked => {
            // SAFETY: it is open, and nothing else in this process closes it before the end.
            let tell = unsafe { BorrowedFd::borrow_raw(tell) };
            let _ = rustix::io::write(tell, &forked.to_ne_bytes());
            match Pid::from_raw(forked) {
                Some(ward) => guard(ward, watched),
                None => exit(1),
            }
        }
    }
}

/// Waits for the end of its ward or of the tool, ends what is left, and ends as the ward did.
fn guard(ward: Pid, watched: RawFd) -> ! {
    // Both ends of the ward's pipes are among them, and those of others.
    close_range(0, watched - 1);
    close_range(watched + 1, RawFd::MAX);
    // SAFETY: it is the one descriptor that was left open.
    let watched = unsafe { BorrowedFd::borrow_raw(watched) };
    let handle = pidfd_open(ward, PidfdFlags::empty()).ok();
    while !ended(ward) {
        let mut both = [
            PollFd::from_borrowed_fd(watched, PollFlags::IN),
            PollFd::from_borrowed_fd(
                handle.as_ref().map_or(watched, OwnedFd::as_fd),
                PollFlags::IN,
            ),
        ];
        // Without a handle on it (Linux before 5.3) the ward is looked at now and then.
        let limit = if handle.is_some() { None } else { Some(&GLANCE) };
        let _ = poll(&mut both, limit);
        if !both[0].revents().is_empty() {
            break;
        }
    }
    end_as(sweep(ward))
}

/// True if the ward has ended. It is not reaped yet, so that no other process gets its number.
fn ended(ward: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    loop {
        match rustix::process::waitid(WaitId::Pid(ward), options) {
            Ok(found) => return found.is_some(),
            Err(Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

/// Kills the ward, its group and whatever this process has adopted, until none is left; returns how
/// the ward ended.
fn sweep(ward: Pid) -> Option<WaitStatus> {
    let begun = Instant::now();
    let mut how = None;
    let _ = kill_process_group(ward, Signal::KILL);
    // Before it has a group of its own.
    let _ = kill_process(ward, Signal::KILL);
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                if pid == ward {
                    how = Some(status);
                }
            }
            Err(Errno::INTR) => {}
            Ok(None) if begun.elapsed() < SWEEP => {
                kill_children();
                let _ = poll(&mut [], Some(&LOOK));
            }
            Ok(None) | Err(_) => return how,
        }
    }
}

/// Kills the children of this process. Their children become its own, and are killed next time.
fn kill_children() {
    let Ok(mut file) = File::open("/proc/thread-self/children") else { return };
    let mut text = [0; 4096];
    let Ok(length) = file.read(&mut text) else { return };
    // The last number may be cut off, and is then another process's.
    let whole = text[..length].iter().rposition(|byte| *byte == b' ').map_or(0, |at| at + 1);
    for word in text[..whole].split(|byte| *byte == b' ').filter(|word| !word.is_empty()) {
        let number = std::str::from_utf8(word).ok().and_then(|digits| digits.parse().ok());
        if let Some(pid) = number.and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn close_range(first: RawFd, last: RawFd) {
    if first > last {
        return;
    }
    // SAFETY: nothing that this process still uses is in the range.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if done != 0 {
        // Linux before 5.9: as many as a process usually may have.
        for fd in first..=last.min(4096) {
            // SAFETY: as above.
            unsafe { libc::close(fd) };
        }
    }
}

fn end_as(how: Option<WaitStatus>) -> ! {
    let code = how.and_then(WaitStatus::exit_status);
    if let Some(signal) = how.and_then(WaitStatus::terminating_signal) {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: it reads one `rlimit`. The ward has left a core of its own, if anything.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
        // SAFETY: the default action, instead of a handler that this process has inherited.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        // SAFETY: it has no preconditions.
        unsafe { libc::raise(signal) };
    }
    exit(code.unwrap_or(1))
}

fn exit(code: i32) -> ! {
    // SAFETY: it has no preconditions, and runs nothing of the process that this is a copy of.
    unsafe { libc::_exit(code) }
}
