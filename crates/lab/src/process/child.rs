//! A child process that exchanges lines with this process. The child can neither make this process
//! wait beyond a time limit nor fill this process's memory.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use super::guardian::Guarded;

/// Number of parts into which a wait is divided. If this process is stopped during the wait, for
/// instance by Ctrl-Z, the stop counts as no more than one part.
const PARTS: u32 = 8;
const CHUNK: usize = 64 << 10;
/// Maximum number of bytes that a process may print to standard error.
const MAX_PRINTED: usize = 1 << 20;
/// Maximum number of printed bytes that are kept, for use in messages.
const MAX_KEPT: usize = 16 << 10;
/// Time for a process to end by itself after it has closed its output.
const GRACE: Duration = Duration::from_secs(1);

pub(crate) enum Heard {
    Line(Vec<u8>),
    /// The process has ended, or has closed its output.
    Ended,
    Silence,
    /// A line that is too long, or too much output on standard error.
    Flood,
}

pub(crate) struct Ending {
    pub(crate) status: ExitStatus,
    /// False if the process had to be killed.
    pub(crate) by_itself: bool,
    /// First line that the process printed to standard error.
    pub(crate) words: String,
}

impl Ending {
    /// End of the process as a clause that follows "it", such as `was killed`.
    pub(crate) fn clause(&self) -> String {
        let how = how(self.status);
        if !self.by_itself {
            return "closed its files".into();
        }
        if self.status.signal() == Some(Signal::KILL.as_raw()) {
            return format!("was killed ({how}), perhaps because memory ran out");
        }
        format!("ended its process ({how})")
    }
}

/// Text such as `exit status: 1`.
pub(crate) fn how(status: ExitStatus) -> String {
    status.to_string().trim_end_matches(" (core dumped)").into()
}

/// A process that this one has started. Dropping this kills the process and everything that it has
/// started.
#[derive(Debug)]
pub(crate) struct Child {
    // First field: when this value is dropped, the process's input is closed before the process is
    // killed.
    to: Option<ChildStdin>,
    from: ChildStdout,
    /// `None` if standard error is not read, or has been closed.
    errors: Option<ChildStderr>,
    process: Guarded,
    /// Handle that becomes readable when the process has ended; `None` on kernels before 5.3.
    ended: Option<OwnedFd>,
    /// Bytes received from the process. Bytes from index `taken` on have not been processed.
    sent: Vec<u8>,
    taken: usize,
    printed: usize,
    kept: Vec<u8>,
}

impl Child {
    /// Starts a process. If `cpus` is not empty, the process is restricted to these CPUs. Its
    /// standard error is read only if the command redirects it to a pipe.
    pub(crate) fn start(mut command: Command, cpus: &[u32]) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Guarded::start(command, cpus)?;
        let pipes = process.take_pipes();
        let (to, from) = pipes.ok_or_else(|| io::Error::other("it has no pipes"))?;
        Ok(Child {
            to: Some(to),
            from,
            errors: process.take_errors(),
            ended: pidfd_open(process.guardian(), PidfdFlags::empty()).ok(),
            process,
            sent: Vec::new(),
            taken: 0,
            printed: 0,
            kept: Vec::new(),
        })
    }

    pub(crate) fn of_this_program(mut command: Command) -> io::Result<Self> {
        command.stderr(Stdio::piped());
        Self::start(command, &[])
    }

    /// From now on, [`send`](Self::send) fails instead of waiting for the process to read.
    pub(crate) fn send_without_waiting(&self) -> io::Result<()> {
        Ok(self.to.as_ref().map_or(Ok(()), |to| ioctl_fionbio(to, true))?)
    }

    pub(crate) fn pid(&self) -> Pid {
        self.process.pid()
    }

    pub(crate) fn send(&mut self, text: &str) -> io::Result<()> {
        let closed = || io::Error::from(ErrorKind::BrokenPipe);
        self.to.as_mut().ok_or_else(closed)?.write_all(format!("{text}\n").as_bytes())
    }

    /// Returns `true` if no process is left that could read from the input pipe.
    pub(crate) fn is_deaf(&self) -> bool {
        let Some(to) = &self.to else { return true };
        let mut end = [PollFd::new(to, PollFlags::empty())];
        let _ = poll(&mut end, Some(&Timespec::default()));
        end[0].revents().contains(PollFlags::ERR)
    }

    pub(crate) fn close(&mut self) {
        self.to = None;
    }

    /// Waits at most `patience`. A line of more than about `longest` bytes is a [`Heard::Flood`].
    pub(crate) fn listen(&mut self, patience: Duration, longest: usize) -> io::Result<Heard> {
        let part = patience / PARTS;
        let mut waited = Duration::ZERO;
        let mut searched = 0;
        loop {
            let own = &self.sent[self.taken..];
            if let Some(end) = own[searched..].iter().position(|byte| *byte == b'\n') {
                let line = own[..searched + end].to_vec();
                self.taken += line.len() + 1;
                return Ok(Heard::Line(line));
            }
            searched = own.len();
            if self.printed > MAX_PRINTED || searched > longest {
                return Ok(Heard::Flood);
            }
            if waited >= part * PARTS {
                return Ok(Heard::Silence);
            }
            let begin = Instant::now();
            let [sent, printed, ended] = self.ready(part)?;
            waited += begin.elapsed().min(part);
            if sent {
                if self.read_lines()? == Some(0) {
                    return Ok(Heard::Ended);
                }
            } else if printed {
                self.read_errors();
            } else if ended {
                // Other processes that the process has started may still hold the pipe open.
                return Ok(Heard::Ended);
            }
        }
    }

    /// Waits for standard output, standard error, or the end of the process. Returns `true` for
    /// each of the three that is ready.
    fn ready(&self, limit: Duration) -> io::Result<[bool; 3]> {
        let limit =
            Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
        let mut waits = vec![PollFd::new(&self.from, PollFlags::IN)];
        waits.extend(self.errors.as_ref().map(|errors| PollFd::new(errors, PollFlags::IN)));
        waits.extend(self.ended.as_ref().map(|ended| PollFd::new(ended, PollFlags::IN)));
        match poll(&mut waits, Some(&limit)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok([false; 3]),
            Err(error) => return Err(error.into()),
        }
        let mut ready = waits.iter().map(|wait| !wait.revents().is_empty());
        let mut next = |is_there: bool| is_there && ready.next().unwrap_or(false);
        Ok([next(true), next(self.errors.is_some()), next(self.ended.is_some())])
    }

    /// Returns the number of bytes read (0 at the end of the output), or `None` if interrupted.
    fn read_lines(&mut self) -> io::Result<Option<usize>> {
        self.sent.drain(..self.taken);
        self.taken = 0;
        let before = self.sent.len();
        self.sent.resize(before + CHUNK, 0);
        let read = self.from.read(&mut self.sent[before..]);
        self.sent.truncate(before + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(count) => Ok(Some(count)),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read_errors(&mut self) {
        let Some(errors) = &mut self.errors else { return };
        let mut bytes = [0; CHUNK];
        match errors.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => self.errors = None,
            Ok(count) => {
                self.printed += count;
                let room = MAX_KEPT.saturating_sub(self.kept.len()).min(count);
                self.kept.extend_from_slice(&bytes[..room]);
            }
        }
    }

    /// Waits until the process and everything that it has started have ended; `None` after
    /// [`GRACE`].
    pub(crate) fn ending(&mut self) -> Option<ExitStatus> {
        self.process.ending(GRACE)
    }

    /// Kills the process unless it ends by itself within [`GRACE`].
    pub(crate) fn end(&mut self) -> io::Result<Ending> {
        let by_itself = self.ending().is_some();
        // The process may have printed more before it ended.
        while self.printed <= MAX_PRINTED && self.errors.is_some() {
            match self.ready(Duration::ZERO)? {
                [_, true, _] => self.read_errors(),
                _ => break,
            }
        }
        let status = self.process.kill()?;
        let words = String::from_utf8_lossy(&self.kept);
        let words = words.lines().find(|line| !line.is_empty()).unwrap_or_default();
        Ok(Ending { status, by_itself, words: words.to_string() })
    }
}
