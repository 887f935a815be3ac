//! Peers that are programs: they run in processes of their own, measure themselves, and answer
//! requests line by line.
//!
//! `docs/dev/peers.md` describes the protocol. A program fails if it ends, is silent for too long,
//! or answers anything unexpected; then only its rows are missing. Errors are worded as clauses,
//! such as `it ended`.

mod answer;
mod hello;
mod request;
mod rows;
mod talk;
#[cfg(test)]
mod tests;
mod usage;

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use threadtoll_record::BlockKind;

use crate::foreign::description::clean;
use answer::MeasuredBlock;
use talk::Talk;

pub use hello::{Hello, Peer, ProgramQueue};
pub(crate) use request::Request;
pub use rows::{DescribedProgram, ProgramRows, describe};
pub(crate) use usage::Usage;

/// Factor by which a block may take longer than requested: a filled queue must also be drained.
const LONGER: u32 = 10;
/// Factor by which preparing may exceed the patience, because runtimes compile meanwhile.
const PREPARING: u32 = 3;
const MAX_BLOCK_NS: u64 = 3_600_000_000_000;

/// A running program. Dropping this tells the program to end and, one second later, kills the
/// program and everything that it has started.
pub struct Program {
    talk: Talk,
    hello: Hello,
    patience: Duration,
}

impl Program {
    /// Starts a program and asks for its description. If `cpus` is not empty, the program is
    /// restricted to these CPUs. It must answer within `patience`.
    ///
    /// # Errors
    ///
    /// If the program cannot be started, or does not describe itself.
    pub fn start(path: &Path, cpus: &[u32], patience: Duration) -> Result<Program, String> {
        let mut talk = Talk::start(path.as_os_str(), cpus)?;
        talk.say("hello", patience)?;
        let hello = Hello::read(&talk.line()?)?;
        Ok(Program { talk, hello, patience })
    }

    /// The program's description of itself.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    pub(crate) fn pid(&self) -> Pid {
        self.talk.pid()
    }

    /// Returns the duration of the program's warm-up in milliseconds, if reported.
    ///
    /// # Errors
    ///
    /// If the program refuses, or breaks the protocol.
    pub(crate) fn prepare(&mut self, request: &Request) -> Result<Option<u64>, String> {
        self.talk.say(&request.prepare, PREPARING * self.patience)?;
        let line = self.talk.line()?;
        if let Some(sentence) = answer::error(&line) {
            return Err(format!("it cannot be prepared: {sentence}"));
        }
        if line == "ready" {
            return Ok(None);
        }
        let digits = line.strip_prefix("ready warm_up_ms=");
        match digits.and_then(|digits| digits.parse().ok()) {
            Some(warm_up_ms) => Ok(Some(warm_up_ms)),
            None => Err(format!("it said “{}” instead of “ready”", clean(&line))),
        }
    }

    /// Measures a block of this length.
    ///
    /// # Errors
    ///
    /// If the program reports an error or figures that do not fit, or breaks the protocol.
    pub(crate) fn block(
        &mut self,
        request: &Request,
        kind: BlockKind,
        length_ns: u64,
    ) -> Result<MeasuredBlock, String> {
        let length_ns = length_ns.clamp(1, MAX_BLOCK_NS);
        let begun = Instant::now();
        let time = self.patience + LONGER * Duration::from_nanos(length_ns);
        self.talk.say(&format!("block {length_ns}"), time)?;
        let measured = answer::read(&mut self.talk, request.question, kind)?;
        let (claimed, took) = (measured.claimed, begun.elapsed());
        if claimed > took {
            let [claimed_ms, took_ms] = [claimed, took].map(|time| time.as_millis());
            return Err(format!("its block of {claimed_ms} ms was over after {took_ms} ms"));
        }
        Ok(measured)
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "program {}", self.talk.pid().as_raw_nonzero())
    }
}
