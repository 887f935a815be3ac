//! Other processes of this program, which run the code of queues: it may crash, hang, print, fork,
//! or close files.
//!
//! The two talk in lines over a socket, and what the other process prints is read but not shown. A
//! guardian stands between them, so no process outlives the one that was started by hand, whatever
//! ends that ([`Guarded`]).

use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, PipeReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, Signal, pidfd_open, set_parent_process_death_signal};
use rustix::stdio::dup2_stdin;
use threadtoll_lab::foreign::guardian::Guarded;

/// Not the program's path: the program may have been replaced since it was started.
pub(crate) const PROGRAM: &str = "/proc/self/exe";
/// Parts of a wait. If this process was stopped meanwhile, as by Ctrl-Z, that costs one of them.
const PARTS: u32 = 8;
/// Most bytes that a process may print.
const MOST_PRINTED: usize = 1 << 20;
/// Most bytes of that which are kept, for messages of our own.
const MOST_KEPT: usize = 16 << 10;
/// Most bytes of a line that a process may send; that of a block takes a few megabytes at most.
const MOST_SENT: usize = 64 << 20;
/// Time for a process to end by itself after it has closed its socket.
const GRACE: Duration = Duration::from_secs(1);

/// News of a process.
pub(crate) enum Heard {
    Line(Vec<u8>),
    /// It has ended, or has closed its socket.
    Ended,
    /// Nothing, for as long as was asked for.
    Silence,
    /// It prints too much, or writes to the socket what is no line.
    Flood,
}

/// The end of a process.
pub(crate) struct Ending {
    pub(crate) status: ExitStatus,
    /// False if it had to be killed.
    pub(crate) by_itself: bool,
    /// The first line that it printed.
    pub(crate) words: String,
}

impl Ending {
    /// As a clause about “it”.
    pub(crate) fn clause(&self) -> String {
        let how = self.how();
        if !self.by_itself {
            return "closed its files".into();
        }
        if self.status.signal() == Some(Signal::KILL.as_raw()) {
            return format!("was killed ({how}), as processes are when memory runs out");
        }
        format!("ended its process ({how})")
    }

    pub(crate) fn how(&self) -> String {
        let how = self.status.to_string();
        how.trim_end_matches(" (core dumped)").into()
    }
}

/// A process that was started by this one. Dropping it kills it, with all that it started.
pub(crate) struct Child {
    process: Guarded,
    /// Tells when it has ended; `None` on kernels before 5.3.
    ended: Option<OwnedFd>,
    socket: UnixStream,
    /// Bytes that it sent after the last line that was taken.
    sent: Vec<u8>,
    /// `None` once it is closed.
    output: Option<PipeReader>,
    printed: usize,
    kept: Vec<u8>,
}

impl Child {
    /// Starts this program with a word in place of a command.
    pub(crate) fn start(word: &str) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let (output, printed) = io::pipe()?;
        let mut command = Command::new(PROGRAM);
        command
            .arg(word)
            .stdin(OwnedFd::from(theirs))
            .stdout(printed.try_clone()?)
            .stderr(Stdio::from(printed));
        let process = Guarded::start(command, &[])?;
        Ok(Child {
            ended: pidfd_open(process.guardian(), PidfdFlags::empty()).ok(),
            process,
            socket: ours,
            sent: Vec::new(),
            output: Some(output),
            printed: 0,
            kept: Vec::new(),
        })
    }

    /// Sends a line. If the process has ended, that is found when it is next listened to.
    pub(crate) fn send(&mut self, text: &str) {
        let _ = self.socket.write_all(format!("{text}\n").as_bytes());
    }

    /// Ends the lines to the process.
    pub(crate) fn close(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
    }

    /// Waits until something is heard, for at most this long.
    pub(crate) fn listen(&mut self, patience: Duration) -> io::Result<Heard> {
        let part = patience / PARTS;
        let mut waited = Duration::ZERO;
        let mut searched = 0;
        loop {
            if let Some(end) = self.sent[searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.sent.split_off(searched + end + 1);
                return Ok(Heard::Line(std::mem::replace(&mut self.sent, rest)));
            }
            searched = self.sent.len();
            if self.printed > MOST_PRINTED || searched > MOST_SENT {
                return Ok(Heard::Flood);
            }
            if waited >= part * PARTS {
                return Ok(Heard::Silence);
            }
            let begin = Instant::now();
            let [sent, printed, ended] = self.ready(part)?;
            waited += begin.elapsed().min(part);
            if sent {
                let mut bytes = [0; 1 << 16];
                match self.socket.read(&mut bytes) {
                    Ok(0) => return Ok(Heard::Ended),
                    Ok(count) => self.sent.extend_from_slice(&bytes[..count]),
                    Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                        return Ok(Heard::Ended);
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            } else if printed {
                self.read_output();
            } else if ended {
                // Something that it started may hold the socket open.
                return Ok(Heard::Ended);
            }
        }
    }

    /// Waits until one of these is true: it has sent something, has printed something, has ended.
    fn ready(&self, limit: Duration) -> io::Result<[bool; 3]> {
        let limit =
            Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
        let mut waits = vec![PollFd::new(&self.socket, PollFlags::IN)];
        waits.extend(self.output.as_ref().map(|output| PollFd::new(output, PollFlags::IN)));
        waits.extend(self.ended.as_ref().map(|ended| PollFd::new(ended, PollFlags::IN)));
        match poll(&mut waits, Some(&limit)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok([false; 3]),
            Err(error) => return Err(error.into()),
        }
        let mut ready = waits.iter().map(|wait| !wait.revents().is_empty());
        let mut next = |is_there: bool| is_there && ready.next().unwrap_or(false);
        Ok([next(true), next(self.output.is_some()), next(self.ended.is_some())])
    }

    /// Reads what was printed, at least a byte, or its end.
    fn read_output(&mut self) {
        let Some(output) = &mut self.output else { return };
        let mut bytes = [0; 1 << 16];
        match output.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => self.output = None,
            Ok(count) => {
                self.printed += count;
                let room = MOST_KEPT.saturating_sub(self.kept.len()).min(count);
                self.kept.extend_from_slice(&bytes[..room]);
            }
        }
    }

    /// Ends it, if it has not ended by itself, and tells how it ended.
    pub(crate) fn end(&mut self) -> io::Result<Ending> {
        let by_itself = self.process.ending(GRACE).is_some();
        // It may have printed more before it ended.
        while self.printed <= MOST_PRINTED && self.output.is_some() {
            match self.ready(Duration::ZERO)? {
                [_, true, _] => self.read_output(),
                _ => break,
            }
        }
        let status = self.process.kill()?;
        let words = String::from_utf8_lossy(&self.kept);
        let words = words.lines().find(|line| !line.is_empty()).unwrap_or_default();
        Ok(Ending { status, by_itself, words: words.to_string() })
    }
}

/// The process that started this one.
pub(crate) struct First(BufReader<UnixStream>);

impl First {
    /// Takes the socket from standard input, which code of queues then finds empty.
    pub(crate) fn take() -> io::Result<Self> {
        // Where a sandbox forbids it, this process still ends when it next talks.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        let socket = io::stdin().as_fd().try_clone_to_owned()?;
        dup2_stdin(fs::File::open("/dev/null")?)?;
        Ok(First(BufReader::new(socket.into())))
    }

    /// The next line; empty if there are no more.
    pub(crate) fn line(&mut self) -> io::Result<String> {
        let mut text = String::new();
        self.0.read_line(&mut text)?;
        Ok(text)
    }

    pub(crate) fn tell(&mut self, text: &str) -> io::Result<()> {
        self.0.get_mut().write_all(format!("{text}\n").as_bytes())
    }
}
