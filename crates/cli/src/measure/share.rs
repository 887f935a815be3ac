//! Shares of a run that other processes of this program measure.
//!
//! The process that was started by hand writes the file. It starts the others one after another and
//! sends each a line with the machine, the plan and its share. Each sends back what it measures and
//! which cell's code it runs next, and waits after each line until it was taken, so that the first
//! process sleeps while blocks are measured. A process that crashes, or is silent for far too long,
//! costs the row that it was at. None outlives the first: each has a guardian, which kills it.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGSYS, SIGTRAP};
use threadtoll_lab::backend::Backend;
use threadtoll_lab::foreign::Described;
use threadtoll_lab::foreign::program::DescribedProgram;
use threadtoll_lab::real::{self, RealBackend};
use threadtoll_lab::simulated::SimulatedBackend;
use threadtoll_lab::{LabError, Launch, Share, Step, Take, measure_share};
use threadtoll_machine::clock::Clock;
use threadtoll_record::{Line, Machine, Plan, PlannedCell};

use super::options::{simulated_faults, simulated_machine, twins};
use crate::child::{Child, First, Heard, PROGRAM};
use crate::failure::Failure;
use crate::patience::patience;
use crate::registry::{self, adapters, programs, registry};

/// The word on the command line of the other processes. No command has this name.
pub(crate) const COMMAND: &str = "--measure-share";

#[derive(Serialize, Deserialize)]
struct Task {
    machine: Machine,
    /// The peers that `--peers` added.
    adapters: Vec<Described>,
    programs: Vec<DescribedProgram>,
    /// Without the cells of other groups, of which there may be thousands.
    plan: Plan,
    group: usize,
    cells: Vec<usize>,
    attempt: u32,
    process: u32,
    since_start_s: f64,
    patience: Duration,
}

/// A line that a process sends.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Message {
    /// The code of this cell runs next.
    At(usize),
    Line(Line),
    /// The share is measured, or was stopped. The last message, as are those below.
    Ended,
    /// A cell failed.
    CellFailed {
        cell: usize,
        clause: String,
        sentence: String,
    },
    ClockRefused(String),
    Failed(String),
}

/// Measures shares in other processes until `stop` is true.
pub(super) struct Launcher {
    stop: Arc<AtomicBool>,
    every_share: bool,
    /// Longest silence of a process, if all of them are simulated.
    silence: Option<Duration>,
}

impl Launcher {
    /// A simulated machine measures its first shares in this process, unless its cells are to fail,
    /// and so does one without `/proc`.
    pub(super) fn new(plan: &Plan, stop: Arc<AtomicBool>) -> Self {
        let simulated = simulated_machine(plan).is_some();
        let faulty = !simulated_faults(plan).is_empty();
        // A simulated cell takes milliseconds.
        let silence = faulty.then(patience);
        let every_share = Path::new(PROGRAM).exists() && (!simulated || faulty);
        Launcher { stop, every_share, silence }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Launch for Launcher {
    fn every_share(&self) -> bool {
        self.every_share
    }

    fn launch(
        &mut self,
        machine: &Machine,
        plan: &Plan,
        share: Share<'_>,
        take: &mut Take<'_>,
    ) -> Result<(), LabError> {
        let Share { group, cells, attempt, process, since_start_s } = share;
        let name = format!("process {} of {}", process + 1, plan.processes);
        let of_group = || real::longest_silence(&plan.groups[group]);
        let silence = self.silence.unwrap_or_else(of_group);
        let mut groups = vec![Vec::new(); plan.groups.len()];
        groups[group].clone_from(&plan.groups[group]);
        let task = Task {
            machine: machine.clone(),
            adapters: adapters().to_vec(),
            programs: programs().to_vec(),
            plan: Plan { groups, ..plan.clone() },
            group,
            cells: cells.to_vec(),
            attempt,
            process,
            since_start_s,
            patience: patience(),
        };
        let mut process = Process::start(&task, name, silence, &plan.groups[group])?;
        // Dropping the process kills it, whatever it does after its last message.
        while let Some(message) = process.message()? {
            match message {
                Message::At(cell) => {
                    process.at = Some(cell);
                    take(Step::At(cell))?;
                }
                Message::Line(line) => take(Step::Line(line))?,
                Message::Ended => return Ok(()),
                Message::CellFailed { cell, clause, sentence } => {
                    return Err(LabError::Cell { cell, clause, sentence });
                }
                Message::ClockRefused(why) => return Err(LabError::Clock(why)),
                Message::Failed(why) => return Err(LabError::Process(why)),
            }
            if self.stopped() { process.stop() } else { process.go_on() }
        }
        let error = process.ending()?;
        if self.stopped() { Ok(()) } else { Err(error) }
    }
}

struct Process<'a> {
    name: String,
    child: Child,
    silence: Duration,
    planned: &'a [PlannedCell],
    /// The cell whose code runs.
    at: Option<usize>,
}

fn failed(what: &str) -> impl Fn(io::Error) -> LabError + '_ {
    move |error| LabError::Process(format!("cannot {what} another process: {error}"))
}

impl<'a> Process<'a> {
    fn start(
        task: &Task,
        name: String,
        silence: Duration,
        planned: &'a [PlannedCell],
    ) -> Result<Self, LabError> {
        let text = serde_json::to_string(task).map_err(|error| failed("instruct")(error.into()))?;
        let mut child = Child::start(COMMAND).map_err(failed("start"))?;
        child.send(&text);
        Ok(Process { name, child, silence, planned, at: None })
    }

    fn go_on(&mut self) {
        self.child.send("");
    }

    /// Lets the process end after its block.
    fn stop(&mut self) {
        self.child.close();
    }

    /// The next message; `None` if the process has ended.
    fn message(&mut self) -> Result<Option<Message>, LabError> {
        match self.child.listen(self.silence).map_err(failed("read from"))? {
            Heard::Line(text) => match (serde_json::from_slice(&text), self.at) {
                (Ok(message), _) => Ok(Some(message)),
                // The code of a queue wrote to a file that is not its own.
                (Err(_), Some(cell)) => Err(self.failure_of(cell, "wrote to files of the process")),
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

    /// A failure of the cell whose code runs, or of the process.
    fn failure(&self, what: &str) -> LabError {
        match self.at {
            Some(cell) => self.failure_of(cell, what),
            None => LabError::Process(format!("{} {what}", self.name)),
        }
    }

    fn failure_of(&self, cell: usize, what: &str) -> LabError {
        failure_of(&self.planned[cell], cell, what)
    }

    /// The error of a process that has ended without a last message.
    fn ending(&mut self) -> Result<LabError, LabError> {
        let ending = self.child.end().map_err(failed("wait for"))?;
        if let Some(cell) = self.at
            && (!ending.by_itself || crashed(ending.status))
        {
            return Ok(self.failure_of(cell, &ending.clause()));
        }
        Ok(LabError::Process(match ending.words.trim_start_matches("error: ") {
            "" => format!("{} ended early ({})", self.name, ending.how()),
            words => words.into(),
        }))
    }
}

fn failure_of(planned: &PlannedCell, cell: usize, what: &str) -> LabError {
    let of = &planned.cell;
    let sentence = format!("{} ({}) {what}", of.name(), of.placement);
    LabError::Cell { cell, clause: format!("it {what}"), sentence }
}

/// Exit code of a panic.
const PANICKED: i32 = 101;

/// Returns `true` if code of a cell ended the process, rather than a signal that others send, or a
/// panic of the program. An unbounded queue whose receiver hangs is killed for its memory.
fn crashed(status: ExitStatus) -> bool {
    let faults = [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGSYS, SIGTRAP];
    status.signal().is_some_and(|signal| faults.contains(&signal))
        || status.code().is_some_and(|code| code != PANICKED)
}

/// Measures the share that standard input describes.
pub(crate) fn serve() -> Result<ExitCode, Failure> {
    let (mut first, task) = First::take()
        .and_then(|mut first| task(&mut first).map(|task| (first, task)))
        .map_err(|error| Failure::usage(format!("this is not a share of a run: {error}")))?;
    if twins(&task.plan) {
        registry::add_twins();
    }
    registry::add(&task.adapters, &task.programs);
    let stop = AtomicBool::new(false);
    let measured = backend(&task).and_then(|mut backend| {
        let Task { machine, plan, group, cells, attempt, process, since_start_s, .. } = &task;
        let (group, attempt) = (*group, *attempt);
        let (process, since_start_s) = (*process, *since_start_s);
        let share = Share { group, cells, attempt, process, since_start_s };
        let mut take = |step: Step| {
            tell(
                &mut first,
                &match step {
                    Step::At(cell) => Message::At(cell),
                    Step::Line(line) => Message::Line(line),
                },
            )?;
            // An empty line asks for more.
            if !first.line().is_ok_and(|line| !line.is_empty()) {
                stop.store(true, Ordering::Relaxed);
            }
            Ok(())
        };
        measure_share(&mut *backend, machine, plan, share, &mut take, &stop)
    });
    let last = match measured {
        Ok(_) => Message::Ended,
        Err(LabError::Cell { cell, clause, sentence }) => {
            Message::CellFailed { cell, clause, sentence }
        }
        Err(LabError::Clock(why)) => Message::ClockRefused(why),
        Err(error) => Message::Failed(error.to_string()),
    };
    tell(&mut first, &last)?;
    Ok(ExitCode::SUCCESS)
}

fn task(first: &mut First) -> io::Result<Task> {
    serde_json::from_str(&first.line()?).map_err(Into::into)
}

fn tell(first: &mut First, message: &Message) -> Result<(), LabError> {
    let text = serde_json::to_string(message).map_err(io::Error::other);
    text.and_then(|text| first.tell(&text)).map_err(failed("write to"))
}

fn backend(task: &Task) -> Result<Box<dyn Backend>, LabError> {
    if let Some(seed) = simulated_machine(&task.plan) {
        let backend = SimulatedBackend::new(seed)
            .with_registry(registry().clone())
            .with_faults(simulated_faults(&task.plan));
        return Ok(Box::new(backend.continued(task.process, task.since_start_s)));
    }
    let (clock, facts) = Clock::gate().map_err(|refused| LabError::Clock(refused.to_string()))?;
    let backend = RealBackend::new(clock, facts)
        .with_registry(registry().clone())
        .with_patience(task.patience);
    Ok(Box::new(backend.since(task.since_start_s)))
}
