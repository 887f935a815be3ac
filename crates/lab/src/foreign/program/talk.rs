//! Sends requests to a program and reads the lines of its answers, with limits on time and length.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::process::{Child, Heard, how};

/// Maximum length of a line in bytes. The longest line is the description.
const MAX_LINE: usize = 256 << 10;
/// Maximum length of an answer in bytes.
const MAX_ANSWER: usize = 64 << 20;

pub(super) struct Talk {
    program: Child,
    /// Number of bytes by which the current answer may still grow.
    left: usize,
    deadline: Instant,
    time: Duration,
}

impl Talk {
    pub(super) fn start(path: &OsStr, cpus: &[u32]) -> Result<Self, String> {
        let refused = |error: std::io::Error| format!("it cannot be started: {error}");
        let mut command = Command::new(path);
        command.stderr(Stdio::null());
        let program = Child::start(command, cpus).map_err(refused)?;
        program.send_without_waiting().map_err(refused)?;
        Ok(Talk { program, left: 0, deadline: Instant::now(), time: Duration::ZERO })
    }

    pub(super) fn pid(&self) -> Pid {
        self.program.pid()
    }

    /// Sends a request; its complete answer must arrive within this time.
    pub(super) fn say(&mut self, line: &str, time: Duration) -> Result<(), String> {
        (self.left, self.time, self.deadline) = (MAX_ANSWER, time, Instant::now() + time);
        match self.program.send(line) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                Err("it does not read its input".into())
            }
            Err(_) => Err(self.gone("closed its input")),
        }
    }

    pub(super) fn line(&mut self) -> Result<String, String> {
        let patience = self.deadline.saturating_duration_since(Instant::now());
        let heard = self.program.listen(patience, MAX_LINE);
        match heard.map_err(|error| format!("its output cannot be read: {error}"))? {
            Heard::Line(bytes) => {
                let left = self.left.checked_sub(bytes.len() + 1);
                self.left = left.ok_or(format!("its answer exceeds {} MiB", MAX_ANSWER >> 20))?;
                String::from_utf8(bytes).map_err(|_| "its answer is not text".into())
            }
            Heard::Ended => Err(self.gone("closed its output")),
            // Sending succeeded only because another process, which was just being forked, still
            // held the program's input open.
            Heard::Silence if self.program.is_deaf() => Err(self.gone("closed its input")),
            Heard::Silence => {
                Err(format!("it gave no complete answer within {:.0} s", self.time.as_secs_f64()))
            }
            Heard::Flood => Err(format!("a line of its answer exceeds {} KiB", MAX_LINE >> 10)),
        }
    }

    fn gone(&mut self, closed: &str) -> String {
        match self.program.ending() {
            Some(status) => format!("its program ended by itself ({})", how(status)),
            None => format!("it {closed}"),
        }
    }
}

impl Drop for Talk {
    /// Gives the program one second to end. Then it is killed, with everything that it has started.
    fn drop(&mut self) {
        let _ = self.program.send("quit");
        self.program.close();
        self.program.ending();
    }
}
