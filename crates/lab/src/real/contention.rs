//! A cell whose threads contend for a lock.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use threadtoll_machine::clock::Clock;
use threadtoll_machine::disturbance::ThreadCounters;
use threadtoll_model::queue_trace::{self, Acquisition, Excerpt, QueueTrace};
use threadtoll_record::limits::TIMELINE;
use threadtoll_record::{BlockKind, ContentionBlock, ContentionSeen, LockSubject, Placement};

use crate::LabError;
use crate::backend::OpenCell;
use crate::contention::calibration_schedule::SETTLING_NS;
use crate::contention::predict::Calibration;
use crate::lock::LockSpec;
use crate::samples::{Acquisitions, BlockSamples, Counters, Samples, Waited};

use super::calibrate::CellCalibration;
use super::lock_threads::{LockThreads, Task, ThreadReport, Window, cpus_by_thread};
use super::{CellContext, GroupState, RealCell, counters};

/// Maximum number of acquisitions that a thread keeps per block: 5 MB of stamps.
const MAX_TAKEN: u64 = 100_000;
const CYCLES_A_TURN: u64 = 5;
/// Minimum time of an acquisition with its stamps.
const MIN_CYCLE_NS: u64 = 50;
/// Target interval between clock reads if acquisitions are not stamped.
const LOOK_NS: u64 = 3_000;
/// Length of the warm-up in cycles. The warm-up takes at least `WARM_UP_NS` and at most
/// `MAX_WARM_UP_NS`.
const WARM_UP_CYCLES: u64 = 5;
const WARM_UP_NS: u64 = SETTLING_NS;
const MAX_WARM_UP_NS: u64 = 1_000_000_000;

pub(super) struct Contention {
    context: CellContext,
    subject: LockSubject,
    lock: LockSpec,
    threads: LockThreads,
    calibrated: Option<CellCalibration>,
}

impl Contention {
    pub(super) fn open(
        context: CellContext,
        lock: LockSpec,
        subject: LockSubject,
    ) -> Result<Self, LabError> {
        let cell = &context.planned.cell;
        let in_turn = subject.is_alone() && cell.placement == Placement::Pinned;
        let threads = if in_turn { cell.cpus.len() as u32 } else { subject.threads };
        let places = cpus_by_thread(cell.placement, &cell.cpus, threads);
        let (clock, patience) = (&context.clock, context.patience);
        let threads =
            LockThreads::start(clock, &subject.lock, &lock, subject.work, &places, patience)?;
        Ok(Contention { context, subject, lock, threads, calibrated: None })
    }

    fn attempt(&mut self, kind: BlockKind) -> Result<(Counters, Acquisitions), LabError> {
        let threads = self.threads.count();
        // If the cell has a single thread, that thread takes a turn on each CPU. After these turns,
        // one thread per CPU runs, all at the same time.
        let turns = if self.subject.is_alone() { threads } else { 1 };
        let at_once = threads / turns;
        let before = self.context.environment.begin()?;
        let done: Result<Vec<Turn>, LabError> = (0..turns)
            .map(|turn| self.turn(kind, turn * at_once..(turn + 1) * at_once, turns as u64))
            .collect();
        let system = self.context.environment.end(&before);
        let mut done = done?;
        let work_together = if turns > 1 {
            Some(self.turn(kind, 0..threads, turns as u64)?.acquisitions.rate())
        } else {
            None
        };
        let of_threads: Vec<ThreadCounters> =
            done.iter_mut().flat_map(|turn| turn.counters.drain(..)).collect();
        let all = done.iter().map(|turn| turn.all).sum();
        let counters = counters(&of_threads, system, None, all);
        let turns = done.into_iter().map(|turn| turn.acquisitions).collect();
        Ok((counters, joined(turns, work_together)))
    }

    fn turn(
        &mut self,
        kind: BlockKind,
        threads: Range<usize>,
        turns: u64,
    ) -> Result<Turn, LabError> {
        let cycle_ns = self.subject.cycle_ns();
        let budget = &self.context.planned.budget;
        // A turn with fewer than `CYCLES_A_TURN` cycles would be meaningless.
        let part_ns = |length_ns: u64| {
            (length_ns / turns).max(if turns > 1 { CYCLES_A_TURN * cycle_ns } else { 1 })
        };
        let warm_up_ns = (WARM_UP_CYCLES * cycle_ns).clamp(WARM_UP_NS, MAX_WARM_UP_NS);
        let (task, window, longer) = if let Some(tasks) = self.subject.tasks {
            let tasks = tasks.div_ceil(turns);
            let left = Arc::new(AtomicU64::new(tasks));
            let longest =
                Duration::from_nanos(tasks.saturating_mul(cycle_ns).saturating_mul(5).min(1 << 60));
            let window = Window { until: u64::MAX, ..self.threads.window_for(threads.len(), 0, 0) };
            (Task::Tasks(left, tasks as usize + 1), window, longest)
        } else if kind == BlockKind::Stretch {
            let batch = (LOOK_NS / cycle_ns.max(MIN_CYCLE_NS)).max(1) as u32;
            let window =
                self.threads.window_for(threads.len(), warm_up_ns, part_ns(budget.stretch_ns));
            (Task::Counted(batch), window, Duration::ZERO)
        } else {
            let each_ns = cycle_ns.max(MIN_CYCLE_NS);
            let length_ns = part_ns(budget.stamped_ns).min(MAX_TAKEN / 2 * each_ns);
            let fits = (length_ns / each_ns + 64) * 3 / 2;
            let most = fits.min(MAX_TAKEN) as usize;
            (
                Task::Stamped(most),
                self.threads.window_for(threads.len(), warm_up_ns, length_ns),
                Duration::ZERO,
            )
        };
        let tasks = vec![task; threads.len()];
        let reports = self.threads.run_on(threads, tasks, window, longer)?;
        let counters = reports.iter().map(|report| report.counters).collect();
        let (acquisitions, all) = if kind == BlockKind::Stretch && self.subject.tasks.is_none() {
            self.counted(&reports, window)
        } else {
            self.stamped(reports, window)
        };
        Ok(Turn { acquisitions, all, counters })
    }

    fn counted(&self, reports: &[ThreadReport], window: Window) -> (Acquisitions, u64) {
        let block = ContentionBlock {
            work: reports.iter().map(|report| report.done.units).sum::<f64>().into(),
            acquisitions: reports
                .iter()
                .map(|report| (report.done.acquisitions.round() as u64).into())
                .collect(),
            ..ContentionBlock::default()
        };
        let elapsed_ns = self.context.clock.ns(window.until - window.from) as u64;
        let all = reports.iter().map(|report| report.done.all).sum();
        let elapsed_ns = elapsed_ns.max(1);
        (Acquisitions { block, elapsed_ns, waits: Vec::new(), excerpt: None }, all)
    }

    fn stamped(&self, reports: Vec<ThreadReport>, window: Window) -> (Acquisitions, u64) {
        let all = reports.iter().map(|report| report.done.all).sum();
        let last = |report: &ThreadReport| report.acquisitions.last().map(|last| last.released_at);
        let (from, until) = if self.subject.tasks.is_some() {
            (window.begin, reports.iter().filter_map(last).max().unwrap_or(window.begin) + 1)
        } else {
            // The observed time ends when the first thread has no room left, because later
            // acquisitions of that thread are unknown.
            let known = reports
                .iter()
                .filter(|report| report.full)
                .filter_map(last)
                .min()
                .unwrap_or(window.until);
            (window.from, window.until.min(known.max(window.from + 1)))
        };
        let queues = reports.iter().filter_map(|report| report.queues).reduce(|sum, one| sum + one);
        let threads: Vec<Vec<Acquisition>> =
            reports.into_iter().map(|report| report.acquisitions).collect();
        let mut trace = queue_trace::reconstruct(&threads, from, until);
        if self.subject.tasks.is_some() {
            whole_tasks(&mut trace, &threads);
        }
        let cpus = &self.context.planned.cell.cpus;
        let waits = trace
            .waits
            .iter()
            .map(|wait| Waited {
                ps: self.context.clock.ps(wait.length),
                at_s: self.context.clock.ns(wait.ended_at.saturating_sub(self.context.start_ticks))
                    / 1e9,
                cpu: cpus[wait.thread as usize % cpus.len()],
            })
            .collect();
        let seen = ContentionSeen {
            queue_told: queues.map(Into::into),
            ..in_ns(&trace, &self.context.clock)
        };
        let block = ContentionBlock {
            work: trace.units.into(),
            acquisitions: trace.acquisitions.into_iter().map(Into::into).collect(),
            seen: Some(seen),
            ..ContentionBlock::default()
        };
        let elapsed_ns = self.context.clock.ns(until - from) as u64;
        let excerpt = self.excerpt(&threads, from, until);
        (Acquisitions { block, elapsed_ns: elapsed_ns.max(1), waits, excerpt }, all)
    }

    /// Returns the first acquisitions, with times in nanoseconds, up to the time at which some
    /// thread has no tasks left.
    fn excerpt(&self, threads: &[Vec<Acquisition>], from: u64, until: u64) -> Option<Excerpt> {
        if threads.len() < 2 {
            return None;
        }
        let end = threads.iter().filter_map(|all| end_of_tasks(all)).map(|end| end.idle_at).min();
        let until = end.map_or(until, |end| end.min(until));
        let excerpt = queue_trace::excerpt(threads, from, until, TIMELINE)?;
        Some(excerpt.converted(|ticks| self.context.clock.ns(ticks) as u64))
            .filter(|it| it.length > 0)
    }
}

impl RealCell for Contention {
    fn surveys(&self) -> bool {
        true
    }

    fn survey(&mut self, group: &mut GroupState) -> Result<(), LabError> {
        let cell = &self.context.planned.cell;
        self.calibrated = Some(group.calibrator.calibrate(cell, &self.subject, &self.lock)?);
        Ok(())
    }

    fn prepare(&mut self, _: &mut GroupState) -> Result<(), LabError> {
        match &self.calibrated {
            Some(calibrated) => self.threads.prepare(calibrated.lengths, 0x10C4),
            None => Ok(()),
        }
    }
}

impl OpenCell for Contention {
    fn calibration(&self) -> Option<Calibration> {
        self.calibrated.as_ref()?.calibration.clone()
    }

    fn block(&mut self, kind: BlockKind) -> Result<BlockSamples, LabError> {
        let deadline = Instant::now() + self.threads.patience();
        loop {
            let (counters, acquisitions) = self.attempt(kind)?;
            // A window without acquisitions means that the machine was busy with other work. It is
            // an error only if it recurs until the deadline.
            if acquisitions.block.acquisitions.iter().any(|count| *count > 0) {
                let samples = Samples::Contention(acquisitions);
                return Ok(BlockSamples { counters, samples });
            }
            if Instant::now() >= deadline {
                return Err(self.threads.stuck());
            }
        }
    }
}

struct Turn {
    acquisitions: Acquisitions,
    all: u64,
    counters: Vec<ThreadCounters>,
}

/// Joins the turns of a block. If there are several turns, each was taken by a single thread, on a
/// different CPU every time.
fn joined(mut parts: Vec<Acquisitions>, work_together: Option<f64>) -> Acquisitions {
    if parts.len() == 1 {
        return parts.swap_remove(0);
    }
    let acquisitions = parts.iter().flat_map(|part| &part.block.acquisitions).copied().sum();
    let block = ContentionBlock {
        work: parts.iter().map(|part| part.block.work.get()).sum::<f64>().into(),
        acquisitions: vec![acquisitions],
        work_by_cpu: parts.iter().map(|part| part.rate().into()).collect(),
        work_together: work_together.map(Into::into),
        // A single thread never waits.
        ..ContentionBlock::default()
    };
    Acquisitions {
        block,
        elapsed_ns: parts.iter().map(|part| part.elapsed_ns).sum(),
        waits: Vec::new(),
        excerpt: None,
    }
}

/// Returns the last entry of a thread that shared tasks. This entry marks the end of the tasks and
/// is not an acquisition.
fn end_of_tasks(all: &[Acquisition]) -> Option<&Acquisition> {
    all.last().filter(|last| last.released_at == last.idle_at)
}

/// Corrects the trace of threads that share tasks: counts the work of all tasks, and removes the
/// entries that mark the end of the tasks.
fn whole_tasks(trace: &mut QueueTrace, threads: &[Vec<Acquisition>]) {
    trace.units =
        threads.iter().flatten().map(|one| (one.think_units + one.hold_units) as f64).sum();
    for (thread, all) in threads.iter().enumerate() {
        if let Some(end) = end_of_tasks(all) {
            trace.acquisitions[thread] = trace.acquisitions[thread].saturating_sub(1);
            let is_end = (end.acquired_at, thread as u32);
            trace.waits.retain(|wait| (wait.ended_at, wait.thread) != is_end);
        }
    }
}

fn in_ns(trace: &QueueTrace, clock: &Clock) -> ContentionSeen {
    let ns = |ticks: f64| clock.ns(ticks as u64);
    ContentionSeen {
        wait_ns: ns(trace.wait).into(),
        hold_ns: ns(trace.hold).into(),
        think_ns: ns(trace.think).into(),
        queue_on_entry: trace.queue_on_entry.into(),
        queue_max: trace.queue_max,
        handoffs: trace.handoffs.into(),
        handoff_ns: ns(trace.handoff).into(),
        starved_ns: ns(trace.longest_wait).into(),
        queue_told: None,
    }
}
