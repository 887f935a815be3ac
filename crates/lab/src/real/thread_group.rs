//! A cell whose threads are a thread group.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use threadtoll_machine::IdleProbe;
use threadtoll_machine::clock::Clock;
use threadtoll_machine::disturbance::{SystemCounters, ThreadCounters, ThreadProbe, account};
use threadtoll_record::{BlockKind, IdleBlock, Placement, PlannedCell};

use crate::LabError;
use crate::backend::OpenCell;
use crate::error::Make;
use crate::samples::{BlockSamples, Counters, Samples};
use crate::thread_group::{BlockLogs, BlockSpec, Log, Role, ThreadGroup, ThreadGroupProgram};

use super::displacement::Displacement;
use super::environment::Environment;
use super::pinning::Pinning;
use super::pool::{Pool, Setup, Worker, receive_within};
use super::{GroupState, Opening, RealCell};

struct ThreadReport {
    log: Log,
    counters: ThreadCounters,
}

type Threads = Pool<BlockSpec, ThreadReport>;

/// Everything needed to start the threads of a group, as often as required.
struct ThreadGroupStart {
    clock: Clock,
    name: String,
    make: Make<ThreadGroup>,
    placement: Placement,
    pinning: Pinning,
}

impl ThreadGroupStart {
    /// Starts the threads and waits until everything is created, touched and placed. The thread of
    /// the last role, usually the receiver, creates all roles, so that the queue's memory is local
    /// to it.
    fn start(&self, patience: Duration) -> Result<Threads, LabError> {
        let ThreadGroupStart { clock, name, make, placement, pinning } = self;
        let clock = *clock;
        let together = Arc::new(Barrier::new(pinning.others.len() + 1));
        let (give, take) = channel::<ThreadGroup>();
        let (of, entered, make) = (name.clone(), Arc::clone(&together), Arc::clone(make));
        let last = Worker::start("receive", pinning.last.clone(), move |setup| {
            let _displacement = Displacement::random();
            let mut roles = match make() {
                Err(reason) => {
                    drop(give);
                    return setup.fail(LabError::Unavailable { mechanism: of, reason });
                }
                Ok(roles) => roles,
            };
            let Some(own) = roles.pop() else { unreachable!("a group has roles") };
            let _ = give.send(roles);
            serve(own, setup, &entered, clock);
        })?;
        let mut pool = Pool::new(name, *placement);
        // There are none if the last thread failed, which it reports itself.
        let roles = receive_within(&take, patience).unwrap_or_default();
        for (role, cpus) in roles.into_iter().zip(&pinning.others) {
            let together = Arc::clone(&together);
            pool.add(Worker::start("send", cpus.clone(), move |setup| {
                serve(role, setup, &together, clock);
            }))?;
        }
        pool.add(Ok(last))?;
        pool.ready(patience)?;
        Ok(pool)
    }
}

fn serve(
    mut role: Box<dyn Role>,
    setup: Setup<BlockSpec, ThreadReport>,
    together: &Barrier,
    clock: Clock,
) {
    role.enter();
    together.wait();
    let probe = ThreadProbe::new();
    setup.serve(|block| {
        role.prepare(block, &clock);
        together.wait();
        let before = probe.sample();
        let log = role.work(&clock);
        let after = probe.sample_after();
        ThreadReport { log, counters: after.delta(&before) }
    });
}

pub(super) struct ThreadGroupCell {
    planned: PlannedCell,
    clock: Clock,
    program: ThreadGroupProgram,
    start: ThreadGroupStart,
    threads: Threads,
    environment: Environment,
    /// Idle states of the receiver's CPU, if messages are rare and its CPU is known.
    idle: Option<IdleProbe>,
    clock_bound_ns: Option<f64>,
    start_ticks: u64,
    patience: Duration,
}

impl ThreadGroupCell {
    pub(super) fn open(
        opening: Opening<'_>,
        program: ThreadGroupProgram,
    ) -> Result<Self, LabError> {
        let Opening { clock, planned, allowed, patience, start_ticks, .. } = opening;
        let cell = &planned.cell;
        let start = ThreadGroupStart {
            clock: *clock,
            name: cell.name().to_string(),
            make: Arc::clone(&program.make),
            placement: cell.placement,
            pinning: Pinning::of(cell.placement, &cell.cpus, program.threads - 1),
        };
        let threads = start.start(patience)?;
        let rare = cell.queue().is_some_and(|queue| queue.load.is_rare());
        let idle = match start.pinning.last.as_slice() {
            [cpu] if rare => Some(IdleProbe::new(Path::new("/sys"), *cpu)),
            _ => None,
        };
        Ok(ThreadGroupCell {
            planned: planned.clone(),
            clock: *clock,
            program,
            start,
            threads,
            environment: Environment::start(cell, allowed)?,
            idle,
            clock_bound_ns: None,
            start_ticks,
            patience,
        })
    }

    fn samples(
        &self,
        reports: Vec<ThreadReport>,
        system: SystemCounters,
        idle: Option<IdleBlock>,
    ) -> Result<BlockSamples, LabError> {
        let counters: Vec<ThreadCounters> = reports.iter().map(|report| report.counters).collect();
        let mut logs: Vec<Log> = reports.into_iter().map(|report| report.log).collect();
        if logs.iter().any(|log| log.wrong != 0) {
            return Err(self.threads.wrong_message());
        }
        for time in logs.iter_mut().flat_map(|log| &mut log.times).flatten() {
            *time = self.clock.ps(time.saturating_sub(self.start_ticks));
        }
        let block_logs = BlockLogs {
            logs,
            cpu_ns: counters.iter().map(|counters| counters.cpu_ns).collect(),
            cpu: self.start.pinning.last.first().copied().unwrap_or(0),
            clock_bound_ns: self.clock_bound_ns,
        };
        let Some((mut samples, operations)) = (self.program.read)(block_logs) else {
            return Err(self.threads.wrong_message());
        };
        if let Samples::OpenLoop(deliveries) = &mut samples {
            deliveries.idle = idle;
        }
        let (cost, disturbance) = account(&counters, system, None);
        // Some threads wait until a message is due, and stamps cannot distinguish that from a gap.
        let spins = false;
        let grows = self.program.grows;
        let counters = Counters { cost, operations, disturbance, spins, grows };
        Ok(BlockSamples { counters, samples })
    }
}

impl RealCell for ThreadGroupCell {
    fn prepare(&mut self, group: &mut GroupState) -> Result<(), LabError> {
        if let &[a, b] = self.planned.cell.cpus.as_slice() {
            self.clock_bound_ns = group.bounds_ns.get(&(a, b)).copied();
        }
        Ok(())
    }
}

impl OpenCell for ThreadGroupCell {
    fn reopen(&mut self) -> Result<(), LabError> {
        self.threads = self.start.start(self.patience)?;
        Ok(())
    }

    fn block(&mut self, kind: BlockKind) -> Result<BlockSamples, LabError> {
        let budget = &self.planned.budget;
        let length_ns = match kind {
            BlockKind::Stretch => budget.stretch_ns,
            BlockKind::Stamped => budget.stamped_ns,
        };
        let block =
            BlockSpec { length_ns: length_ns as f64, seed: RandomState::new().hash_one(()) };
        // Includes the time to drain a queue that has filled up during the block.
        let patience = self.patience + Duration::from_nanos(length_ns.saturating_mul(10));
        let roles = self.program.threads;
        let before = self.environment.begin()?;
        let asleep = self.idle.as_ref().and_then(IdleProbe::sample);
        let reports = self.threads.run(std::iter::repeat_n(block, roles), patience);
        let idle = self
            .idle
            .as_ref()
            .zip(asleep)
            .and_then(|(probe, asleep)| Some(probe.between(&asleep, &probe.sample()?)));
        let system = self.environment.end(&before);
        self.samples(reports?, system, idle)
    }
}
