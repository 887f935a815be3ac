//! Programs: peers in processes of their own, which measure themselves and answer lines.
//!
//! `docs/peers.md` is the protocol. Everything that a program says may be wrong, and it may say
//! nothing, or too much: each answer has limits of time and size, has to fit itself and the time
//! that it took, and the program's clock has to be ours. A program that breaks this costs its rows
//! and one line ([`Fault`]).

mod answer;
mod clock;
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
use threadtoll_record::StrikeReason;

use clock::{ClockCheck, Look, monotonic_ns};
use talk::{Limits, Talk};

pub(crate) use answer::{Answer, Bursts, Chatty, Deliveries, Tally};
pub use hello::{Hello, Peer, ProgramQueue};
pub(crate) use request::Request;
pub(crate) use rows::ProgramFile;
pub use rows::{DescribedProgram, ProgramRows, describe};
pub use talk::Fault;
pub(crate) use usage::Usage;

/// Limits of a short answer.
const LINE: usize = 4096;
/// Limit of a description.
const DESCRIPTION: usize = 256 << 10;
/// A block may take this many times as long as asked: queues that have filled are drained, too.
const LONGER: u32 = 10;
/// Longest block that is asked for.
const MAX_BLOCK_NS: u64 = 3_600_000_000_000;

/// Time that a program has for its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For its description, and so to start.
    pub hello: Duration,
    /// To be prepared: runtimes compile meanwhile.
    pub prepare: Duration,
    /// For a block, in addition to several times its length, and for its clock.
    pub block: Duration,
}

impl Patience {
    /// The patience with a cell that makes no progress for this long.
    pub fn of(patience: Duration) -> Self {
        Patience { hello: patience.mul_f64(1.5), prepare: 3 * patience, block: patience }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self::of(crate::real::PATIENCE)
    }
}

/// A program that runs. When this is dropped, it is told to end, and a second later it and all
/// that it has started are killed.
pub struct Program {
    talk: Talk,
    hello: Hello,
    clock: ClockCheck,
    patience: Patience,
}

impl Program {
    /// Starts a program, on these CPUs if there are any, and asks for its description.
    ///
    /// # Errors
    ///
    /// If it cannot be started, or does not describe itself.
    pub fn start(path: &Path, cpus: &[u32], patience: Patience) -> Result<Program, Fault> {
        let mut talk = Talk::start(path.as_os_str(), cpus)?;
        let limits = Limits { line: DESCRIPTION, answer: DESCRIPTION, time: patience.hello };
        let line = talk.ask("hello", limits)?;
        let hello = Hello::read(&line)?;
        let mut program = Program { talk, hello, clock: ClockCheck::default(), patience };
        program.check_clock()?;
        Ok(program)
    }

    /// Its description.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Its process.
    pub(crate) fn pid(&self) -> Pid {
        self.talk.program.pid()
    }

    /// Prepares what the next blocks are of; returns for how long it has warmed up, in
    /// milliseconds, if it says so.
    ///
    /// # Errors
    ///
    /// If it refuses, or breaks the protocol.
    pub(crate) fn prepare(&mut self, request: &Request) -> Result<Option<u64>, Fault> {
        let begun = Instant::now();
        let limits = self.short(self.patience.prepare);
        let line = self.talk.ask(&request.prepare, limits)?;
        if let Some(sentence) = answer::error(&line) {
            let clause = format!("it cannot be prepared: {sentence}");
            return Err(Fault::new(StrikeReason::Refused, clause));
        }
        let warm_up = match line.split_once(' ') {
            None if line == "ready" => return Ok(None),
            Some(("ready", rest)) => rest.strip_prefix("warm_up_ms="),
            _ => None,
        };
        let digits = warm_up.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let Some(warm_up_ms) = digits.and_then(|digits| digits.parse().ok()) else {
            let said = answer::said(&line);
            return Err(Fault::rubbish(format!("it said “{said}” instead of “ready”")));
        };
        let took_ms = begun.elapsed().as_millis() as u64;
        if warm_up_ms > took_ms + 1 {
            let clause = format!("it warmed up for {warm_up_ms} ms within {took_ms} ms");
            return Err(Fault::new(StrikeReason::WrongMessage, clause));
        }
        Ok(Some(warm_up_ms))
    }

    /// Measures a block of this length; returns the CPU time, too, in nanoseconds, that the
    /// program says went by before its first message.
    ///
    /// # Errors
    ///
    /// If it reports an error, its figures do not fit, its clock is not ours, or it breaks the
    /// protocol.
    pub(crate) fn block(
        &mut self,
        request: &Request,
        length_ns: u64,
    ) -> Result<(Answer, u64), Fault> {
        let length_ns = length_ns.clamp(1, MAX_BLOCK_NS);
        let time = self.patience.block + LONGER * Duration::from_nanos(length_ns);
        let begun = Instant::now();
        self.talk.say(&format!("block {length_ns}ns"))?;
        let lines = self.talk.listen(answer::limits(time));
        let (answer, settling_ns) = answer::read(lines, request.question)?;
        answer.check_time(length_ns, begun.elapsed())?;
        self.check_clock()?;
        Ok((answer, settling_ns))
    }

    fn check_clock(&mut self) -> Result<(), Fault> {
        let limits = self.short(self.patience.block);
        let before_ns = monotonic_ns();
        let line = self.talk.ask("clock", limits)?;
        let after_ns = monotonic_ns();
        let own_ns = line.strip_prefix("clock ").and_then(|digits| digits.parse().ok());
        let Some(own_ns) = own_ns else {
            let said = answer::said(&line);
            return Err(Fault::rubbish(format!("it said “{said}” instead of its clock")));
        };
        self.clock.check(Look { before_ns, own_ns, after_ns })
    }

    /// Tells it to end, and kills it a second later; returns `true` if it ended as it should.
    pub fn quit(mut self) -> bool {
        self.talk.quit().is_some_and(|status| status.success())
    }

    fn short(&self, time: Duration) -> Limits {
        Limits { line: LINE, answer: LINE, time }
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "program {}", self.talk.program.pid().as_raw_nonzero())
    }
}
