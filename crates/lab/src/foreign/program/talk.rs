//! Lines to and from a program, none of which can keep this process waiting or fill its memory.

use std::ffi::OsStr;
use std::io::{ErrorKind, Read, Write};
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use threadtoll_record::StrikeReason;

use crate::foreign::guardian::Guarded;

/// Time in which a program has to end.
pub(super) const QUIT: Duration = Duration::from_secs(1);
/// Longest sentence of a program that is repeated to the user, in characters.
const SENTENCE: usize = 200;
const CHUNK: usize = 64 << 10;

/// Why a program, or a row of it, is given up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{clause}")]
pub struct Fault {
    /// Kind of failure.
    pub reason: StrikeReason,
    /// The failure as a clause about “it”.
    pub clause: String,
}

impl Fault {
    pub(super) fn new(reason: StrikeReason, clause: impl Into<String>) -> Self {
        Fault { reason, clause: clause.into() }
    }

    /// The fault of an answer that breaks the protocol.
    pub(super) fn rubbish(clause: impl Into<String>) -> Self {
        Self::new(StrikeReason::Crashed, clause)
    }
}

/// Limits of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes of a line.
    pub(super) line: usize,
    /// Bytes of all lines.
    pub(super) answer: usize,
    /// Time until the last line has come.
    pub(super) time: Duration,
}

/// A program that answers lines.
pub(super) struct Talk {
    // Closed before the program is killed.
    to: Option<ChildStdin>,
    from: ChildStdout,
    /// Bytes that have come; those from `taken` on were not taken yet.
    come: Vec<u8>,
    taken: usize,
    pub(super) program: Guarded,
}

impl Talk {
    pub(super) fn start(path: &OsStr, cpus: &[u32]) -> Result<Self, Fault> {
        let refused = |error: std::io::Error| {
            Fault::new(StrikeReason::Refused, format!("it cannot be started: {error}"))
        };
        let mut command = Command::new(path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut program = Guarded::start(command, cpus).map_err(refused)?;
        let no_pipes = || refused(std::io::Error::other("it has no pipes"));
        let (to, from) = program.take_pipes().ok_or_else(no_pipes)?;
        ioctl_fionbio(&to, true).map_err(|error| refused(error.into()))?;
        ioctl_fionbio(&from, true).map_err(|error| refused(error.into()))?;
        Ok(Talk { to: Some(to), from, come: Vec::new(), taken: 0, program })
    }

    /// Sends a request. Nothing may have come that was not asked for.
    pub(super) fn say(&mut self, line: &str) -> Result<(), Fault> {
        if self.come() || self.take_in()? == Come::Some {
            let end = self.come.len().min(self.taken + SENTENCE);
            let what = spoken(&self.come[self.taken..end]);
            return Err(Fault::rubbish(format!("it said “{what}” without being asked")));
        }
        let Some(to) = &mut self.to else { return Err(Fault::rubbish("it was told to end")) };
        match to.write_all(format!("{line}\n").as_bytes()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                Err(Fault::rubbish("it does not read its input"))
            }
            Err(_) => Err(self.gone("closed its input")),
        }
    }

    /// Begins to listen for an answer.
    pub(super) fn listen(&mut self, limits: Limits) -> Listening<'_> {
        Listening {
            deadline: Instant::now() + limits.time,
            left: limits.answer,
            limits,
            talk: self,
        }
    }

    /// Sends a request and returns the first line of the answer.
    pub(super) fn ask(&mut self, line: &str, limits: Limits) -> Result<String, Fault> {
        self.say(line)?;
        self.listen(limits).line()
    }

    /// Tells the program to end; `None` if it had to be killed.
    pub(super) fn quit(&mut self) -> Option<ExitStatus> {
        if let Some(mut to) = self.to.take() {
            let _ = to.write_all(b"quit\n");
        }
        // A program that still has something to say must not wait for it to be read.
        let begun = Instant::now();
        loop {
            self.come.clear();
            self.taken = 0;
            let _ = self.take_in();
            let status = self.program.ending(Duration::ZERO);
            if status.is_some() || begun.elapsed() >= QUIT {
                let _ = self.program.kill();
                return status;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn come(&self) -> bool {
        self.taken < self.come.len()
    }

    /// Reads what has come, up to a limit.
    fn take_in(&mut self) -> Result<Come, Fault> {
        if self.taken > 0 {
            self.come.drain(..self.taken);
            self.taken = 0;
        }
        let before = self.come.len();
        self.come.resize(before + CHUNK, 0);
        let read = self.from.read(&mut self.come[before..]);
        self.come.truncate(before + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(0) => Err(self.gone("closed its output")),
            Ok(_) => Ok(Come::Some),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Come::Nothing),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Come::Nothing),
            Err(error) => Err(Fault::rubbish(format!("its output cannot be read: {error}"))),
        }
    }

    /// The fault of a program whose pipe is closed: it has ended, or else did only that.
    fn gone(&mut self, closed: &str) -> Fault {
        match self.program.ending(QUIT) {
            Some(status) => {
                let how = status.to_string();
                let how = how.trim_end_matches(" (core dumped)");
                Fault::rubbish(format!("its program ended by itself ({how})"))
            }
            None => Fault::rubbish(format!("it {closed}")),
        }
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        if self.to.is_some() {
            self.quit();
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Come {
    Some,
    Nothing,
}

/// An answer, as it comes.
pub(super) struct Listening<'a> {
    talk: &'a mut Talk,
    limits: Limits,
    /// Bytes that the answer may still have.
    left: usize,
    deadline: Instant,
}

impl Listening<'_> {
    /// The next line, without its line feed.
    pub(super) fn line(&mut self) -> Result<String, Fault> {
        loop {
            let own = &self.talk.come[self.talk.taken..];
            let end = own.iter().position(|byte| *byte == b'\n');
            let length = end.unwrap_or(own.len());
            if length > self.limits.line {
                let limit = self.limits.line;
                return Err(Fault::rubbish(format!("its answer has a line of over {limit} bytes")));
            }
            let Some(end) = end else {
                self.wait()?;
                continue;
            };
            let line = String::from_utf8(own[..end].to_vec());
            self.talk.taken += end + 1;
            let left = self.left.checked_sub(end + 1);
            let limit = self.limits.answer;
            self.left =
                left.ok_or_else(|| Fault::rubbish(format!("its answer has over {limit} bytes")))?;
            return line.map_err(|_| Fault::rubbish("its answer is not text"));
        }
    }

    /// Waits until more has come.
    fn wait(&mut self) -> Result<(), Fault> {
        if self.talk.take_in()? == Come::Some {
            return Ok(());
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let seconds = self.limits.time.as_secs_f64();
            let clause = format!("it gave no whole answer within {seconds:.0} s");
            return Err(Fault::new(StrikeReason::Hung, clause));
        }
        let limit =
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let mut from = [PollFd::new(&self.talk.from, PollFlags::IN)];
        match poll(&mut from, Some(&limit)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(Fault::rubbish(format!("its output cannot be waited for: {error}"))),
        }
    }
}

/// A program's words for people: on one line, without control characters, and not too long.
pub(super) fn spoken(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut said: String = text.chars().take(SENTENCE).map(plain).collect();
    said.truncate(said.trim_end().len());
    if text.chars().nth(SENTENCE).is_some() {
        said.push('…');
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_program_do_no_harm_on_a_terminal() {
        assert_eq!(spoken(b"no\x1b[2J such\nrow\xff "), "no [2J such row\u{fffd}");
        assert_eq!(spoken("ä".repeat(SENTENCE).as_bytes()).chars().count(), SENTENCE);
        assert!(spoken("ä".repeat(SENTENCE + 1).as_bytes()).ends_with("ä…"));
    }
}
