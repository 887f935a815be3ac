//! Observes a program until told to stop, and composes its profile.

mod background;
mod events;
mod fold;
mod launched;
mod programs;
mod replaced;
mod standing;
mod throttle;
mod unseen;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use threadtoll_machine::IdleTimes;
use threadtoll_record::profile::{Ended, Profile};
use threadtoll_stacks::process::{
    Family, HeldProgram, LaunchError, Process, ProcessError, number_of_children,
};

use crate::account::Account;
use crate::clock::now;
use crate::compose::{Doing, RunFacts, compose};
use crate::perf::Timeline;
use crate::sample::{Chunk, Order, Report, Sampler};
use crate::stacks::Stacks;
use crate::static_locks::StaticLocks;
use crate::watched::Watched;
use events::{ThreadEvents, open_events};
use fold::BetweenSamples;
use launched::LaunchedProgram;
use throttle::Throttle;
use unseen::Unobserved;

/// Options of a profiling run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Intended number of samples per second.
    pub rate_per_s: f64,
    /// Share of one CPU that the profiler may use, counted from its start.
    pub budget: f64,
    /// If set, only processes of this name are observed.
    pub only: Option<String>,
    /// Seed for the random times of samples.
    pub seed: u64,
}

const MAX_CHANGES: usize = 1 << 16;

/// Maximum wait for a report of the sampler before checking if profiling should stop. Reports
/// usually come sooner: each stretch of samples ends with one.
const PATIENCE: Duration = Duration::from_millis(300);

const STACKS_PER_S: f64 = 20.0;

/// Maximum number of samples per second that read stacks if some lock does not name its holder.
/// Only stacks can then reveal the holder.
const NAMELESS_STACKS_PER_S: f64 = 60.0;

const WRITING_SHARE: f64 = 0.05;

/// At the start, a task may use its share of the budget for this period at once.
const FIRST: Duration = Duration::from_secs(10);

/// Time after the start from which an intermediate profile includes the states of threads over
/// time.
const FIRST_TRACE: Duration = Duration::from_secs(3);

/// Maximum time between two looks at what changes slowly, or what the sampler also notices.
const SELDOM: Duration = Duration::from_secs(1);

/// Time limit for naming inlined functions at the end, when the user waits for the report.
const NAMING: Duration = Duration::from_millis(150);

/// Profiles a program.
#[derive(Debug)]
pub struct Profiler {
    options: Options,
    account: Account,
    watched: BTreeMap<u32, Watched>,
    next_index: u32,
    family: Family,
    launched: Option<LaunchedProgram>,
    throttle: Option<Throttle>,
    orders: Sender<Order>,
    reports: Receiver<Report>,
    spare: Sender<Chunk>,
    sampler: Option<JoinHandle<()>>,
    events: ThreadEvents,
    timeline: Timeline,
    reported: BetweenSamples,
    stacks: Stacks,
    static_locks: StaticLocks,
    declaring: Duration,
    replacing: Duration,
    began: Instant,
    idle_before: IdleTimes,
    cpu_ns: u64,
    /// Time of the threads of ended processes that are not listed.
    forgotten: Doing,
    unseen: Unobserved,
    /// Time after the start from which the next profile includes the states of threads over time.
    /// It grows, so that a day's file has only a few dozen such profiles.
    next_trace: Duration,
    /// Time after the start from which looks that are seldom needed are due.
    next_seldom: Duration,
}

impl Profiler {
    /// Profiles a process that is already running.
    ///
    /// # Errors
    ///
    /// If there is no such process, or if it may not be observed.
    pub fn attach(pid: u32, options: &Options) -> Result<Profiler, ProcessError> {
        let family = Family::alone(Process::open(pid)?);
        let events = ThreadEvents::new(open_events(), false);
        let mut profiler = Profiler::new(options, family, events);
        profiler.refresh_family();
        if profiler.watched.is_empty() {
            // If the process has ended meanwhile, this returns an error instead of an empty
            // profile.
            Process::open(pid)?;
        }
        Ok(profiler)
    }

    /// Starts a program, and profiles it and its descendants.
    ///
    /// # Errors
    ///
    /// If the program cannot be started.
    pub fn launch(
        program: &OsStr,
        arguments: &[OsString],
        options: &Options,
    ) -> Result<Profiler, LaunchError> {
        let held = HeldProgram::spawn(program, arguments)?;
        let pid = held.pid();
        let mut events = open_events();
        // Inherited events need not be opened for each thread.
        let inherited = events.as_mut().is_ok_and(|events| events.follow_program(pid).is_ok());
        // The process is opened before the program starts, because the program may end at once.
        let process = Process::open(pid).map_err(io::Error::other)?;
        let launched = held.release()?;
        let launched = LaunchedProgram::new(launched, &process);
        let only = options.only.as_ref().map(OsString::from);
        let family = Family::with_descendants(process, only)?;
        let events = ThreadEvents::new(events, inherited);
        let mut profiler = Profiler::new(options, family, events);
        profiler.launched = Some(launched);
        profiler.refresh_family();
        Ok(profiler)
    }

    fn new(options: &Options, family: Family, events: ThreadEvents) -> Profiler {
        let (orders, take_orders) = channel();
        let (report, reports) = channel();
        let (spare, take_spare) = channel();
        let sampler = Sampler::new(options.budget, options.rate_per_s, options.seed);
        let sampler = std::thread::Builder::new()
            .name("sampler".into())
            .spawn(move || sampler.run(&take_orders, &take_spare, &report))
            .ok();
        _ = orders.send(Order::Stacks { per_s: STACKS_PER_S, of_all: false });
        if events.refused().is_some() {
            _ = orders.send(Order::RecordDelays);
        }
        Profiler {
            options: options.clone(),
            account: Account::new(now()),
            watched: BTreeMap::new(),
            next_index: 0,
            family,
            launched: None,
            throttle: None,
            orders,
            reports,
            spare,
            sampler,
            events,
            timeline: Timeline::new(MAX_CHANGES),
            reported: BetweenSamples::default(),
            stacks: Stacks::default(),
            static_locks: StaticLocks::default(),
            declaring: Duration::ZERO,
            replacing: Duration::ZERO,
            began: Instant::now(),
            idle_before: IdleTimes::read(),
            cpu_ns: 0,
            forgotten: Doing::default(),
            unseen: Unobserved::default(),
            next_trace: FIRST_TRACE,
            next_seldom: Duration::ZERO,
        }
    }

    /// Time that may have been spent so far on a task with this share of the budget.
    fn allowed(&self, share: f64) -> Duration {
        self.began.elapsed().max(FIRST).mul_f64(self.options.budget * share)
    }

    /// Sends a signal to the launched program, unless it has ended.
    pub fn forward(&self, signal: i32) {
        if let Some(launched) = &self.launched {
            launched.forward(signal);
        }
    }

    /// Returns the exit code of the launched program if it has ended: 128+S if signal S ended it.
    pub fn try_wait(&mut self) -> Option<u8> {
        self.launched.as_mut().and_then(LaunchedProgram::try_wait)
    }

    /// Runs until `length` is over, `stop` is set, or every process has ended. Calls `each` with an
    /// intermediate profile at most once per `every`, and less often if that would take more than a
    /// twentieth of the budget.
    pub fn run(
        &mut self,
        length: Option<Duration>,
        every: Duration,
        stop: &AtomicBool,
        each: &mut dyn FnMut(&Profile),
    ) -> Profile {
        let mut due = Instant::now() + every;
        while !stop.load(Ordering::Relaxed) {
            let left =
                length.map_or(PATIENCE, |length| length.saturating_sub(self.began.elapsed()));
            if left.is_zero() || self.has_ended() || length.is_none() && self.is_in_background() {
                break;
            }
            let patience = self.follow_replaced();
            let stretch_ended = match self.reports.recv_timeout(left.min(patience)) {
                Ok(report) => self.take(report),
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if stretch_ended && Instant::now() >= due {
                let began = Instant::now();
                each(&self.profile(false));
                let took = began.elapsed().div_f64(self.options.budget * WRITING_SHARE);
                due = began + every.max(took);
            }
        }
        self.end_sampling();
        self.profile(true)
    }

    fn has_ended(&mut self) -> bool {
        let runs =
            |profiler: &Profiler| profiler.watched.values().any(|watched| watched.ended.is_none());
        let waits = self.launched.is_some() && self.try_wait().is_none();
        if !runs(self) && self.launched.as_mut().is_some_and(LaunchedProgram::begin_search) {
            self.find_left_behind();
        }
        !runs(self) && !waits
    }

    fn end_sampling(&mut self) {
        _ = self.orders.send(Order::Stop);
        if let Some(sampler) = self.sampler.take() {
            _ = sampler.join();
        }
        while let Ok(report) = self.reports.try_recv() {
            self.take(report);
        }
        self.count_major_faults();
        self.note_cpu_time();
        // If processes have ended just now, this finds out how they ended.
        self.refresh_family();
    }

    fn take(&mut self, report: Report) -> bool {
        match report {
            Report::Samples(chunk) => self.fold(chunk),
            Report::Stretch(stretch) => {
                self.cpu_ns += stretch.process_ns;
                let elapsed = self.began.elapsed();
                let seldom = elapsed >= self.next_seldom;
                if seldom {
                    self.next_seldom = elapsed + elapsed.div_f64(4.0).min(SELDOM);
                    self.note_cpu_time();
                }
                self.count_major_faults();
                self.account.end_stretch(&stretch);
                self.close_ended();
                for (index, process) in self.account.forget_ended() {
                    let doing = Doing::of(&process, &mut self.stacks);
                    self.forgotten.add(&doing, process.seconds());
                    self.unseen.not_listed += 1;
                    self.watched.remove(&index);
                    self.stacks.table.forget(index);
                }
                self.ask_about_sleepers(false);
                // Without descendants, the sampler notices most changes.
                if seldom || self.launched.is_some() {
                    self.refresh_family();
                }
                self.list_libraries();
                self.declare_static_locks();
                self.refresh_events();
                let of_all = self.account.all_living().any(|(_, process)| process.nameless);
                let per_s = if of_all { NAMELESS_STACKS_PER_S } else { STACKS_PER_S };
                _ = self.orders.send(Order::Stacks { per_s, of_all });
                if let Some(throttle) = &mut self.throttle {
                    throttle.read();
                }
                return true;
            }
            Report::Threads(index, threads) => self.threads(index, threads),
            Report::Unread(index, samples) => {
                if let Some(watched) = self.watched.get(&index) {
                    self.unseen.unread(watched.pid, samples);
                }
            }
            Report::Ended(index) => self.end(index, Ended::Exit),
            Report::Replaced(index) => self.replaced(index),
        }
        false
    }

    fn profile(&mut self, finished: bool) -> Profile {
        let behind: usize = self.watched.values().map(|watched| watched.to_follow.len()).sum();
        self.ask_about_sleepers(finished);
        let background = self.background();
        // Children of a launched program are profiled, so only those of an attached process are
        // counted.
        let attached = self.watched.values().next().filter(|_| self.launched.is_none());
        let children = attached.map_or(0, |watched| number_of_children(watched.pid));
        let elapsed = self.began.elapsed();
        let traced = finished || elapsed >= self.next_trace;
        if traced {
            self.next_trace = FIRST_TRACE + elapsed.mul_f64(1.25);
        }
        self.stacks.inlined_until = finished.then(|| Instant::now() + NAMING);
        let samples = self.account.due.iter().sum::<u64>() as f64;
        compose(
            &self.account,
            &self.watched,
            &mut self.stacks,
            &RunFacts {
                finished,
                traced,
                seconds: elapsed.as_secs_f64(),
                budget: self.options.budget,
                cpu_ns: self.cpu_ns,
                perf_refused: self.events.refused(),
                children,
                background,
                unseen: self.unseen.sentences(behind, self.events.open.as_ref().ok(), samples),
                forgotten: self.forgotten.clone(),
                idle_before: &self.idle_before,
            },
        )
    }
}
