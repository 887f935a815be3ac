//! A cell that a program of another language measures in its own process.
//!
//! Nothing of this process runs during a block. The program's threads sleep between its blocks,
//! which is checked: a program that computed then would disturb all others.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use threadtoll_machine::disturbance::account;
use threadtoll_record::{BlockKind, Cell, PlannedCell, StrikeReason};

use crate::LabError;
use crate::backend::OpenCell;
use crate::foreign::program::{Fault, Patience, Program, ProgramFile, Request, Usage};
use crate::queue::enough_memory;
use crate::samples::{BlockSamples, Counters, Samples, Told};

use super::environment::Environment;
use super::{GroupState, Opening, RealCell};

/// Preparations up to this long are repeated before each round; a runtime that compiles would spend
/// the time on nothing else.
const SHORT: Duration = Duration::from_millis(100);
/// Share of a CPU that a program may use between its blocks, over this many of the last times:
/// runtimes compile and collect garbage for a while after they have warmed up.
const REST_SHARE: f64 = 0.5;
const RESTS: usize = 12;

pub(super) struct Elsewhere {
    planned: PlannedCell,
    program: Program,
    request: Request,
    warm_up_ms: Option<u64>,
    prepared_in: Duration,
    rest: Rest,
    environment: Environment,
}

impl Elsewhere {
    /// Starts and prepares the program.
    pub(super) fn open(
        opening: Opening<'_>,
        file: &ProgramFile,
        seed: u64,
    ) -> Result<Self, LabError> {
        let Opening { planned, allowed, patience, .. } = opening;
        let failed = |fault: Fault| failure(&planned.cell, fault);
        let request = Request::of(planned, seed)
            .ok_or_else(|| LabError::UnknownQueue(planned.cell.label()))?;
        if let Some(depth) = planned.cell.queue().and_then(|queue| queue.load.depth) {
            let refused =
                |reason| LabError::Unavailable { mechanism: planned.cell.label(), reason };
            enough_memory(depth.get()).map_err(refused)?;
        }
        let environment = Environment::start(&planned.cell, allowed)?;
        let mut program = file.start(request.roams(), Patience::of(patience)).map_err(failed)?;
        let begun = Instant::now();
        let warm_up_ms = program.prepare(&request).map_err(failed)?;
        let rest = Rest::from_now(program.pid());
        Ok(Elsewhere {
            planned: planned.clone(),
            program,
            request,
            warm_up_ms,
            prepared_in: begun.elapsed(),
            rest,
            environment,
        })
    }

    fn failed<T>(&self, result: Result<T, Fault>) -> Result<T, LabError> {
        result.map_err(|fault| failure(&self.planned.cell, fault))
    }
}

/// A program's use of the CPU between its blocks.
struct Rest {
    /// When it was last measured or prepared, with its CPU time then.
    since: (Instant, u64),
    /// The last times between its blocks, in seconds, with its CPU time in each.
    last: VecDeque<[f64; 2]>,
}

impl Rest {
    fn from_now(pid: Pid) -> Self {
        Rest { since: (Instant::now(), Usage::of(pid).cpu_ns), last: VecDeque::new() }
    }

    fn begin(&mut self, cpu_ns: u64) {
        self.since = (Instant::now(), cpu_ns);
    }

    /// Gives up a program that computes.
    fn end(&mut self, cpu_ns: u64) -> Result<(), Fault> {
        let (since, before_ns) = self.since;
        let used_s = cpu_ns.saturating_sub(before_ns) as f64 / 1e9;
        self.last.push_back([since.elapsed().as_secs_f64(), used_s]);
        if self.last.len() <= RESTS {
            return Ok(());
        }
        self.last.pop_front();
        let sum = |of: usize| self.last.iter().map(|rest| rest[of]).sum::<f64>();
        let share = sum(1) / sum(0).max(1e-9);
        if share <= REST_SHARE {
            return Ok(());
        }
        let percent = share * 100.0;
        Err(Fault {
            reason: StrikeReason::Crashed,
            clause: format!("it used {percent:.0}% of a CPU between its blocks"),
        })
    }
}

fn failure(cell: &Cell, fault: Fault) -> LabError {
    LabError::Row {
        name: cell.name().to_string(),
        placement: cell.placement.to_string(),
        reason: fault.reason,
        clause: fault.clause,
    }
}

impl RealCell for Elsewhere {
    fn prepare(&mut self, _: &mut GroupState) -> Result<(), LabError> {
        Ok(())
    }
}

impl OpenCell for Elsewhere {
    fn reopen(&mut self) -> Result<(), LabError> {
        if self.prepared_in > SHORT {
            return Ok(());
        }
        let begun = Instant::now();
        let prepared = self.program.prepare(&self.request);
        self.warm_up_ms = self.failed(prepared)?;
        self.prepared_in = begun.elapsed();
        self.rest.begin(Usage::of(self.program.pid()).cpu_ns);
        Ok(())
    }

    fn block(&mut self, kind: BlockKind) -> Result<BlockSamples, LabError> {
        let budget = &self.planned.budget;
        let length_ns = match kind {
            BlockKind::Stretch => budget.stretch_ns,
            BlockKind::Stamped => budget.stamped_ns,
        };
        let system_before = self.environment.begin()?;
        let before = Usage::of(self.program.pid());
        let rested = self.rest.end(before.cpu_ns);
        let answer = rested.and_then(|()| self.program.block(&self.request, length_ns));
        let after = Usage::of(self.program.pid());
        let system = self.environment.end(&system_before);
        self.rest.begin(after.cpu_ns);
        let used = answer
            .and_then(|(answer, settling_ns)| Ok((answer, after.since(&before, settling_ns)?)));
        let (answer, used) = self.failed(used)?;
        let (cost, disturbance) = account(&[used], system, None);
        let counters = Counters {
            cost,
            operations: answer.operations(),
            disturbance,
            // Its stamps do not come in order, so gaps cannot be told.
            spins: false,
            // A runtime touches memory as it goes.
            grows: true,
        };
        let told = Told { answer, warm_up_ms: self.warm_up_ms };
        Ok(BlockSamples { counters, samples: Samples::Told(told) })
    }
}
