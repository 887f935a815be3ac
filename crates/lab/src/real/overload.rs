//! A cell whose threads serve callers who arrive from outside.

use std::sync::Arc;
use std::time::{Duration, Instant};

use threadtoll_machine::disturbance::ThreadCounters;
use threadtoll_model::overload::{Caller, Fate, Phases, outcome};
use threadtoll_record::{BlockKind, ContentionBlock, Histogram, LockSubject, Overload};

use crate::LabError;
use crate::backend::OpenCell;
use crate::contention::overload::door::{Answered, Door, End};
use crate::contention::overload::{OverloadCalibration, block, due_ns, phases};
use crate::lock::LockSpec;
use crate::samples::{Acquisitions, BlockSamples, Counters, Samples, Waited};

use super::lock_threads::{LockThreads, Task, ThreadReport, Window, cpus_by_thread};
use super::{CellContext, GroupState, RealCell, counters};

/// A block may take this much longer if each hold takes longer than intended.
const LONGER: u32 = 20;

pub(super) struct OverloadedCell {
    context: CellContext,
    subject: LockSubject,
    overload: Overload,
    lock: LockSpec,
    threads: LockThreads,
    phases: Phases,
    /// Hold time in units of work.
    hold: u64,
    calibration: Option<OverloadCalibration>,
    /// Number of blocks so far: each has other arrivals.
    blocks: u64,
}

impl OverloadedCell {
    pub(super) fn open(
        context: CellContext,
        lock: LockSpec,
        subject: LockSubject,
        overload: Overload,
    ) -> Result<Self, LabError> {
        let cell = &context.planned.cell;
        let places = cpus_by_thread(cell.placement, &cell.cpus, subject.threads);
        let (clock, patience) = (&context.clock, context.patience);
        let threads =
            LockThreads::start(clock, &subject.lock, &lock, subject.work, &places, patience)?;
        let phases = phases(subject.hold_ns, &overload);
        Ok(OverloadedCell {
            context,
            subject,
            overload,
            lock,
            threads,
            phases,
            hold: 0,
            calibration: None,
            blocks: 0,
        })
    }

    fn attempt(&mut self) -> Result<(Counters, Acquisitions), LabError> {
        let due_ns = due_ns(&self.phases, self.blocks);
        let clock = self.context.clock;
        let count = self.threads.count();
        let patience = self.overload.gives_up.then_some(self.overload.deadline_ns);
        let patience = patience.map(|ns| clock.ticks(ns as f64));
        let before = self.context.environment.begin()?;
        let window = self.threads.window_for(count, 0, self.phases.length_ns() as u64);
        let due = due_ns.iter().map(|ns| window.begin + clock.ticks(*ns)).collect();
        let door = Door::new(due, self.overload.bound, patience, self.hold);
        let door = if self.overload.by_lock { door.bounded_by_lock() } else { door };
        let tasks = vec![Task::Callers(Arc::new(door)); count];
        let longer = Duration::from_nanos(self.subject.hold_ns) * LONGER * due_ns.len() as u32;
        let reports = self.threads.run_on(0..count, tasks, window, longer);
        let system = self.context.environment.end(&before);
        let reports = reports?;
        let of_threads: Vec<ThreadCounters> =
            reports.iter().map(|report| report.counters).collect();
        let acquisitions = self.acquisitions(&reports, &due_ns, window);
        let all = acquisitions.block.acquisitions.iter().map(|count| count.get()).sum();
        Ok((counters(&of_threads, system, None, all), acquisitions))
    }

    fn acquisitions(
        &self,
        reports: &[ThreadReport],
        due_ns: &[f64],
        window: Window,
    ) -> Acquisitions {
        let clock = &self.context.clock;
        let since = |ticks: u64| clock.ns(ticks.saturating_sub(window.begin));
        let mut lateness = Histogram::new();
        let (mut callers, mut waits) = (Vec::new(), Vec::new());
        let (mut held_ns, mut holds, mut end_ns) = (0.0, 0, self.phases.length_ns());
        let cpus = &self.context.planned.cell.cpus;
        let answers = reports.iter().enumerate().flat_map(|(thread, report)| {
            let cpu = cpus[thread % cpus.len()];
            report.answered.iter().map(move |answered| (cpu, answered))
        });
        for (cpu, Answered { caller, in_front, turned_at, end }) in answers {
            let due_ns = due_ns[*caller];
            if !in_front {
                lateness.record_ps(ps(since(*turned_at) - due_ns));
            }
            let fate = match *end {
                End::Refused => Fate::Refused,
                End::GaveUp | End::Acquired { works: false, .. } => Fate::GaveUp,
                End::Acquired { at, released_at, works: true } => {
                    held_ns += clock.ns(released_at.saturating_sub(at));
                    holds += 1;
                    end_ns = end_ns.max(since(released_at));
                    let started = at.saturating_sub(self.context.start_ticks);
                    let at_s = clock.ns(started) / 1e9;
                    waits.push(Waited { ps: ps(since(at) - due_ns), at_s, cpu });
                    Fate::Served(since(at))
                }
            };
            callers.push(Caller { due_ns, in_front: *in_front, fate });
        }
        let outcome = outcome(&callers, &self.phases, self.overload.deadline_ns as f64);
        let hold_ns = held_ns / f64::from(holds.max(1));
        let acquired = |report: &ThreadReport| {
            let acquired = |one: &&Answered| matches!(one.end, End::Acquired { .. });
            (report.answered.iter().filter(acquired).count() as u64).into()
        };
        let block = ContentionBlock {
            work: (f64::from(holds) * self.hold as f64).into(),
            acquisitions: reports.iter().map(acquired).collect(),
            overload: Some(Box::new(block(&outcome, &self.phases, hold_ns, lateness))),
            ..ContentionBlock::default()
        };
        Acquisitions { block, elapsed_ns: end_ns as u64, waits, excerpt: None }
    }
}

/// Times before a caller was due count as zero: the clocks of two CPUs may disagree by some
/// nanoseconds.
fn ps(ns: f64) -> u64 {
    (ns.max(0.0) * 1000.0) as u64
}

impl RealCell for OverloadedCell {
    fn surveys(&self) -> bool {
        true
    }

    fn survey(&mut self, group: &mut GroupState) -> Result<(), LabError> {
        let cell = &self.context.planned.cell;
        (self.hold, self.calibration) = group.calibrator.turns(cell, &self.subject, &self.lock)?;
        Ok(())
    }

    fn prepare(&mut self, _: &mut GroupState) -> Result<(), LabError> {
        Ok(())
    }
}

impl OpenCell for OverloadedCell {
    fn overload_calibration(&self) -> Option<OverloadCalibration> {
        self.calibration.clone()
    }

    fn block(&mut self, _: BlockKind) -> Result<BlockSamples, LabError> {
        let deadline = Instant::now() + self.threads.patience();
        loop {
            let (counters, acquisitions) = self.attempt()?;
            // Without a single wait, the machine was busy with other work.
            if !acquisitions.waits.is_empty() {
                self.blocks += 1;
                let samples = Samples::Contention(acquisitions);
                return Ok(BlockSamples { counters, samples });
            }
            if Instant::now() >= deadline {
                return Err(self.threads.stuck());
            }
        }
    }
}
