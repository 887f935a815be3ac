//! A cell whose threads each have a role of their own (a thread group).

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use threadtoll_machine::IdleProbe;
use threadtoll_machine::disturbance::ThreadCounters;
use threadtoll_record::BlockKind;

use crate::LabError;
use crate::backend::OpenCell;
use crate::samples::{BlockSamples, Counters, Samples};
use crate::thread_group::{BlockLogs, BlockSpec, Log, ThreadGroupProgram};

use super::pinning::Pinning;
use super::start::{Start, Threads};
use super::{CellContext, GroupState, RealCell, counters};

pub(super) struct ThreadGroupCell {
    context: CellContext,
    program: ThreadGroupProgram,
    start: Start<BlockSpec, Log>,
    threads: Threads<BlockSpec, Log>,
    /// Idle states of the receiver's CPU, if messages are rare and its CPU is known.
    idle: Option<IdleProbe>,
    clock_bound_ns: Option<f64>,
}

impl ThreadGroupCell {
    pub(super) fn open(
        context: CellContext,
        program: ThreadGroupProgram,
    ) -> Result<Self, LabError> {
        let cell = &context.planned.cell;
        let start = Start {
            clock: context.clock,
            name: cell.name().to_string(),
            placement: cell.placement,
            pinning: Pinning::of(cell.placement, &cell.cpus, program.threads - 1),
            make: Arc::clone(&program.make),
            meet: true,
        };
        let threads = start.start(context.patience)?;
        let rare = cell.queue().is_some_and(|queue| queue.load.is_rare());
        let idle = match start.pinning.last.as_slice() {
            [cpu] if rare => Some(IdleProbe::new(Path::new("/sys"), *cpu)),
            _ => None,
        };
        Ok(ThreadGroupCell { context, program, start, threads, idle, clock_bound_ns: None })
    }
}

impl RealCell for ThreadGroupCell {
    fn prepare(&mut self, group: &mut GroupState) -> Result<(), LabError> {
        self.clock_bound_ns = group.bound_ns(&self.context.planned.cell);
        Ok(())
    }
}

impl OpenCell for ThreadGroupCell {
    fn reopen(&mut self) -> Result<(), LabError> {
        self.threads = self.start.start(self.context.patience)?;
        Ok(())
    }

    fn block(&mut self, kind: BlockKind) -> Result<BlockSamples, LabError> {
        let CellContext { planned, clock, environment, patience, start_ticks, .. } =
            &mut self.context;
        let length_ns = planned.budget.length_ns(kind);
        let block =
            BlockSpec { length_ns: length_ns as f64, seed: RandomState::new().hash_one(()) };
        // The time limit includes time to drain a queue that has filled up during the block.
        let patience = *patience + Duration::from_nanos(length_ns.saturating_mul(10));
        let before = environment.begin()?;
        let asleep = self.idle.as_ref().and_then(IdleProbe::sample);
        let reports = self.threads.run(std::iter::repeat_n(block, self.program.threads), patience);
        let idle = self
            .idle
            .as_ref()
            .zip(asleep)
            .and_then(|(probe, asleep)| Some(probe.between(&asleep, &probe.sample()?)));
        let system = environment.end(&before);
        let (mut logs, threads): (Vec<Log>, Vec<ThreadCounters>) = reports?.into_iter().unzip();
        if logs.iter().any(|log| log.wrong != 0) {
            return Err(self.threads.wrong_message());
        }
        for time in logs.iter_mut().flat_map(|log| &mut log.times).flatten() {
            *time = clock.ps(time.saturating_sub(*start_ticks));
        }
        let block_logs = BlockLogs {
            logs,
            cpu_ns: threads.iter().map(|counters| counters.cpu_ns).collect(),
            cpu: self.start.pinning.last.first().copied().unwrap_or(0),
            clock_bound_ns: self.clock_bound_ns,
        };
        let Some((mut samples, operations)) = (self.program.read)(block_logs) else {
            return Err(self.threads.wrong_message());
        };
        if let Samples::OpenLoop(deliveries) = &mut samples {
            deliveries.idle = idle;
        }
        // Gaps are not reported: a thread that waits until a message is due looks as if it had a
        // gap.
        let counters = counters(&threads, system, None, operations);
        Ok(BlockSamples { counters: Counters { grows: self.program.grows, ..counters }, samples })
    }
}
