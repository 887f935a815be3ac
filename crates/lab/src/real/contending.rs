//! A cell whose threads share a lock.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use threadtoll_machine::clock::Clock;
use threadtoll_machine::disturbance::{ThreadCounters, ThreadProbe, account as settle};
use threadtoll_machine::place;
use threadtoll_record::{
    BlockKind, ContentionBlock, ContentionSeen, LockSubject, Placement, PlannedCell, Work,
};

use crate::contention::contender::{Contender, Course, Done, Passed, Rendezvous, Taken};
use crate::contention::foretell::Calibration;
use crate::contention::lengths::Lengths;
use crate::contention::units::{Labour, sleep_exactly};
use crate::contention::{Account, account};
use crate::lock::Named;
use crate::rig::{Contended, LabError, Measured, Waited};

use super::calibrate::{Calibrator, Found};
use super::{Around, Opening};

/// No thread keeps more acquisitions of a block: 5 MB of stamps.
const MOST_TAKEN: u64 = 100_000;
/// One thread alone works for at least so many cycles on each CPU.
const CYCLES_A_TURN: u64 = 5;
/// The threads warm up for so many cycles, and at least and at most for so long.
const WARM_UP_CYCLES: u64 = 5;
const WARM_UP_NS: u64 = 500_000;
const LONGEST_WARM_UP_NS: u64 = 1_000_000_000;
/// From giving out a job until all threads begin: for the first, and for each.
const NOTICE_NS: f64 = 200_000.0;
const NOTICE_EACH_NS: f64 = 20_000.0;
/// How often all in all windows are tried again that not all threads of a crew were in time for.
const RETRIES: u32 = 500;
/// The end of a wait that is not slept, because sleeps are late.
const SPUN_NS: f64 = 100_000.0;
/// No acquisition and its stamps take less.
const SHORTEST_CYCLE_NS: u64 = 50;
/// Where they are not stamped, the clock is looked at about this often, in nanoseconds.
const LOOK_NS: u64 = 3_000;

/// What a thread is told to do.
#[derive(Clone)]
pub(super) enum Task {
    /// Draw its lengths.
    Prepare(Lengths, u64),
    /// Take the lock, with stamps, and keep at most so many of them.
    Stamped(usize),
    /// Take the lock, with a look at the clock after so many times.
    Counted(u32),
    /// Share these tasks.
    Tasks(Arc<AtomicU64>, usize),
    /// Hold the lock while the other thread waits for so long, in ticks.
    LetWait(Arc<Rendezvous>, Arc<[u64]>, bool),
    /// Be that other thread, so many times.
    Wait(Arc<Rendezvous>, usize),
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
    pub(super) taken: Vec<Taken>,
    pub(super) done: Done,
    pub(super) passed: Vec<Passed>,
    pub(super) thread: ThreadCounters,
    /// Whether the machine let it begin only when what it does had begun to count.
    pub(super) late: bool,
    /// Whether it had no room left for what it took.
    full: bool,
}

enum Answer {
    Ready,
    Failed(LabError),
    Done(Box<Part>),
}

struct Hand {
    jobs: Sender<Job>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<()>>,
}

/// Threads that share a lock.
pub(super) struct Crew {
    name: String,
    placement: Placement,
    clock: Clock,
    hands: Vec<Hand>,
    /// Whether a thread is stuck, and is left to the end of the process.
    left_behind: bool,
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

impl Crew {
    /// Starts a thread for each of these sets of CPUs, and waits until all are placed.
    pub(super) fn start(
        clock: &Clock,
        name: &str,
        named: Named,
        work: Work,
        places: &[Vec<u32>],
        patience: Duration,
    ) -> Result<Self, LabError> {
        let unavailable = |reason| LabError::Unavailable { mechanism: name.to_string(), reason };
        let contenders = named.contenders(places.len()).map_err(unavailable)?;
        let placement = if places.iter().any(|cpus| cpus.len() > 1) {
            Placement::Free
        } else {
            Placement::Pinned
        };
        let mut crew = Crew {
            name: name.to_string(),
            placement,
            clock: *clock,
            hands: Vec::new(),
            left_behind: false,
            patience,
            retries: RETRIES,
        };
        for (index, (contender, cpus)) in contenders.into_iter().zip(places).enumerate() {
            crew.hands.push(Hand::start(*clock, contender, work, index as u32, cpus.clone())?);
        }
        for hand in &crew.hands {
            match hand.answers.recv() {
                Ok(Answer::Ready) => {}
                Ok(Answer::Failed(error)) => return Err(error),
                Ok(Answer::Done(_)) | Err(_) => {
                    return Err(LabError::Spawn(std::io::Error::other("it ended at once")));
                }
            }
        }
        Ok(crew)
    }

    /// Lets every thread draw its lengths.
    pub(super) fn prepare(&mut self, lengths: Lengths, seed: u64) -> Result<(), LabError> {
        let now = self.clock.stamp();
        let window = Window { begin: now, from: now, until: now };
        let tasks = (0..self.hands.len() as u64)
            .map(|index| Task::Prepare(lengths, seed ^ (index << 32)))
            .collect();
        self.run(tasks, window, Duration::ZERO).map(drop)
    }

    /// A window that begins when all threads can have been told, counts after the warm-up, and is
    /// so long.
    pub(super) fn window(&self, warm_up_ns: u64, length_ns: u64) -> Window {
        self.window_for(self.hands.len(), warm_up_ns, length_ns)
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
        self.run_on(0..self.hands.len(), tasks, window, longer)
    }

    /// The same on some of the threads; the others sleep.
    pub(super) fn run_on(
        &mut self,
        hands: std::ops::Range<usize>,
        tasks: Vec<Task>,
        window: Window,
        longer: Duration,
    ) -> Result<Vec<Part>, LabError> {
        let Window { begin, from, until } = window;
        let length_ns = self.clock.ns(until.saturating_sub(begin)).min(1e15);
        let patience = self.patience + Duration::from_nanos(length_ns as u64) * 3 + longer;
        let deadline = Instant::now() + patience;
        let stuck = self.stuck(patience);
        let hands = &self.hands[hands];
        let sent = hands
            .iter()
            .zip(tasks)
            .all(|(hand, task)| hand.jobs.send(Job { task, begin, from, until }).is_ok());
        let answer = |hand: &Hand| match hand
            .answers
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            Ok(Answer::Done(part)) => Some(*part),
            Ok(Answer::Ready | Answer::Failed(_)) | Err(_) => None,
        };
        let parts: Option<Vec<Part>> = hands.iter().map(answer).collect();
        match parts.filter(|_| sent) {
            Some(parts) => Ok(parts),
            None => {
                self.left_behind = true;
                Err(stuck)
            }
        }
    }

    /// Whether a window may be tried again that not all threads were in time for.
    pub(super) fn may_retry(&mut self) -> bool {
        let may = self.retries > 0;
        self.retries = self.retries.saturating_sub(1);
        may
    }

    /// That nothing came of it for so long.
    pub(super) fn stuck(&self, patience: Duration) -> LabError {
        LabError::Stuck {
            mechanism: self.name.clone(),
            placement: self.placement.to_string(),
            seconds: patience.as_secs(),
        }
    }

    pub(super) fn threads(&self) -> usize {
        self.hands.len()
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for hand in &mut self.hands {
            // Without jobs to come a thread ends; one that is stuck would never, and is left to the
            // end of the process.
            let (jobs, _) = channel();
            hand.jobs = jobs;
        }
        if !self.left_behind {
            for thread in self.hands.iter_mut().filter_map(|hand| hand.thread.take()) {
                // A panic in a thread was printed when it happened, and the block it was at has
                // failed.
                let _ = thread.join();
            }
        }
    }
}

impl Hand {
    fn start(
        clock: Clock,
        mut contender: Box<dyn Contender>,
        work: Work,
        index: u32,
        cpus: Vec<u32>,
    ) -> Result<Self, LabError> {
        let (jobs, take_jobs) = channel::<Job>();
        let (answers, take_answers) = channel();
        let thread = std::thread::Builder::new()
            .name("threadtoll-contend".into())
            .spawn(move || {
                if let Err(error) = place::pin_to(&cpus) {
                    let _ = answers
                        .send(Answer::Failed(LabError::Place { reason: error.to_string(), cpus }));
                    return;
                }
                sleep_exactly();
                let probe = ThreadProbe::new();
                let mut labour = Labour::new(work, 1 + index);
                let mut picks = Vec::new();
                let mut taken: Vec<Taken> = Vec::new();
                if answers.send(Answer::Ready).is_err() {
                    return;
                }
                while let Ok(job) = take_jobs.recv() {
                    let part = do_job(
                        &clock,
                        &mut *contender,
                        &mut labour,
                        &mut picks,
                        &mut taken,
                        &probe,
                        job,
                    );
                    if answers.send(Answer::Done(Box::new(part))).is_err() {
                        return;
                    }
                }
            })
            .map_err(LabError::Spawn)?;
        Ok(Hand { jobs, answers: take_answers, thread: Some(thread) })
    }
}

fn do_job(
    clock: &Clock,
    contender: &mut dyn Contender,
    labour: &mut Labour,
    picks: &mut Vec<crate::contention::lengths::Pick>,
    taken: &mut Vec<Taken>,
    probe: &ThreadProbe,
    job: Job,
) -> Part {
    let mut part = Part::default();
    let Job { task, begin, from, until } = job;
    match &task {
        Task::Prepare(lengths, seed) => {
            *picks = lengths.draw(*seed);
            return part;
        }
        Task::Stamped(most) | Task::Tasks(_, most) => touch(taken, *most),
        Task::Counted(_) | Task::LetWait(..) | Task::Wait(..) => {}
    }
    let batch = if let Task::Counted(batch) = task { batch } else { 1 };
    let course = Course { clock, from, until, picks, batch };
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
        Task::LetWait(meeting, rounds, sleeps) => {
            contender.let_wait(clock, &meeting, &rounds, sleeps)
        }
        Task::Wait(meeting, rounds) => contender.wait(clock, &meeting, rounds, &mut part.passed),
    }
    part.thread = probe.sample_after().delta(&before);
    part.full = !taken.is_empty() && taken.len() == taken.capacity();
    // The buffer stays with the thread, touched; what goes out is copied after the clock has
    // stopped.
    part.taken.clone_from(taken);
    taken.clear();
    part
}

/// Room for so many, every page of it written once, so that none is missing when the clock runs.
fn touch(taken: &mut Vec<Taken>, most: usize) {
    taken.clear();
    if taken.capacity() < most {
        taken.extend(std::iter::repeat_n(std::hint::black_box(Taken::default()), most));
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

/// A cell whose threads share a lock.
pub(super) struct Contending {
    planned: PlannedCell,
    subject: LockSubject,
    named: Named,
    clock: Clock,
    crew: Crew,
    around: Around,
    found: Option<Found>,
}

impl Contending {
    pub(super) fn open(opening: Opening<'_>, subject: &LockSubject) -> Result<Self, LabError> {
        let Opening { clock, planned, allowed, patience, .. } = opening;
        let cell = &planned.cell;
        let named =
            Named::parse(&subject.lock).map_err(|_| LabError::UnknownLock(subject.lock.clone()))?;
        let in_turn = subject.is_alone() && cell.placement == Placement::Pinned;
        let hands = if in_turn { cell.cpus.len() as u32 } else { subject.threads };
        let places = places(cell.placement, &cell.cpus, hands);
        Ok(Contending {
            planned: planned.clone(),
            subject: subject.clone(),
            named,
            clock: *clock,
            crew: Crew::start(clock, &subject.lock, named, subject.work, &places, patience)?,
            around: Around::start(cell, allowed)?,
            found: None,
        })
    }

    /// Finds out how long a unit of work takes and what a model is to start from, and lets the
    /// threads draw their lengths.
    pub(super) fn calibrate(&mut self, calibrator: &mut Calibrator) -> Result<(), LabError> {
        let found = calibrator.calibrate(&self.planned.cell, &self.subject, self.named)?;
        self.crew.prepare(found.lengths, 0x10C4)?;
        self.found = Some(found);
        Ok(())
    }

    pub(super) fn calibration(&self) -> Option<Calibration> {
        self.found.as_ref().and_then(|found| found.calibration.clone())
    }

    pub(super) fn block(
        &mut self,
        kind: BlockKind,
        start_ticks: u64,
    ) -> Result<Measured, LabError> {
        let deadline = Instant::now() + self.crew.patience;
        loop {
            let measured = self.attempt(kind, start_ticks)?;
            // A window in which the machine was elsewhere says nothing; one that is empty again and
            // again does.
            if measured
                .contended
                .iter()
                .any(|contended| contended.block.acquisitions.iter().any(|taken| *taken > 0))
            {
                return Ok(measured);
            }
            if Instant::now() >= deadline {
                return Err(self.crew.stuck(self.crew.patience));
            }
        }
    }

    fn attempt(&mut self, kind: BlockKind, start_ticks: u64) -> Result<Measured, LabError> {
        let hands = self.crew.threads();
        // One thread alone works on each CPU in turn.
        let turns = if self.subject.is_alone() { hands } else { 1 };
        let at_once = hands / turns;
        let before = self.around.go();
        let done: Result<Vec<Turn>, LabError> = (0..turns)
            .map(|turn| {
                self.turn(kind, start_ticks, turn * at_once..(turn + 1) * at_once, turns as u64)
            })
            .collect();
        let system = self.around.rest(&before);
        let mut done = done?;
        let counters: Vec<ThreadCounters> =
            done.iter_mut().flat_map(|turn| turn.counters.drain(..)).collect();
        let (cost, disturbance) = settle(&counters, system, None);
        let (began_s, all) = (done[0].began_s, done.iter().map(|turn| turn.all).sum());
        Ok(Measured {
            per_stretch: 1,
            accounted_round_trips: all,
            began_s,
            lead_cpus: vec![self.planned.cell.cpus[0]],
            cost,
            disturbance,
            contended: Some(joined(done.into_iter().map(|turn| turn.contended).collect())),
            ..Measured::default()
        })
    }

    /// What some of the threads do in one of so many parts of a block.
    fn turn(
        &mut self,
        kind: BlockKind,
        start_ticks: u64,
        hands: std::ops::Range<usize>,
        turns: u64,
    ) -> Result<Turn, LabError> {
        let cycle_ns = self.subject.cycle_ns();
        let budget = &self.planned.budget;
        let told = hands.len();
        // A turn that is shorter than a few cycles would show nothing.
        let part_ns = |length_ns: u64| {
            (length_ns / turns).max(if turns > 1 { CYCLES_A_TURN * cycle_ns } else { 1 })
        };
        let warm_up_ns = (WARM_UP_CYCLES * cycle_ns).clamp(WARM_UP_NS, LONGEST_WARM_UP_NS);
        let (task, window, longer) = if let Some(tasks) = self.subject.tasks {
            let tasks = tasks.div_ceil(turns);
            let left = Arc::new(AtomicU64::new(tasks));
            let longest =
                Duration::from_nanos(tasks.saturating_mul(cycle_ns).saturating_mul(5).min(1 << 60));
            let window = Window { until: u64::MAX, ..self.crew.window_for(told, 0, 0) };
            (Task::Tasks(left, tasks as usize + 1), window, longest)
        } else if kind == BlockKind::Stretch {
            let batch = (LOOK_NS / cycle_ns.max(SHORTEST_CYCLE_NS)).max(1) as u32;
            let window = self.crew.window_for(told, warm_up_ns, part_ns(budget.stretch_ns));
            (Task::Counted(batch), window, Duration::ZERO)
        } else {
            let each_ns = cycle_ns.max(SHORTEST_CYCLE_NS);
            let length_ns = part_ns(budget.stamped_ns).min(MOST_TAKEN / 2 * each_ns);
            let fits = (length_ns / each_ns + 64) * 3 / 2;
            let most = fits.min(MOST_TAKEN) as usize;
            (Task::Stamped(most), self.crew.window_for(told, warm_up_ns, length_ns), Duration::ZERO)
        };
        let parts = self.crew.run_on(hands.clone(), vec![task; hands.len()], window, longer)?;
        let counters = parts.iter().map(|part| part.thread).collect();
        let began_s = self.clock.ns(window.from.saturating_sub(start_ticks)) / 1e9;
        let (contended, all) = if kind == BlockKind::Stretch && self.subject.tasks.is_none() {
            self.counted(&parts, window)
        } else {
            self.stamped(parts, window, start_ticks)
        };
        Ok(Turn { contended, all, counters, began_s })
    }

    fn counted(&self, parts: &[Part], window: Window) -> (Contended, u64) {
        let block = ContentionBlock {
            work: parts.iter().map(|part| part.done.units).sum(),
            acquisitions: parts.iter().map(|part| part.done.acquisitions.round() as u64).collect(),
            work_by_cpu: Vec::new(),
            seen: None,
        };
        let elapsed_ns = self.clock.ns(window.until - window.from) as u64;
        let all = parts.iter().map(|part| part.done.all).sum();
        (Contended { block, elapsed_ns: elapsed_ns.max(1), waits: Vec::new() }, all)
    }

    fn stamped(&self, parts: Vec<Part>, window: Window, start_ticks: u64) -> (Contended, u64) {
        let all = parts.iter().map(|part| part.done.all).sum();
        let last = |part: &Part| part.taken.last().map(|last| last.released);
        let (from, until) = if self.subject.tasks.is_some() {
            (window.begin, parts.iter().filter_map(last).max().unwrap_or(window.begin) + 1)
        } else {
            // Where a thread had no room left, what came after is not known of it.
            let known = parts
                .iter()
                .filter(|part| part.full)
                .filter_map(last)
                .min()
                .unwrap_or(window.until);
            (window.from, window.until.min(known.max(window.from + 1)))
        };
        let threads: Vec<Vec<Taken>> = parts.into_iter().map(|part| part.taken).collect();
        let mut found = account(&threads, from, until);
        if self.subject.tasks.is_some() {
            whole_tasks(&mut found, &threads);
        }
        let cpus = &self.planned.cell.cpus;
        let waits = found
            .waits
            .iter()
            .map(|(at, ticks, thread)| Waited {
                ps: self.clock.ps(*ticks),
                at_s: self.clock.ns(at.saturating_sub(start_ticks)) / 1e9,
                cpu: cpus[*thread as usize % cpus.len()],
            })
            .collect();
        let seen = in_ns(&found.seen, &self.clock);
        let block = ContentionBlock {
            work: found.units,
            acquisitions: found.acquisitions,
            work_by_cpu: Vec::new(),
            seen: Some(seen),
        };
        let elapsed_ns = self.clock.ns(until - from) as u64;
        (Contended { block, elapsed_ns: elapsed_ns.max(1), waits }, all)
    }
}

/// What was found in a part of a block.
struct Turn {
    contended: Contended,
    all: u64,
    counters: Vec<ThreadCounters>,
    began_s: f64,
}

/// The parts of a block as one; where there are several, each is one thread's on another CPU.
fn joined(mut parts: Vec<Contended>) -> Contended {
    if parts.len() == 1 {
        return parts.swap_remove(0);
    }
    let rate = |part: &Contended| part.block.work / part.elapsed_ns as f64;
    let acquisitions = parts.iter().flat_map(|part| &part.block.acquisitions).sum();
    let block = ContentionBlock {
        work: parts.iter().map(|part| part.block.work).sum(),
        acquisitions: vec![acquisitions],
        work_by_cpu: parts.iter().map(rate).collect(),
        // One thread alone waits for nobody.
        seen: None,
    };
    Contended {
        block,
        elapsed_ns: parts.iter().map(|part| part.elapsed_ns).sum(),
        waits: Vec::new(),
    }
}

/// A run of tasks is counted as a whole: its last stretches have no acquisition after them, and
/// what stands in their place is none.
fn whole_tasks(found: &mut Account, threads: &[Vec<Taken>]) {
    found.units = threads.iter().flatten().map(|taken| (taken.think + taken.hold) as f64).sum();
    for (thread, all) in threads.iter().enumerate() {
        let ends = all.last().filter(|last| last.released == last.free);
        if let Some(end) = ends {
            found.acquisitions[thread] = found.acquisitions[thread].saturating_sub(1);
            found.waits.retain(|(at, _, of)| (*at, *of) != (end.got, thread as u32));
        }
    }
}

fn in_ns(seen: &ContentionSeen, clock: &Clock) -> ContentionSeen {
    let ns = |ticks: f64| clock.ns(ticks as u64);
    ContentionSeen {
        wait_ns: ns(seen.wait_ns),
        hold_ns: ns(seen.hold_ns),
        think_ns: ns(seen.think_ns),
        handoff_ns: ns(seen.handoff_ns),
        starved_ns: ns(seen.starved_ns),
        ..*seen
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
