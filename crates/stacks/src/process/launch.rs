//! Starts a program, but holds it back so that it can be observed from its first instruction.
//!
//! The child is a fork of this process that waits at a pipe before it executes the program. The
//! program runs as if it had been started directly. If the profiler is killed, the pipe closes and
//! the program starts.
//!
//! The program keeps standard input, output and error, and the process group, so that keys typed at
//! the terminal reach it. It has the limits and signal dispositions with which the profiler was
//! started, with two exceptions: all signals are unblocked, and `SIGPIPE`, which Rust ignores, has
//! its default action.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::{env, iter, mem, ptr};

use rustix::fs::{Access, AtFlags, CWD, FileType};
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Resource, Rlimit, WaitOptions, setrlimit, waitpid};
use thiserror::Error;

use super::descriptors::original_limit;

/// Highest signal number on Linux.
const MAX_SIGNAL: libc::c_int = 64;

const SHELL: &CStr = c"/bin/sh";

/// Reason why a program cannot be started.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// There is no program with this name.
    #[error("no program {}", .0.display())]
    NotFound(OsString),
    /// The program cannot be executed.
    #[error("cannot execute {}: {source}", program.display())]
    NotExecutable {
        /// Name of the program.
        program: OsString,
        /// Cause of the failure.
        source: io::Error,
    },
    /// The system cannot create another process.
    #[error("cannot start a process: {0}")]
    System(#[from] io::Error),
}

impl LaunchError {
    /// Exit code that a shell would return: 127 if the program does not exist, and 126 otherwise.
    pub fn exit_code(&self) -> u8 {
        match self {
            LaunchError::NotFound(_) => 127,
            LaunchError::NotExecutable { .. } | LaunchError::System(_) => 126,
        }
    }
}

/// Exit code that a shell would return: the program's own, or 128 plus the signal that ended it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.map_or(u8::MAX, |code| code as u8)
}

/// A program that has not started yet. If dropped, it never starts.
#[derive(Debug)]
pub struct HeldProgram {
    pid: u32,
    /// `None` once the program has been released.
    child: Option<Launched>,
    program: OsString,
    release: OwnedFd,
    failure: OwnedFd,
}

/// A program that has been started. If dropped, it goes on running.
#[derive(Debug)]
pub struct Launched {
    pid: Pid,
    ended: Option<ExitStatus>,
}

impl HeldProgram {
    /// Creates a process that waits for its [release](HeldProgram::release) before it executes
    /// `program`, which is searched for in `PATH`.
    ///
    /// The process is forked from the calling thread, whose scheduling policy and affinity the
    /// program inherits.
    ///
    /// # Errors
    ///
    /// [`LaunchError`] if the program cannot be found or executed, or if no process can be created.
    pub fn spawn(program: &OsStr, arguments: &[OsString]) -> Result<HeldProgram, LaunchError> {
        let not_executable =
            |source| LaunchError::NotExecutable { program: program.to_owned(), source };
        let path = find(program, env::var_os("PATH").as_deref())?;
        let file = CString::new(path.as_os_str().as_bytes())
            .map_err(|error| not_executable(error.into()))?;
        let words: Vec<CString> = iter::once(program)
            .chain(arguments.iter().map(OsString::as_os_str))
            .map(|word| CString::new(word.as_bytes()))
            .collect::<Result<_, _>>()
            .map_err(|error| not_executable(error.into()))?;
        let script = [SHELL, &file].into_iter().chain(words[1..].iter().map(CString::as_c_str));
        let script = is_text(&path).then(|| pointers(script));

        let (released, release) = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from)?;
        let (failure, failed) = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from)?;
        let ignored = disposition(libc::SIGCHLD, None) == Some(libc::SIG_IGN);
        if ignored {
            // Without this, the kernel would discard the program's exit status.
            disposition(libc::SIGCHLD, Some(libc::SIG_DFL));
        }
        let start = Start {
            file: &file,
            words: &pointers(words.iter().map(CString::as_c_str)),
            script: script.as_deref(),
            limit: original_limit(),
            children_ignored: ignored,
            release: release.as_raw_fd(),
            released: released.as_fd(),
            failed: failed.as_fd(),
        };
        // Signal handlers of this process must not run in the child.
        let mask = set_mask(&all_signals());
        // SAFETY: the child calls async-signal-safe functions only, and does not return.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            start.run();
        }
        let error = io::Error::last_os_error();
        set_mask(&mask);
        let pid = Pid::from_raw(pid.max(0)).ok_or(error)?;
        Ok(HeldProgram {
            pid: pid.as_raw_pid() as u32,
            child: Some(Launched { pid, ended: None }),
            program: program.to_owned(),
            release,
            failure,
        })
    }

    /// PID of the process; the program will have the same PID.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets the program start. Returns after the kernel has executed it.
    ///
    /// # Errors
    ///
    /// [`LaunchError::NotExecutable`] if the kernel refuses to execute it.
    pub fn release(mut self) -> Result<Launched, LaunchError> {
        let Some(mut child) = self.child.take() else {
            return Err(io::Error::from_raw_os_error(libc::ESRCH).into());
        };
        // This fails if the child was killed, which the child's exit status will show.
        let _ = rustix::io::write(&self.release, &[0]);
        // The program's start closes the write end of this pipe; if the start fails, the child
        // writes `errno`.
        let mut errno = [0; 4];
        match retry_on_intr(|| rustix::io::read(&self.failure, &mut errno)) {
            Ok(4) => {
                let source = io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
                child.wait()?;
                Err(LaunchError::NotExecutable { program: mem::take(&mut self.program), source })
            }
            _ => Ok(child),
        }
    }
}

impl Drop for HeldProgram {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The child is still waiting; it must not execute the program.
            let _ = child.forward(libc::SIGKILL);
            let _ = child.wait();
        }
    }
}

impl Launched {
    /// PID of the program.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_pid() as u32
    }

    /// Exit status of the program, if it has ended.
    ///
    /// # Errors
    ///
    /// If the program has been reaped elsewhere.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.wait_with(WaitOptions::NOHANG)
    }

    /// Waits until the program ends.
    ///
    /// # Errors
    ///
    /// If the program has been reaped elsewhere.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.wait_with(WaitOptions::empty())? {
                return Ok(status);
            }
        }
    }

    fn wait_with(&mut self, options: WaitOptions) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            let status = retry_on_intr(|| waitpid(Some(self.pid), options))?;
            self.ended = status.map(|(_, status)| ExitStatus::from_raw(status.as_raw()));
        }
        Ok(self.ended)
    }

    /// Sends a signal to the program. Does nothing if the program is known to have ended, because
    /// its PID may then belong to another process.
    ///
    /// # Errors
    ///
    /// If there is no such signal, or if the program now runs as another user.
    pub fn forward(&self, signal: i32) -> io::Result<()> {
        if self.ended.is_some() {
            return Ok(());
        }
        // SAFETY: touches no memory.
        match unsafe { libc::kill(self.pid.as_raw_pid(), signal) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The file that a program's name refers to: the name itself if it contains a slash, otherwise the
/// first executable with this name in the directories of `path`.
fn find(program: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, LaunchError> {
    let candidates: Vec<PathBuf> = if program.as_bytes().contains(&b'/') {
        vec![program.into()]
    } else if program.is_empty() {
        Vec::new()
    } else {
        // An empty entry in `PATH` means the current directory.
        env::split_paths(path.unwrap_or(OsStr::new("/bin:/usr/bin")))
            .map(|directory| Path::new(".").join(directory).join(program))
            .collect()
    };
    let mut source = None;
    for file in candidates {
        match executable(&file) {
            Ok(()) => return Ok(file),
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(errno) => source = source.or(Some(errno)),
        }
    }
    let program = program.to_owned();
    Err(match source {
        None => LaunchError::NotFound(program),
        Some(source) => LaunchError::NotExecutable { program, source: source.into() },
    })
}

fn executable(file: &Path) -> Result<(), Errno> {
    let kind = FileType::from_raw_mode(rustix::fs::stat(file)?.st_mode);
    if kind != FileType::RegularFile {
        return Err(if kind == FileType::Directory { Errno::ISDIR } else { Errno::ACCESS });
    }
    rustix::fs::accessat(CWD, file, Access::EXEC_OK, AtFlags::empty())
}

/// Returns `true` if a file is probably a script, by the test that shells use.
fn is_text(file: &Path) -> bool {
    let mut head = [0; 128];
    let mut read = || File::open(file)?.read(&mut head);
    let length = read().unwrap_or(0);
    let line = head[..length].split(|&byte| byte == b'\n').next().unwrap_or_default();
    !line.starts_with(b"\x7fELF") && !line.contains(&0)
}

/// Pointers to words as `execv` takes them, terminated by null.
fn pointers<'a>(words: impl Iterator<Item = &'a CStr>) -> Vec<*const libc::c_char> {
    words.map(CStr::as_ptr).chain(iter::once(ptr::null())).collect()
}

/// Everything that the child needs, prepared before the fork.
struct Start<'a> {
    file: &'a CStr,
    /// Arguments of the program, terminated by null.
    words: &'a [*const libc::c_char],
    /// Arguments for executing a script that names no interpreter, as execvp(3) does.
    script: Option<&'a [*const libc::c_char]>,
    limit: Rlimit,
    children_ignored: bool,
    release: RawFd,
    released: BorrowedFd<'a>,
    failed: BorrowedFd<'a>,
}

impl Start<'_> {
    /// Runs in the child. Nothing here may allocate or lock: at the time of the fork, another
    /// thread of the parent may have held a lock, which would never be released.
    fn run(self) -> ! {
        for signal in 1..=MAX_SIGNAL {
            // Signal handlers vanish when the program is executed, but ignored signals stay
            // ignored.
            if disposition(signal, None).is_some_and(|handler| handler != libc::SIG_IGN) {
                disposition(signal, Some(libc::SIG_DFL));
            }
        }
        disposition(libc::SIGPIPE, Some(libc::SIG_DFL));
        if self.children_ignored {
            disposition(libc::SIGCHLD, Some(libc::SIG_IGN));
        }
        let _ = setrlimit(Resource::Nofile, self.limit);
        // Otherwise the pipe would not close when the parent ends.
        // SAFETY: the parent's end of the pipe, of which this is the child's only use.
        unsafe { libc::close(self.release) };
        set_mask(&no_signals());
        // If the pipe has closed, the profiler has ended, and the program must start on its own.
        let _ = retry_on_intr(|| rustix::io::read(self.released, &mut [0]));
        // SAFETY: both are terminated, and live as long as this process.
        unsafe { libc::execv(self.file.as_ptr(), self.words.as_ptr()) };
        let errno = io::Error::last_os_error().raw_os_error().unwrap_or(libc::ENOEXEC);
        if let Some(script) = self.script.filter(|_| errno == libc::ENOEXEC) {
            // SAFETY: as above.
            unsafe { libc::execv(SHELL.as_ptr(), script.as_ptr()) };
        }
        let _ = rustix::io::write(self.failed, &errno.to_ne_bytes());
        // SAFETY: ends the process.
        unsafe { libc::_exit(126) }
    }
}

/// Installs `handler` if one is given. Returns the signal's previous handler; `None` if there is no
/// such signal.
fn disposition(signal: libc::c_int, handler: Option<usize>) -> Option<usize> {
    let new = handler.map(|handler| {
        // SAFETY: the structure has numbers and an optional function only.
        let mut new: libc::sigaction = unsafe { mem::zeroed() };
        new.sa_sigaction = handler;
        new
    });
    let new = new.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: as above.
    let mut old: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: both are null or live; the handlers that are set here are none of ours.
    let result = unsafe { libc::sigaction(signal, new, &mut old) };
    (result == 0).then_some(old.sa_sigaction)
}

fn no_signals() -> libc::sigset_t {
    // SAFETY: a set of bits.
    unsafe { mem::zeroed() }
}

fn all_signals() -> libc::sigset_t {
    let mut set = no_signals();
    // SAFETY: `set` is live and writable.
    unsafe { libc::sigfillset(&mut set) };
    set
}

fn set_mask(mask: &libc::sigset_t) -> libc::sigset_t {
    let mut old = no_signals();
    // SAFETY: both are live.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, &mut old) };
    old
}
