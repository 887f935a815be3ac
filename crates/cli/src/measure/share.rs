//! Shares of a run that other processes of this program measure.
//!
//! The process that was started by hand writes the file. It starts the others one after another and
//! sends each a line with the machine, the plan and its share. Each sends back the lines that it
//! measures, and stops when its standard input ends, so that none outlives the first.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use signal_hook::consts::SIGINT;
use threadtoll_lab::backend::Backend;
use threadtoll_lab::real::RealBackend;
use threadtoll_lab::simulated::SimulatedBackend;
use threadtoll_lab::{LabError, Outcome, Share, Take, measure_share};
use threadtoll_machine::clock::Clock;
use threadtoll_record::{Line, Machine, Plan};

use crate::failure::Failure;
use crate::registry::registry;

/// The word on the command line of the other processes. No command has this name.
pub(crate) const COMMAND: &str = "--measure-share";

#[derive(Serialize, Deserialize)]
struct Task {
    machine: Machine,
    plan: Plan,
    group: usize,
    attempt: u32,
    process: u32,
    since_start_s: f64,
}

/// Measures shares in other processes until `stop` is true.
pub(super) fn launcher(
    stop: Arc<AtomicBool>,
) -> impl FnMut(&Machine, &Plan, Share, &mut Take<'_>) -> Result<(), LabError> {
    move |machine, plan, share, take| {
        let Share { group, attempt, process, since_start_s } = share;
        let (machine, plan) = (machine.clone(), plan.clone());
        let name = format!("process {} of {}", process + 1, plan.processes);
        let task = Task { machine, plan, group, attempt, process, since_start_s };
        let mut process = Process::start(&task, name)?;
        while let Some(line) = process.line()? {
            take(line)?;
            if stop.load(Ordering::Relaxed) {
                process.stop();
            }
        }
        process.end(stop.load(Ordering::Relaxed))
    }
}

struct Process {
    name: String,
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

fn failed(what: &str) -> impl Fn(io::Error) -> LabError + '_ {
    move |error| LabError::Process(format!("cannot {what} another process: {error}"))
}

impl Process {
    fn start(task: &Task, name: String) -> Result<Self, LabError> {
        // Not the program's path: the program may have been replaced since it was started.
        let mut child = Command::new("/proc/self/exe")
            .arg(COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed("start"))?;
        let Some(lines) = child.stdout.take() else { unreachable!("it was piped just now") };
        let mut process = Process { name, child, lines: BufReader::new(lines) };
        let text = serde_json::to_string(task).map_err(io::Error::other);
        let sent = text.and_then(|text| match &mut process.child.stdin {
            Some(stdin) => stdin.write_all((text + "\n").as_bytes()),
            None => Ok(()),
        });
        match sent {
            Ok(()) => Ok(process),
            // It has ended already, and its own words say why.
            Err(error) => {
                Err(process.end(false).err().unwrap_or_else(|| failed("instruct")(error)))
            }
        }
    }

    /// The next line; `None` if there are no more.
    fn line(&mut self) -> Result<Option<Line>, LabError> {
        let mut text = String::new();
        self.lines.read_line(&mut text).map_err(failed("read from"))?;
        // Without a line feed the process was killed in the middle of it.
        if !text.ends_with('\n') {
            return Ok(None);
        }
        serde_json::from_str(&text).map(Some).map_err(|error| failed("understand")(error.into()))
    }

    /// Lets the process end after its block.
    fn stop(&mut self) {
        self.child.stdin = None;
    }

    fn end(&mut self, stopped: bool) -> Result<(), LabError> {
        self.stop();
        let mut words = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut words).map_err(failed("read from"))?;
        }
        let status = self.child.wait().map_err(failed("wait for"))?;
        if status.success() || stopped {
            return Ok(());
        }
        let words = words.lines().next().unwrap_or_default().trim_start_matches("error: ");
        Err(match (words, status.code()) {
            ("", _) => LabError::Process(format!("{} ended early ({status})", self.name)),
            (_, Some(3)) => LabError::Clock(words.into()),
            _ => LabError::Process(words.into()),
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
        // After an error the process may not have ended; it must not measure on.
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Measures the share that standard input describes.
pub(crate) fn serve() -> Result<ExitCode, Failure> {
    let mut input = BufReader::new(io::stdin());
    let mut text = String::new();
    let task: Task = input
        .read_line(&mut text)
        .and_then(|_| serde_json::from_str(&text).map_err(Into::into))
        .map_err(|error| Failure::usage(format!("this is not a share of a run: {error}")))?;
    let stop = Arc::new(AtomicBool::new(false));
    // A terminal sends it to both processes; the first one decides.
    signal_hook::flag::register(SIGINT, Arc::default())
        .map_err(|error| Failure::run(format!("cannot listen for signals: {error}")))?;
    let at_end = Arc::clone(&stop);
    std::thread::spawn(move || {
        let _ = io::copy(&mut input, &mut io::sink());
        at_end.store(true, Ordering::Relaxed);
    });
    let mut backend = backend(&task)?;
    let mut out = io::stdout().lock();
    let mut take = |line: Line| {
        let text = serde_json::to_string(&line).map_err(io::Error::other);
        text.and_then(|text| out.write_all((text + "\n").as_bytes()))
            .and_then(|()| out.flush())
            .map_err(failed("write to"))
    };
    let Task { machine, plan, group, attempt, process, since_start_s } = task;
    let share = Share { group, attempt, process, since_start_s };
    let outcome = measure_share(&mut *backend, &machine, &plan, share, &mut take, &stop)?;
    Ok(match outcome {
        Outcome::Complete => ExitCode::SUCCESS,
        Outcome::Interrupted => ExitCode::from(130),
    })
}

fn backend(task: &Task) -> Result<Box<dyn Backend>, Failure> {
    if let Some(seed) = super::resume::simulated_machine(&task.plan) {
        let backend = SimulatedBackend::new(seed).with_registry(registry().clone());
        return Ok(Box::new(backend.continued(task.process, task.since_start_s)));
    }
    let (clock, facts) = Clock::gate().map_err(|refused| Failure::refused(refused.to_string()))?;
    let backend = RealBackend::new(clock, facts).with_registry(registry().clone());
    Ok(Box::new(backend.since(task.since_start_s)))
}
