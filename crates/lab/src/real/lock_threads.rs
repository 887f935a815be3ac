//! Threads that contend for a lock, and their tasks.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use threadtoll_machine::clock::Clock;
use threadtoll_machine::disturbance::{ThreadCounters, ThreadProbe};
use threadtoll_model::queue_trace::Acquisition;
use threadtoll_record::{Placement, Work};

use crate::LabError;
use crate::contention::lengths::{Step, TimeDistributions};
use crate::contention::overload::door::{Answered, Door};
use crate::contention::units::{BusyWork, clear_upper_halves, sleep_exactly};
use crate::lock::LockSpec;
use crate::lock::contender::{
    Contender, Done, HandoffProbe, HandoffRound, HandoffSample, WindowSpec,
};
use crate::touched::touched;

use super::pool::{Pool, Worker};

/// Fixed part of the time from handing out jobs to their start. `NOTICE_EACH_NS` is added per
/// thread.
const NOTICE_NS: f64 = 200_000.0;
const NOTICE_EACH_NS: f64 = 20_000.0;
/// Number of retries left, over the whole run, for windows that some thread started too late.
const RETRIES: u32 = 500;
/// Length of the last part of a wait, in which the thread spins because sleeps overshoot.
const SPUN_NS: f64 = 100_000.0;

#[derive(Clone)]
pub(super) enum Task {
    /// Draw hold and think times with this seed.
    Prepare(TimeDistributions, u64),
    /// Contend for the lock and stamp each acquisition. Keep at most this number of acquisitions.
    Stamped(usize),
    /// Contend for the lock and read the clock only after each batch of this many acquisitions.
    Counted(u32),
    /// Share tasks with the other threads, one acquisition per task. The counter holds the number
    /// of tasks left. Keep at most the given number of acquisitions.
    Tasks(Arc<AtomicU64>, usize),
    /// Serve the callers at this door.
    Callers(Arc<Door>),
    /// In these rounds, hold the lock while the other thread waits. If the flag is true, sleep
    /// while holding the lock.
    HoldForWaiter(Arc<HandoffProbe>, Arc<[HandoffRound]>, bool),
    /// In these rounds, wait for the lock and measure the hand-offs.
    MeasureHandoffs(Arc<HandoffProbe>, Arc<[HandoffRound]>),
}

type Job = (Task, Window);

#[derive(Default)]
pub(super) struct ThreadReport {
    pub(super) acquisitions: Vec<Acquisition>,
    pub(super) done: Done,
    pub(super) answered: Vec<Answered>,
    pub(super) handoffs: Vec<HandoffSample>,
    /// Duration of each release to a waiting thread, in ticks.
    pub(super) releases: Vec<u64>,
    /// Number of threads that waited just after an acquisition, summed over the acquisitions, if
    /// the lock itself counts them and the threads share tasks.
    pub(super) queues: Option<u64>,
    pub(super) counters: ThreadCounters,
    /// True if the thread started after counting had begun.
    pub(super) late: bool,
    /// True if there was no room for further acquisitions.
    pub(super) full: bool,
}

pub(super) struct LockThreads {
    pool: Pool<Job, ThreadReport>,
    clock: Clock,
    patience: Duration,
    retries: u32,
}

/// Start of a task, and start and end of counting, in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) begin: u64,
    pub(super) from: u64,
    pub(super) until: u64,
}

impl LockThreads {
    pub(super) fn start(
        clock: &Clock,
        name: &str,
        lock: &LockSpec,
        work: Work,
        places: &[Vec<u32>],
        patience: Duration,
    ) -> Result<Self, LabError> {
        let unavailable = |reason| LabError::Unavailable { mechanism: name.to_string(), reason };
        let contenders = lock.contenders(places.len()).map_err(unavailable)?;
        let placement = if places.iter().any(|cpus| cpus.len() > 1) {
            Placement::Free
        } else {
            Placement::Pinned
        };
        let mut pool = Pool::new(name, placement);
        for (index, (mut contender, cpus)) in contenders.into_iter().zip(places).enumerate() {
            let (clock, index) = (*clock, index as u32);
            pool.add(Worker::start("contend", cpus.clone(), move |setup| {
                sleep_exactly();
                let mut thread = Thread {
                    clock,
                    probe: ThreadProbe::new(),
                    busy_work: BusyWork::new(work, 1 + index),
                    steps: Vec::new(),
                    acquisitions: Vec::new(),
                };
                setup.serve(|job| thread.work(&mut *contender, job));
            }))?;
        }
        pool.ready(patience)?;
        Ok(LockThreads { pool, clock: *clock, patience, retries: RETRIES })
    }

    pub(super) fn prepare(
        &mut self,
        lengths: TimeDistributions,
        seed: u64,
    ) -> Result<(), LabError> {
        let now = self.clock.stamp();
        let window = Window { begin: now, from: now, until: now };
        let tasks = (0..self.pool.len() as u64)
            .map(|index| Task::Prepare(lengths, seed ^ (index << 32)))
            .collect();
        self.run(tasks, window, Duration::ZERO).map(drop)
    }

    /// Returns a window of this length, preceded by a warm-up. The warm-up begins late enough for
    /// all threads to have received their jobs.
    pub(super) fn window(&self, warm_up_ns: u64, length_ns: u64) -> Window {
        self.window_for(self.pool.len(), warm_up_ns, length_ns)
    }

    pub(super) fn window_for(&self, count: usize, warm_up_ns: u64, length_ns: u64) -> Window {
        let notice = NOTICE_NS + NOTICE_EACH_NS * count as f64;
        let begin = self.clock.stamp() + self.clock.ticks(notice);
        let from = begin + self.clock.ticks(warm_up_ns as f64);
        Window { begin, from, until: from.saturating_add(self.clock.ticks(length_ns as f64)) }
    }

    /// Runs a task on each thread. `longer` is the time for which a task may run on after its
    /// window.
    pub(super) fn run(
        &mut self,
        tasks: Vec<Task>,
        window: Window,
        longer: Duration,
    ) -> Result<Vec<ThreadReport>, LabError> {
        self.run_on(0..self.pool.len(), tasks, window, longer)
    }

    /// Runs a task on some of the threads while the others sleep.
    pub(super) fn run_on(
        &mut self,
        threads: Range<usize>,
        tasks: Vec<Task>,
        window: Window,
        longer: Duration,
    ) -> Result<Vec<ThreadReport>, LabError> {
        let length_ns = self.clock.ns(window.until.saturating_sub(window.begin)).min(1e15);
        let patience = self.patience + Duration::from_nanos(length_ns as u64) * 3 + longer;
        let jobs = tasks.into_iter().map(|task| (task, window));
        self.pool.give(threads.clone(), jobs)?;
        self.pool.reports(threads, patience)
    }

    /// Returns `true` if a window in which some thread started too late may be retried. Uses up one
    /// retry.
    pub(super) fn may_retry(&mut self) -> bool {
        let may = self.retries > 0;
        self.retries = self.retries.saturating_sub(1);
        may
    }

    pub(super) fn stuck(&mut self) -> LabError {
        self.pool.stuck(self.patience)
    }

    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    pub(super) fn count(&self) -> usize {
        self.pool.len()
    }
}

struct Thread {
    clock: Clock,
    probe: ThreadProbe,
    busy_work: BusyWork,
    steps: Vec<Step>,
    acquisitions: Vec<Acquisition>,
}

impl Thread {
    fn work(&mut self, contender: &mut dyn Contender, (task, window): Job) -> ThreadReport {
        let Thread { clock, probe, busy_work, steps, acquisitions } = self;
        let mut report = ThreadReport::default();
        let Window { begin, from, until } = window;
        match &task {
            Task::Prepare(lengths, seed) => {
                *steps = lengths.draw(*seed);
                return report;
            }
            Task::Stamped(most) | Task::Tasks(_, most) => touch(acquisitions, *most),
            Task::Callers(door) => touch(&mut report.answered, door.callers()),
            Task::Counted(_) | Task::HoldForWaiter(..) | Task::MeasureHandoffs(..) => {}
        }
        let batch = if let Task::Counted(batch) = task { batch } else { 1 };
        let spec = WindowSpec { clock, from, until, steps, batch };
        await_begin(clock, begin);
        let before = probe.sample();
        report.late = clock.stamp() > from;
        clear_upper_halves();
        match task {
            Task::Prepare(..) => {}
            Task::Stamped(_) => report.done.all = contender.stamped(spec, busy_work, acquisitions),
            Task::Counted(_) => report.done = contender.counted(spec, busy_work),
            Task::Tasks(left, _) => {
                report.queues = contender.tasks(spec, &left, busy_work, acquisitions);
                report.done.all = acquisitions.len() as u64;
            }
            Task::Callers(door) => {
                contender.callers(clock, &door, busy_work, &mut report.answered);
            }
            Task::HoldForWaiter(handoff, rounds, sleeps) => {
                report.releases = contender.hold_for_waiter(clock, &handoff, &rounds, sleeps);
            }
            Task::MeasureHandoffs(handoff, rounds) => {
                contender.measure_handoffs(clock, &handoff, &rounds, &mut report.handoffs);
            }
        }
        report.counters = probe.sample_after().delta(&before);
        report.full = !acquisitions.is_empty() && acquisitions.len() == acquisitions.capacity();
        // Copied, so that the thread keeps its touched buffer. The clock has stopped already.
        report.acquisitions.clone_from(acquisitions);
        acquisitions.clear();
        report
    }
}

/// Makes room for `most` entries and writes every page, so that none faults while the clock runs.
fn touch<T: Clone + Default>(entries: &mut Vec<T>, most: usize) {
    if entries.capacity() < most {
        *entries = touched(most);
    }
    entries.clear();
}

/// Waits until `begin`, when all threads have their jobs. Spins at the end of the wait and does not
/// yield: a thread that yields to a busy program gets its CPU back only a time slice later, when a
/// short window is over.
fn await_begin(clock: &Clock, begin: u64) {
    loop {
        let left_ns = clock.ns(begin.saturating_sub(clock.stamp()));
        if left_ns <= 0.0 {
            return;
        }
        if left_ns > SPUN_NS {
            std::thread::sleep(Duration::from_nanos((left_ns - SPUN_NS) as u64));
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Returns the CPUs of each thread. Pinned threads get one CPU each, round-robin.
pub(super) fn cpus_by_thread(placement: Placement, cpus: &[u32], threads: u32) -> Vec<Vec<u32>> {
    (0..threads as usize)
        .map(|thread| match placement {
            Placement::Pinned => vec![cpus[thread % cpus.len()]],
            Placement::SameCpu | Placement::Free => cpus.to_vec(),
        })
        .collect()
}
