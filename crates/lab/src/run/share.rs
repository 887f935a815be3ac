//! Shares of a run that other processes of this program measure.
//!
//! The first process writes the file. It starts the others one after another, and sends each of
//! them a line with the machine, the plan and a share. A process announces each cell before it runs
//! the cell's code, and sends back its measurements. After each line, it waits until the first
//! process has handled the line, so that the first process sleeps while blocks are measured. If a
//! process crashes or is silent for far too long, only the row that it was measuring is lost.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use libc::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGSYS, SIGTRAP};
use serde::{Deserialize, Serialize};
use threadtoll_record::{Machine, Plan, PlannedCell};

use crate::LabError;
use crate::backend::Backend;
use crate::foreign::Described;
use crate::foreign::program::DescribedProgram;
use crate::process::{Child, Heard, Parent, how};
use crate::real::longest_silence;

use super::{Launch, Share, Step, Take, measure_share};

/// Maximum length of a line from a process, in bytes. A block takes a few megabytes at most.
const MAX_LINE: usize = 64 << 20;

/// Exit code of a Rust program after a panic.
const PANICKED: i32 = 101;

/// Peers in other languages that take part in a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Peers {
    /// Adapters of queues.
    pub adapters: Vec<Described>,
    /// Programs.
    pub programs: Vec<DescribedProgram>,
}

/// The share that a process is to measure, with the machine, plan and peers that it needs.
#[derive(Debug, Serialize, Deserialize)]
pub struct Task {
    /// The machine, as in the run's file.
    pub machine: Machine,
    /// The plan without the cells of other groups, of which there may be thousands.
    pub plan: Plan,
    /// The share.
    pub share: Share,
    /// The peers to which the plan may refer.
    pub peers: Peers,
    /// If a cell makes no progress for this long, it counts as stuck.
    pub patience: Duration,
}

/// A message from a process: a step, the end of its share (`None`), or the reason why it failed.
type Message = Result<Option<Step>, LabError>;

/// Starts processes of this program that measure shares.
#[derive(Debug)]
pub struct Launcher {
    /// Creates the command for a process that [serves](serve_share) a share.
    pub command: fn() -> Command,
    /// When this becomes true, the process that is measuring ends after its current block.
    pub stop: Arc<AtomicBool>,
    /// True if other processes measure every share, and this process measures none.
    pub every_share: bool,
    /// If a process is silent for longer than this, it counts as stuck; `None` to derive the time
    /// from the length of the process's cells.
    pub silence: Option<Duration>,
    /// If a cell makes no progress for this long, it counts as stuck.
    pub patience: Duration,
    /// The peers to which the plan may refer.
    pub peers: Peers,
}

impl Launch for Launcher {
    fn every_share(&self) -> bool {
        self.every_share
    }

    fn launch(
        &mut self,
        machine: &Machine,
        plan: &Plan,
        share: &Share,
        take: &mut Take<'_>,
    ) -> Result<(), LabError> {
        let group = &plan.groups[share.group];
        let mut groups = vec![Vec::new(); plan.groups.len()];
        groups[share.group].clone_from(group);
        let task = Task {
            machine: machine.clone(),
            plan: Plan { groups, ..plan.clone() },
            share: share.clone(),
            peers: self.peers.clone(),
            patience: self.patience,
        };
        let mut process = Process {
            name: format!("process {} of {}", share.process + 1, plan.processes),
            child: Child::of_this_program((self.command)()).map_err(failed("start"))?,
            silence: self.silence.unwrap_or_else(|| longest_silence(group)),
            planned: group,
            at: None,
        };
        let text =
            serde_json::to_string(&task).map_err(|error| failed("instruct")(error.into()))?;
        process.send(&text);
        let stopped = || self.stop.load(Ordering::Relaxed);
        // Dropping the process kills it, whatever it does after its last message.
        while let Some(message) = process.message()? {
            let Some(step) = message? else { return Ok(()) };
            if let Step::At(cell) = step {
                process.at = Some(cell);
            }
            take(step)?;
            if stopped() { process.child.close() } else { process.send("") }
        }
        let error = process.ending()?;
        if stopped() { Ok(()) } else { Err(error) }
    }
}

struct Process<'a> {
    name: String,
    child: Child,
    silence: Duration,
    planned: &'a [PlannedCell],
    /// The cell whose code the process is running.
    at: Option<usize>,
}

fn failed(what: &str) -> impl Fn(io::Error) -> LabError + '_ {
    move |error| LabError::Process(format!("cannot {what} another process: {error}"))
}

impl Process<'_> {
    /// If the process has ended, the next read reports it.
    fn send(&mut self, text: &str) {
        let _ = self.child.send(text);
    }

    /// `None` if the process has ended.
    fn message(&mut self) -> Result<Option<Message>, LabError> {
        match self.child.listen(self.silence, MAX_LINE).map_err(failed("read from"))? {
            Heard::Line(text) => match (serde_json::from_slice(&text), self.at) {
                (Ok(message), _) => Ok(Some(message)),
                // Not a message, so the cell's code wrote to a file descriptor that does not belong
                // to it.
                (Err(_), Some(cell)) => {
                    Err(self.failure_of(cell, "wrote to a file descriptor of threadtoll"))
                }
                (Err(error), None) => Err(failed("understand")(error.into())),
            },
            Heard::Ended => Ok(None),
            Heard::Flood => Err(self.failure("printed more than 1 MiB")),
            Heard::Silence => {
                let progress = format!("made no progress for {} s", self.silence.as_secs());
                Err(self.failure(&progress))
            }
        }
    }

    fn failure(&self, what: &str) -> LabError {
        match self.at {
            Some(cell) => self.failure_of(cell, what),
            None => LabError::Process(format!("{} {what}", self.name)),
        }
    }

    fn failure_of(&self, cell: usize, what: &str) -> LabError {
        let of = &self.planned[cell].cell;
        let sentence = format!("{} ({}) {what}", of.name(), of.placement);
        LabError::Cell { cell, clause: format!("it {what}"), sentence }
    }

    fn ending(&mut self) -> Result<LabError, LabError> {
        let ending = self.child.end().map_err(failed("wait for"))?;
        if let Some(cell) = self.at
            && (!ending.by_itself || crashed(ending.status))
        {
            return Ok(self.failure_of(cell, &ending.clause()));
        }
        Ok(LabError::Process(match ending.words.trim_start_matches("error: ") {
            "" => format!("{} ended early ({})", self.name, how(ending.status)),
            words => words.into(),
        }))
    }
}

/// Returns `true` if a cell's code ended the process, rather than a signal from outside or a panic
/// of this program. SIGKILL counts as a crash: the kernel kills a process whose unbounded queue
/// uses up the memory because the receiver hangs.
fn crashed(status: ExitStatus) -> bool {
    let faults = [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGSYS, SIGTRAP];
    status.signal().is_some_and(|signal| faults.contains(&signal))
        || status.code().is_some_and(|code| code != PANICKED)
}

/// Measures the share that the parent process asks for, on a machine that `backend` creates.
///
/// # Errors
///
/// If the parent process asks for no share, or has ended.
pub fn serve_share(
    backend: impl FnOnce(&Task) -> Result<Box<dyn Backend>, LabError>,
) -> io::Result<()> {
    let mut parent = Parent::take()?;
    let task: Task = serde_json::from_str(&parent.line()?)?;
    let stop = AtomicBool::new(false);
    let measured = backend(&task).and_then(|mut backend| {
        let mut take = |step: Step| {
            tell(&mut parent, &Ok(Some(step))).map_err(failed("write to"))?;
            // Any line, even a blank one, asks for the next step. The end of the input means to
            // stop.
            if !parent.line().is_ok_and(|line| !line.is_empty()) {
                stop.store(true, Ordering::Relaxed);
            }
            Ok(())
        };
        let Task { machine, plan, share, .. } = &task;
        measure_share(&mut *backend, machine, plan, share, &mut take, &stop)
    });
    tell(&mut parent, &measured.map(|_| None).map_err(LabError::for_another_process))
}

fn tell(parent: &mut Parent, message: &Message) -> io::Result<()> {
    parent.tell(&serde_json::to_string(message)?)
}
