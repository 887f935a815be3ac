//! Lines to and from a program, none of which can keep this process waiting or fill its memory.

use std::ffi::OsStr;
use std::io::{ErrorKind, Read, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};

use crate::foreign::guardian::Guarded;

/// Time in which a program has to end.
const QUIT: Duration = Duration::from_secs(1);
const CHUNK: usize = 64 << 10;
/// Most bytes of a line: that of the description is the longest.
const MAX_LINE: usize = 256 << 10;
/// Most bytes of an answer.
const MAX_ANSWER: usize = 64 << 20;

/// A program that answers lines.
pub(super) struct Talk {
    // Closed before the program is killed.
    to: Option<ChildStdin>,
    from: ChildStdout,
    /// Bytes that have come; those from `taken` on were not taken yet.
    come: Vec<u8>,
    taken: usize,
    /// Bytes that the present answer may still have, and the time by which it has to be whole.
    left: usize,
    deadline: Instant,
    time: Duration,
    pub(super) program: Guarded,
}

impl Talk {
    pub(super) fn start(path: &OsStr, cpus: &[u32]) -> Result<Self, String> {
        let refused = |error: std::io::Error| format!("it cannot be started: {error}");
        let mut command = Command::new(path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut program = Guarded::start(command, cpus).map_err(refused)?;
        let no_pipes = || refused(std::io::Error::other("it has no pipes"));
        let (to, from) = program.take_pipes().ok_or_else(no_pipes)?;
        ioctl_fionbio(&to, true).map_err(|error| refused(error.into()))?;
        ioctl_fionbio(&from, true).map_err(|error| refused(error.into()))?;
        let (come, time) = (Vec::new(), Duration::ZERO);
        let deadline = Instant::now();
        Ok(Talk { to: Some(to), from, come, taken: 0, left: 0, deadline, time, program })
    }

    /// Sends a request, of which the whole answer has to come within this time.
    pub(super) fn say(&mut self, line: &str, time: Duration) -> Result<(), String> {
        (self.left, self.time, self.deadline) = (MAX_ANSWER, time, Instant::now() + time);
        let Some(to) = &mut self.to else { return Err("it was told to end".into()) };
        match to.write_all(format!("{line}\n").as_bytes()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                Err("it does not read its input".into())
            }
            Err(_) => Err(self.gone("closed its input")),
        }
    }

    /// The next line of the answer, without its line feed.
    pub(super) fn line(&mut self) -> Result<String, String> {
        let mut searched = 0;
        loop {
            let own = &self.come[self.taken..];
            if let Some(end) = own[searched..].iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8(own[..searched + end].to_vec());
                self.taken += searched + end + 1;
                let left = self.left.checked_sub(searched + end + 1);
                self.left = left.ok_or(format!("its answer has over {} MiB", MAX_ANSWER >> 20))?;
                return line.map_err(|_| "its answer is not text".into());
            }
            searched = own.len();
            if searched > MAX_LINE {
                return Err(format!("its answer has a line of over {} KiB", MAX_LINE >> 10));
            }
            self.take_in()?;
        }
    }

    /// Waits until more has come, and reads it.
    fn take_in(&mut self) -> Result<(), String> {
        self.come.drain(..self.taken);
        self.taken = 0;
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let seconds = self.time.as_secs_f64();
            return Err(format!("it gave no whole answer within {seconds:.0} s"));
        }
        let limit =
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let mut from = [PollFd::new(&self.from, PollFlags::IN)];
        match poll(&mut from, Some(&limit)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(format!("its output cannot be waited for: {error}")),
        }
        let before = self.come.len();
        self.come.resize(before + CHUNK, 0);
        let read = self.from.read(&mut self.come[before..]);
        self.come.truncate(before + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(0) => Err(self.gone("closed its output")),
            Ok(_) => Ok(()),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Ok(())
            }
            Err(error) => Err(format!("its output cannot be read: {error}")),
        }
    }

    /// The failure of a program whose pipe is closed: it has ended, or else did only that.
    fn gone(&mut self, closed: &str) -> String {
        match self.program.ending(QUIT) {
            Some(status) => {
                let how = status.to_string();
                format!("its program ended by itself ({})", how.trim_end_matches(" (core dumped)"))
            }
            None => format!("it {closed}"),
        }
    }
}

impl Drop for Talk {
    /// Tells the program to end, and kills it and all that it has started a second later.
    fn drop(&mut self) {
        if let Some(mut to) = self.to.take() {
            let _ = to.write_all(b"quit\n");
        }
        self.program.ending(QUIT);
        let _ = self.program.kill();
    }
}
