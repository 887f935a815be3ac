//! Threads that share a lock, and what they can be told to do with it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use threadtoll_machine::clock::Clock;
use threadtoll_machine::disturbance::{ThreadCounters, ThreadProbe};
use threadtoll_model::queue_trace::Acquisition;
use threadtoll_record::{Placement, Work};

use crate::LabError;
use crate::contention::contender::{Contender, Done, HandoffProbe, HandoffSample, WindowSpec};
use crate::contention::lengths::{Step, TimeDistributions};
use crate::contention::units::{BusyWork, sleep_exactly};
use crate::lock::LockSpec;

use super::pool::{Pool, Worker};

/// From giving out a job until all threads begin: for the first, and for each.
const NOTICE_NS: f64 = 200_000.0;
const NOTICE_EACH_NS: f64 = 20_000.0;
/// How often all in all windows are tried again that not all threads of a crew were in time for.
const RETRIES: u32 = 500;
/// The end of a wait that is not slept, because sleeps are late.
const SPUN_NS: f64 = 100_000.0;

/// What a thread is told to do.
#[derive(Clone)]
pub(super) enum Task {
    /// Draw its lengths.
    Prepare(TimeDistributions, u64),
    /// Take the lock, with stamps, and keep at most so many of them.
    Stamped(usize),
    /// Take the lock, with a look at the clock after so many times.
    Counted(u32),
    /// Share these tasks.
    Tasks(Arc<AtomicU64>, usize),
    /// Hold the lock while the other thread waits for so long, in ticks.
    HoldForWaiter(Arc<HandoffProbe>, Arc<[u64]>, bool),
    /// Be that other thread, so many times.
    MeasureHandoffs(Arc<HandoffProbe>, usize),
}

/// A task, and when it begins, begins to count, and ends to, in ticks.
#[derive(Clone)]
struct Job {
    task: Task,
    begin: u64,
    from: u64,
    until: u64,
}

/// What a thread found.
#[derive(Default)]
pub(super) struct Part {
    pub(super) taken: Vec<Acquisition>,
    pub(super) done: Done,
    pub(super) passed: Vec<HandoffSample>,
    pub(super) thread: ThreadCounters,
    /// Whether the machine let it begin only when what it does had begun to count.
    pub(super) late: bool,
    /// Whether it had no room left for what it took.
    pub(super) full: bool,
}

/// Threads that share a lock.
pub(super) struct LockThreads {
    pool: Pool<Job, Part>,
    clock: Clock,
    patience: Duration,
    /// How often a window may still be tried again.
    retries: u32,
}

/// When a window begins and ends, in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) begin: u64,
    pub(super) from: u64,
    pub(super) until: u64,
}

impl LockThreads {
    /// Starts a thread for each of these sets of CPUs, and waits until all are placed.
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
                    labour: BusyWork::new(work, 1 + index),
                    picks: Vec::new(),
                    taken: Vec::new(),
                };
                setup.serve(|job| thread.work(&mut *contender, job));
            }))?;
        }
        pool.ready()?;
        Ok(LockThreads { pool, clock: *clock, patience, retries: RETRIES })
    }

    /// Lets every thread draw its lengths.
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

    /// A window that begins when all threads can have been told, counts after the warm-up, and is
    /// so long.
    pub(super) fn window(&self, warm_up_ns: u64, length_ns: u64) -> Window {
        self.window_for(self.pool.len(), warm_up_ns, length_ns)
    }

    /// The same for so many of the threads.
    pub(super) fn window_for(&self, told: usize, warm_up_ns: u64, length_ns: u64) -> Window {
        let notice = NOTICE_NS + NOTICE_EACH_NS * told as f64;
        let begin = self.clock.stamp() + self.clock.ticks(notice);
        let from = begin + self.clock.ticks(warm_up_ns as f64);
        Window { begin, from, until: from.saturating_add(self.clock.ticks(length_ns as f64)) }
    }

    /// Runs a task on each thread; `longer` is what it may take beyond its window.
    pub(super) fn run(
        &mut self,
        tasks: Vec<Task>,
        window: Window,
        longer: Duration,
    ) -> Result<Vec<Part>, LabError> {
        self.run_on(0..self.pool.len(), tasks, window, longer)
    }

    /// The same on some of the threads; the others sleep.
    pub(super) fn run_on(
        &mut self,
        threads: Range<usize>,
        tasks: Vec<Task>,
        window: Window,
        longer: Duration,
    ) -> Result<Vec<Part>, LabError> {
        let Window { begin, from, until } = window;
        let length_ns = self.clock.ns(until.saturating_sub(begin)).min(1e15);
        let patience = self.patience + Duration::from_nanos(length_ns as u64) * 3 + longer;
        let jobs = tasks.into_iter().map(|task| Job { task, begin, from, until });
        self.pool.give(threads.clone(), jobs, patience)?;
        self.pool.reports(threads, patience)
    }

    /// Whether a window may be tried again that not all threads were in time for.
    pub(super) fn may_retry(&mut self) -> bool {
        let may = self.retries > 0;
        self.retries = self.retries.saturating_sub(1);
        may
    }

    /// The error of a run without progress within `patience`.
    pub(super) fn stuck(&mut self) -> LabError {
        self.pool.stuck(self.patience)
    }

    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    pub(super) fn threads(&self) -> usize {
        self.pool.len()
    }
}

/// What a thread keeps between its jobs.
struct Thread {
    clock: Clock,
    probe: ThreadProbe,
    labour: BusyWork,
    picks: Vec<Step>,
    taken: Vec<Acquisition>,
}

impl Thread {
    fn work(&mut self, contender: &mut dyn Contender, job: Job) -> Part {
        let Thread { clock, probe, labour, picks, taken } = self;
        let mut part = Part::default();
        let Job { task, begin, from, until } = job;
        match &task {
            Task::Prepare(lengths, seed) => {
                *picks = lengths.draw(*seed);
                return part;
            }
            Task::Stamped(most) | Task::Tasks(_, most) => touch(taken, *most),
            Task::Counted(_) | Task::HoldForWaiter(..) | Task::MeasureHandoffs(..) => {}
        }
        let batch = if let Task::Counted(batch) = task { batch } else { 1 };
        let course = WindowSpec { clock, from, until, picks, batch };
        await_begin(clock, begin);
        let before = probe.sample();
        part.late = clock.stamp() > from;
        match task {
            Task::Prepare(..) => {}
            Task::Stamped(_) => part.done.all = contender.stamped(course, labour, taken),
            Task::Counted(_) => part.done = contender.counted(course, labour),
            Task::Tasks(left, _) => {
                contender.tasks(course, &left, labour, taken);
                part.done.all = taken.len() as u64;
            }
            Task::HoldForWaiter(meeting, rounds, sleeps) => {
                contender.hold_for_waiter(clock, &meeting, &rounds, sleeps)
            }
            Task::MeasureHandoffs(meeting, rounds) => {
                contender.wait(clock, &meeting, rounds, &mut part.passed)
            }
        }
        part.thread = probe.sample_after().delta(&before);
        part.full = !taken.is_empty() && taken.len() == taken.capacity();
        // The buffer stays with the thread, touched; what goes out is copied after the clock has
        // stopped.
        part.taken.clone_from(taken);
        taken.clear();
        part
    }
}

/// Room for so many, every page of it written once, so that none is missing when the clock runs.
fn touch(taken: &mut Vec<Acquisition>, most: usize) {
    taken.clear();
    if taken.capacity() < most {
        taken.extend(std::iter::repeat_n(std::hint::black_box(Acquisition::default()), most));
        taken.clear();
    }
}

/// Waits until all threads have been told. The end of the wait is spun: who yields to a busy
/// program has its CPU back a slice of the scheduler later, when a short window is over.
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

/// On which CPUs the threads run: pinned, each on its own as far as there are any, and then in
/// turns.
pub(super) fn places(placement: Placement, cpus: &[u32], threads: u32) -> Vec<Vec<u32>> {
    (0..threads as usize)
        .map(|thread| match placement {
            Placement::Pinned => vec![cpus[thread % cpus.len()]],
            Placement::SameCpu | Placement::Free => cpus.to_vec(),
        })
        .collect()
}
