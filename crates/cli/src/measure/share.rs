//! Shares of a run that other processes of this program measure.
//!
//! The process that was started by hand writes the file. It starts the others one after another and
//! sends each a line with the machine, the plan and its share. Each sends back what it measures and
//! which cell's code it runs next, and waits after each line until it was taken, so that the first
//! process sleeps while blocks are measured. A process that crashes, or is silent for far too long,
//! costs the row that it was at. None outlives the first: the kernel kills it.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{
    SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGINT, SIGKILL, SIGSEGV, SIGSYS, SIGTRAP,
};
use threadtoll_lab::backend::Backend;
use threadtoll_lab::real::{self, RealBackend};
use threadtoll_lab::simulated::SimulatedBackend;
use threadtoll_lab::{LabError, Launch, Share, Step, Take, measure_share};
use threadtoll_machine::clock::Clock;
use threadtoll_record::{Line, Machine, Plan, PlannedCell, StrikeReason};

use super::resume::{simulated_faults, simulated_machine};
use crate::failure::Failure;
use crate::registry::registry;

/// The word on the command line of the other processes. No command has this name.
pub(crate) const COMMAND: &str = "--measure-share";
/// Not the program's path: the program may have been replaced since it was started.
const PROGRAM: &str = "/proc/self/exe";
/// Parts of a wait. If this process was stopped meanwhile, as by Ctrl-Z, that costs one of them.
const PARTS: u32 = 8;
/// Longest silence of a simulated cell, which takes milliseconds.
const SIMULATED_SILENCE: Duration = Duration::from_secs(8);

#[derive(Serialize, Deserialize)]
struct Task {
    machine: Machine,
    /// Without the cells of other groups, of which there may be thousands.
    plan: Plan,
    group: usize,
    cells: Vec<usize>,
    attempt: u32,
    process: u32,
    since_start_s: f64,
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
        reason: StrikeReason,
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
        let silence = faulty.then_some(SIMULATED_SILENCE);
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
            plan: Plan { groups, ..plan.clone() },
            group,
            cells: cells.to_vec(),
            attempt,
            process,
            since_start_s,
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
                Message::CellFailed { cell, reason, clause, sentence } => {
                    return Err(LabError::Cell { cell, reason, clause, sentence });
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
    lines: BufReader<UnixStream>,
    silence: Duration,
    planned: &'a [PlannedCell],
    /// The cell whose code runs.
    at: Option<usize>,
}

fn failed(what: &str) -> impl Fn(io::Error) -> LabError + '_ {
    move |error| LabError::Process(format!("cannot {what} another process: {error}"))
}

impl<'a> Process<'a> {
    /// Starts it with a socket as its standard input. Its standard output is nobody's: a queue's
    /// code may write to it.
    fn start(
        task: &Task,
        name: String,
        silence: Duration,
        planned: &'a [PlannedCell],
    ) -> Result<Self, LabError> {
        let (ours, theirs) = UnixStream::pair().map_err(failed("talk to"))?;
        ours.set_read_timeout(Some(silence / PARTS)).map_err(failed("wait for"))?;
        let child = Command::new(PROGRAM)
            .arg(COMMAND)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed("start"))?;
        let lines = BufReader::new(ours);
        let mut process = Process { name, child, lines, silence, planned, at: None };
        match serde_json::to_string(task) {
            Ok(text) => process.send(&text),
            Err(error) => return Err(failed("instruct")(error.into())),
        }
        Ok(process)
    }

    /// Sends a line. If the process has ended, that is found when its next message is read.
    fn send(&mut self, text: &str) {
        let _ = self.lines.get_mut().write_all(format!("{text}\n").as_bytes());
    }

    fn go_on(&mut self) {
        self.send("");
    }

    /// Lets the process end after its block.
    fn stop(&mut self) {
        let _ = self.lines.get_mut().shutdown(std::net::Shutdown::Write);
    }

    /// The next message; `None` if the process has ended.
    fn message(&mut self) -> Result<Option<Message>, LabError> {
        let mut text = Vec::new();
        for _ in 0..PARTS {
            match self.lines.read_until(b'\n', &mut text) {
                Ok(_) if text.ends_with(b"\n") => {
                    let message = serde_json::from_slice(&text);
                    return message.map(Some).map_err(|error| failed("understand")(error.into()));
                }
                // Without a line feed it was killed in the middle of it.
                Ok(_) => return Ok(None),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(failed("read from")(error)),
            }
        }
        let progress = format!("made no progress for {} s", self.silence.as_secs());
        Err(match self.at {
            Some(cell) => self.failure_of(cell, StrikeReason::Hung, &progress),
            None => LabError::Process(format!("{} {progress}", self.name)),
        })
    }

    fn failure_of(&self, cell: usize, reason: StrikeReason, what: &str) -> LabError {
        let of = &self.planned[cell].cell;
        let sentence = format!("{} ({}) {what}", of.name(), of.placement);
        LabError::Cell { cell, reason, clause: format!("it {what}"), sentence }
    }

    /// The error of a process that has ended without a last message.
    fn ending(&mut self) -> Result<LabError, LabError> {
        // It may only have closed its standard input. If it has ended, this changes nothing.
        let _ = self.child.kill();
        let status = self.child.wait().map_err(failed("wait for"))?;
        let how = status.to_string();
        let how = how.trim_end_matches(" (core dumped)");
        if let Some(cell) = self.at
            && crashed(status)
        {
            let what = if status.signal() == Some(SIGKILL) {
                format!("was killed ({how}), as processes are when memory runs out")
            } else {
                format!("ended its process ({how})")
            };
            return Ok(self.failure_of(cell, StrikeReason::Crashed, &what));
        }
        let mut words = Vec::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_end(&mut words).map_err(failed("read from"))?;
        }
        let words = String::from_utf8_lossy(&words);
        let first = words.lines().find(|line| !line.is_empty()).unwrap_or_default();
        Ok(LabError::Process(match first.trim_start_matches("error: ") {
            "" => format!("{} ended early ({how})", self.name),
            words => words.into(),
        }))
    }
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

impl Drop for Process<'_> {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first process, as another one sees it.
struct First(BufReader<UnixStream>);

impl First {
    fn of_standard_input() -> io::Result<Self> {
        let socket = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(First(BufReader::new(socket.into())))
    }

    fn task(&mut self) -> io::Result<Task> {
        let mut text = String::new();
        self.0.read_line(&mut text)?;
        serde_json::from_str(&text).map_err(Into::into)
    }

    fn tell(&mut self, message: &Message) -> Result<(), LabError> {
        let text = serde_json::to_string(message).map_err(io::Error::other);
        let socket = self.0.get_mut();
        text.and_then(|text| socket.write_all((text + "\n").as_bytes())).map_err(failed("write to"))
    }

    /// Waits until the message was taken; `false` if no more are wanted.
    fn wants_more(&mut self) -> bool {
        self.0.read_line(&mut String::new()).is_ok_and(|length| length > 0)
    }
}

/// Measures the share that standard input describes.
pub(crate) fn serve() -> Result<ExitCode, Failure> {
    // Where a sandbox forbids it, this process still ends after its block.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // A terminal sends it to both processes; the first one decides.
    signal_hook::flag::register(SIGINT, Arc::default())
        .map_err(|error| Failure::run(format!("cannot listen for signals: {error}")))?;
    let (mut first, task) = First::of_standard_input()
        .and_then(|mut first| first.task().map(|task| (first, task)))
        .map_err(|error| Failure::usage(format!("this is not a share of a run: {error}")))?;
    let stop = AtomicBool::new(false);
    let measured = backend(&task).and_then(|mut backend| {
        let Task { machine, plan, group, cells, attempt, process, since_start_s } = &task;
        let (group, attempt) = (*group, *attempt);
        let (process, since_start_s) = (*process, *since_start_s);
        let share = Share { group, cells, attempt, process, since_start_s };
        let mut take = |step: Step| {
            first.tell(&match step {
                Step::At(cell) => Message::At(cell),
                Step::Line(line) => Message::Line(line),
            })?;
            if !first.wants_more() {
                stop.store(true, Ordering::Relaxed);
            }
            Ok(())
        };
        measure_share(&mut *backend, machine, plan, share, &mut take, &stop)
    });
    let last = match measured {
        Ok(_) => Message::Ended,
        Err(LabError::Cell { cell, reason, clause, sentence }) => {
            Message::CellFailed { cell, reason, clause, sentence }
        }
        Err(LabError::Clock(why)) => Message::ClockRefused(why),
        Err(error) => Message::Failed(error.to_string()),
    };
    first.tell(&last)?;
    Ok(ExitCode::SUCCESS)
}

fn backend(task: &Task) -> Result<Box<dyn Backend>, LabError> {
    if let Some(seed) = simulated_machine(&task.plan) {
        let backend = SimulatedBackend::new(seed)
            .with_registry(registry().clone())
            .with_faults(simulated_faults(&task.plan));
        return Ok(Box::new(backend.continued(task.process, task.since_start_s)));
    }
    let (clock, facts) = Clock::gate().map_err(|refused| LabError::Clock(refused.to_string()))?;
    let backend = RealBackend::new(clock, facts).with_registry(registry().clone());
    Ok(Box::new(backend.since(task.since_start_s)))
}
