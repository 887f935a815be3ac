//! A guardian is a process between this one (the tool) and one that runs code of a peer (the ward).
//! It ensures that no process that the code starts outlives the tool or the ward.
//!
//! The kernel can kill a child when its parent dies, but not the child's own children. So the tool
//! forks a guardian, which forks the ward and adopts every process that the ward leaves behind, in
//! any session. The guardian waits until the ward ends, or until the pipe from the tool closes,
//! which also happens if the tool is killed. Then the guardian kills and reaps all processes that
//! are left, and ends with the ward's exit code or signal. If the guardian is killed, the kernel
//! kills the ward.
//!
//! A guardian does not protect against code that stops the guardian, or that leaves the ward's
//! process group and then kills the guardian.

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

/// Time limit for killing the processes that the ward has left behind.
const SWEEP: Duration = Duration::from_secs(5);
/// Interval at which the guardian checks for remaining processes.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// Interval at which the guardian checks if the ward has ended, on kernels without pidfds. Long, so
/// as not to disturb a ward that is measuring.
const GLANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// A process with a guardian. Dropping this kills the process and everything that it has started.
#[derive(Debug)]
pub(super) struct Guarded {
    guardian: Child,
    /// When this pipe is closed, the guardian kills everything.
    lifeline: Option<PipeWriter>,
    pid: Pid,
}

impl Guarded {
    /// Starts a process. If `cpus` is not empty, the process is restricted to these CPUs. It leads
    /// a process group, and cannot be interrupted from this process's terminal.
    ///
    /// # Errors
    ///
    /// If the process or its guardian cannot be started.
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
        // Closes this process's copies of the pipe ends that the other processes use. The copies
        // would keep the pipes open.
        drop((command, watched, tell));
        let mut bytes = [0; 4];
        let read = born.read_exact(&mut bytes);
        match (read, Pid::from_raw(i32::from_ne_bytes(bytes))) {
            (Ok(()), Some(pid)) => Ok(Guarded { guardian, lifeline: Some(lifeline), pid }),
            _ => {
                drop(lifeline);
                let _ = guardian.wait();
                Err(io::Error::other("the process that watches over it has ended"))
            }
        }
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    pub(super) fn take_pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        self.guardian.stdin.take().zip(self.guardian.stdout.take())
    }

    pub(super) fn take_errors(&mut self) -> Option<ChildStderr> {
        self.guardian.stderr.take()
    }

    /// The guardian ends after the process and everything that the process has started.
    pub(super) fn guardian(&self) -> Pid {
        Pid::from_child(&self.guardian)
    }

    /// Waits until the process and everything that it has started have ended; `None` after `limit`.
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

    /// Kills the process and everything that it has started, and waits for the end of all of them.
    ///
    /// # Errors
    ///
    /// If the exit status is unknown, because something else has reaped the guardian.
    pub(super) fn kill(&mut self) -> io::Result<ExitStatus> {
        let lived = self.lifeline.take().is_some();
        let status = match self.ending(2 * SWEEP) {
            Some(status) => status,
            None => {
                let _ = self.guardian.kill();
                self.guardian.wait()?
            }
        };
        // If the guardian itself was killed, it has left the ward's process group behind. A later
        // call must not kill this group, because another group may have the same number by then.
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

/// Returns only in the ward. The guardian never returns from here.
fn fork_guarded(watched: RawFd, tell: RawFd) -> io::Result<()> {
    // Signals from a terminal are meant for the tool, which then ends its processes in an orderly
    // way.
    setsid()?;
    let guardian = getpid();
    // If a sandbox forbids this, processes that leave their group are not found.
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
            // SAFETY: `tell` is open, and nothing else in this process closes it before the write.
            let tell = unsafe { BorrowedFd::borrow_raw(tell) };
            let _ = rustix::io::write(tell, &forked.to_ne_bytes());
            match Pid::from_raw(forked) {
                Some(ward) => guard(ward, watched),
                None => exit(1),
            }
        }
    }
}

fn guard(ward: Pid, watched: RawFd) -> ! {
    // Closes all descriptors except `watched`: the guardian's copies would keep the ward's pipes
    // open.
    close_range(0, watched - 1);
    close_range(watched + 1, RawFd::MAX);
    // SAFETY: `watched` is the one descriptor that was left open.
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
        // Without a pidfd (Linux before 5.3), the loop checks from time to time if the ward has
        // ended.
        let limit = if handle.is_some() { None } else { Some(&GLANCE) };
        let _ = poll(&mut both, limit);
        if !both[0].revents().is_empty() {
            break;
        }
    }
    end_as(sweep(ward))
}

/// Does not reap the ward, so that no other process can get its PID.
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

/// Kills the ward, its group and all processes that the guardian has adopted. Returns the ward's
/// exit status, if known.
fn sweep(ward: Pid) -> Option<WaitStatus> {
    let begun = Instant::now();
    let mut how = None;
    let _ = kill_process_group(ward, Signal::KILL);
    // Needed if the ward does not have a process group of its own yet.
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

/// Kills the guardian's children. The guardian then adopts their children, which the next call
/// kills.
fn kill_children() {
    let Ok(mut file) = File::open("/proc/thread-self/children") else { return };
    let mut text = [0; 4096];
    let Ok(length) = file.read(&mut text) else { return };
    // The last number may be cut off, and would then be the PID of another process.
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
        // Linux before 5.9 lacks the system call. Few processes have descriptors above 4096.
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
        // SAFETY: the call reads one `rlimit`. The guardian must not leave a core in addition to
        // the ward's.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
        // SAFETY: sets the default action, instead of a handler that this process has inherited.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        // SAFETY: `raise` has no preconditions.
        unsafe { libc::raise(signal) };
    }
    exit(code.unwrap_or(1))
}

fn exit(code: i32) -> ! {
    // SAFETY: `_exit` has no preconditions, and runs no code of the process that was forked.
    unsafe { libc::_exit(code) }
}
