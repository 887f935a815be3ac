//! A profile from start to end: its files, signals, report and exit code.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use threadtoll_machine::unix_ns;
use threadtoll_record::file::{Appender, Profiled, WriteFault};
use threadtoll_record::profile::Trace;
use threadtoll_record::{Line, Machine, Plan, Profile, Text, timestamp};
use threadtoll_report::text;

use super::engine::{self, Engine};
use super::fail_if::Condition;
use super::live::Screen;
use super::metrics::Metrics;
use super::outputs::OutputArgs;
use super::replay::Replay;
use super::signals::Signals;
use super::{Request, Subject};
use crate::console::{self, StdStream};
use crate::entry::CommonArgs;
use crate::failure::Failure;
use crate::inspect::inspect;
use crate::{draft, kept, page};

/// Exit code if the condition of `--fail-if` held.
pub(super) const FAIL_IF: u8 = 5;

/// Time between two profiles in the file.
const EVERY: Duration = Duration::from_secs(1);
/// Size in bytes beyond which the file is rewritten with only its last lines. Earlier lines do not
/// matter, and a day adds 86,400 of them.
const MAX_FILE: u64 = 32 << 20;
const LIVE_EVERY: Duration = Duration::from_millis(500);
/// `--live` yields more profiles than the file needs: a profile is written only if the previous one
/// is at least this old.
const RECENT: Duration = Duration::from_millis(750);
/// Interval of checks for the end of a launched program, which may outlive its profile.
const WAIT: Duration = Duration::from_millis(20);

pub(super) fn run(request: &Request, common: &CommonArgs) -> Result<ExitCode, Failure> {
    let launched = matches!(request.subject, Subject::Launched(..));
    // A profile does not need an idle machine, so no noise is measured.
    let (mut machine, _) = inspect(common, Duration::ZERO)?;
    machine.simulated = request.replay.is_some();
    let out = match &request.out {
        Some(out) => out.clone(),
        None => kept::new_file("profile", &machine.run)?,
    };
    Appender::check(&out)?;
    draft::probe(&out, "the profile")?;
    let mut outputs = request.outputs.clone();
    let page = outputs.html.get_or_insert_with(|| out.with_extension("html"));
    page::prepare(page)?;
    let metrics = request.openmetrics.as_ref().map(Metrics::open).transpose()?;
    let signals = Signals::listen(launched, request.live.is_some())?;
    let mut engine = start(request)?;
    let kept = Kept::create(out, request, machine);
    // The program is already running, so a failure of the terminal is reported at the end.
    let live = request.live.as_ref().map(|live| live.start(signals.clone(), kept.show()));
    let (screen, fault) = match live.transpose() {
        Ok(screen) => (screen, None),
        Err(failure) => (None, Some(failure)),
    };

    let mut session =
        Session { outputs, kept, metrics, screen, bar: bar(request, launched), fault };
    let every = if request.live.is_some() { LIVE_EVERY } else { EVERY };
    let length = request.length;
    let last = engine.run(length, every, signals.stop(), &mut |profile| session.second(profile));
    session.end(request, &signals, engine.as_mut(), last)
}

fn start(request: &Request) -> Result<Box<dyn Engine>, Failure> {
    match (&request.replay, &request.subject) {
        (Some(path), Subject::Running(_)) => Ok(Box::new(Replay::read(path)?)),
        (Some(path), Subject::Launched(program, arguments)) => {
            Ok(Box::new(Replay::read(path)?.launch(program, arguments)?))
        }
        (None, Subject::Running(pid)) => engine::attach(*pid, &request.sampling),
        (None, Subject::Launched(program, arguments)) => {
            engine::launch(program, arguments, &request.sampling)
        }
    }
}

/// The file of a profile.
struct Kept {
    path: PathBuf,
    machine: Machine,
    plan: Plan,
    /// Command line of a launched program. The program may end before the profiler can read it.
    program: Option<Vec<Text>>,
    /// Appends to the output file. `None` if the file could not be created.
    appender: Option<Appender>,
    /// The last trace (states of threads over time) in the file.
    trace: Option<Box<Trace>>,
    fault: Option<WriteFault>,
    written: Option<Instant>,
}

impl Kept {
    /// The program is already running, so a problem with the file is reported at the end.
    fn create(path: PathBuf, request: &Request, machine: Machine) -> Self {
        let command = std::env::args_os()
            .skip(1)
            .map(|argument| Text::from(&*argument.to_string_lossy()))
            .collect();
        let plan = Plan {
            processes: 1,
            run: machine.run.clone(),
            command,
            seed: request.sampling.seed,
            over_ns: 0,
            options: request.given.clone(),
            refused: Vec::new(),
            folded: None,
            repeat: None,
            until_saturated: false,
            groups: Vec::new(),
        };
        let program = match &request.subject {
            Subject::Running(_) => None,
            Subject::Launched(program, arguments) => Some(
                std::iter::once(program)
                    .chain(arguments)
                    .map(|word| Text::from(&*word.to_string_lossy()))
                    .collect(),
            ),
        };
        let (appender, fault) = match Appender::create(&path, &machine, &plan) {
            Ok(appender) => (Some(appender), None),
            Err(fault) => (None, Some(fault)),
        };
        Kept { path, machine, plan, program, appender, trace: None, fault, written: None }
    }

    fn show(&self) -> String {
        format!("threadtoll profile show {}", self.path.display())
    }

    /// The profile with the run, the current time and the command line, as the file stores it.
    fn stamped(&self, profile: &Profile, finished: bool) -> Profile {
        let stamped = |trace: &Trace| Trace { run: self.machine.run.clone(), ..trace.clone() };
        Profile {
            trace: profile.trace.as_deref().map(|trace| Box::new(stamped(trace))),
            run: self.machine.run.clone(),
            at: timestamp(unix_ns()).into(),
            finished,
            machine: None,
            program: self.program.clone().unwrap_or_else(|| profile.program.clone()),
            ..profile.clone()
        }
    }

    fn has_new_trace(&self, profile: &Profile) -> bool {
        profile.trace.is_some() && profile.trace != self.trace
    }

    fn append(&mut self, profile: &Profile) {
        let has_new_trace = self.has_new_trace(profile);
        let Some(appender) = &mut self.appender else { return };
        if has_new_trace {
            self.trace.clone_from(&profile.trace);
        }
        let is_long = appender.length() > MAX_FILE;
        let trace = self.trace.iter().filter(|_| is_long || has_new_trace).cloned();
        // The profile is the last line, because many readers take only that line.
        let mut lines: Vec<Line> = trace.map(Line::Trace).collect();
        lines.push(Line::Profile(Box::new(profile.clone())));
        // If a long file cannot be rewritten, it keeps growing.
        if !is_long || appender.begin_anew(&self.machine, &self.plan, &lines).is_err() {
            // Later lines are tried even after a failure, because the disk may have room again.
            self.fault = appender.append(&lines).err();
        }
        self.written = Some(Instant::now());
    }
}

struct Session {
    outputs: OutputArgs,
    kept: Kept,
    metrics: Option<Metrics>,
    screen: Option<Screen>,
    bar: ProgressBar,
    fault: Option<Failure>,
}

impl Session {
    fn second(&mut self, profile: &Profile) {
        let profile = self.kept.stamped(profile, false);
        self.bar.set_position((profile.seconds.get() * 1000.0) as u64);
        let is_due = self.kept.written.is_none_or(|written| written.elapsed() >= RECENT);
        if is_due || self.kept.has_new_trace(&profile) {
            self.kept.append(&profile);
            self.renew(&profile);
        }
        if let Some(screen) = &self.screen {
            screen.show(profile);
        }
    }

    fn renew(&mut self, profile: &Profile) {
        if let Some(metrics) = &mut self.metrics {
            self.fault = metrics.renew(profile).err();
        }
    }

    fn end(
        mut self,
        request: &Request,
        signals: &Signals,
        engine: &mut dyn Engine,
        last: Profile,
    ) -> Result<ExitCode, Failure> {
        self.screen = None;
        self.bar.finish_and_clear();
        let launched = matches!(request.subject, Subject::Launched(..));
        signals.take_pending().for_each(|signal| engine.forward(signal));
        let mut code = engine.try_wait();
        let mut profile = self.kept.stamped(&last, true);
        profile.exit_code = code.or(profile.exit_code);
        self.kept.append(&profile);
        self.renew(&profile);

        let report_to =
            if launched || request.outputs.json { StdStream::Err } else { StdStream::Out };
        let style = report_to.style();
        let only = request.sampling.only.as_deref();
        let unmatched = only.filter(|_| profile.processes.is_empty()).map(no_process);
        if unmatched.is_none() {
            report_to.print(&text::first_screen(&profile, &self.kept.show(), &style));
        }
        let written = self.outputs.write(&Profiled {
            plan: self.kept.plan.clone(),
            profile: Profile {
                machine: Some(Box::new(self.kept.machine.clone())),
                ..profile.clone()
            },
            notes: Vec::new(),
        });
        if !request.quiet {
            console::err(&format!("\nresults  {}", self.kept.path.display()));
            if let Some(page) = &self.outputs.html {
                console::err(&format!("page     {}", page.display()));
            }
        }
        let held = request.fail_if.as_ref().is_some_and(|condition| judge(condition, &profile));

        if launched && code.is_none() {
            code = Some(wait(signals, engine));
            profile.exit_code = code;
            self.kept.append(&profile);
        }
        let failure = self.kept.fault.take().map(unkept).or(self.fault).or(written.err());
        let failure = failure.or(unmatched);
        let own = match failure {
            Some(failure) => failure.report(),
            None if held => FAIL_IF.into(),
            None => ExitCode::SUCCESS,
        };
        Ok(match code {
            Some(code) if code != 0 => code.into(),
            _ => own,
        })
    }
}

fn wait(signals: &Signals, engine: &mut dyn Engine) -> u8 {
    loop {
        if let Some(code) = engine.try_wait() {
            return code;
        }
        signals.take_pending().for_each(|signal| engine.forward(signal));
        std::thread::sleep(WAIT);
    }
}

/// Returns `true` if the condition holds.
pub(super) fn judge(condition: &Condition, profile: &Profile) -> bool {
    let judgement = condition.judge(profile);
    judgement.lines().iter().for_each(|line| console::err(&threadtoll_report::clean(line)));
    !judgement.met.is_empty()
}

/// For `--only NAME` if no process had that name. This is known only at the end.
fn no_process(name: &str) -> Failure {
    Failure::run(format!("--only {name}: no process of this name was seen"))
        .hint("give the name of a process or of its executable, without a folder")
}

fn unkept(fault: WriteFault) -> Failure {
    Failure::run(fault.to_string())
        .hint("free disk space, or choose another file with --out; what was written before is kept")
}

/// The bar is hidden if a launched program may write to the terminal.
fn bar(request: &Request, launched: bool) -> ProgressBar {
    let shown = !launched && !request.quiet && request.live.is_none();
    let Some(length) = request.length.filter(|_| shown) else {
        return ProgressBar::hidden();
    };
    let total_ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    let target = ProgressDrawTarget::stderr_with_hz(5);
    let bar = ProgressBar::with_draw_target(Some(total_ms), target);
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {percent:>3}%  {eta:>4} left") {
        bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
    }
    bar
}
