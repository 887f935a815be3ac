//! The real machine. Its threads run one block at a time, and sleep between blocks.

mod agreement;
mod background_load;
mod buffers;
mod calibrate;
mod capabilities;
pub mod check;
mod contention;
mod displacement;
mod elsewhere;
mod environment;
mod exchange;
mod keep_awake;
mod lock_threads;
mod neighbour;
mod overload;
mod pair;
mod passes;
mod pinning;
mod pool;
mod start;
mod stream;
#[cfg(test)]
mod tests;
mod thread_group;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

use threadtoll_machine::clock::{self, Clock};
use threadtoll_machine::disturbance::{SystemCounters, ThreadCounters, account};
use threadtoll_record::{Cell, ClockFacts, Machine, Placement, PlannedCell};

use crate::backend::{At, Backend, Now, OpenCell};
use crate::budget::PATIENCE;
use crate::contention::calibration_schedule::PASSES;
use crate::plan::estimate_ns;
use crate::program::Program;
use crate::samples::Counters;
use crate::{LabError, Registry};

pub use capabilities::missing_capabilities;

use calibrate::Calibrator;
use contention::Contention;
use elsewhere::Elsewhere;
use environment::Environment;
use exchange::Exchange;
use overload::OverloadedCell;
use stream::Stream;
use thread_group::ThreadGroupCell;

/// Minimum length of a stretch, as a multiple of the cost of its stamp.
const STAMP_SHARE: f64 = 100.0;
/// Warm-up before a block, in which both ends wake up and reach full speed.
const WARM_UP_NS: f64 = 500_000.0;
/// Warm-up for free placement: longer than a scheduler time slice, so that threads can settle.
const WARM_UP_FREE_NS: f64 = 5_000_000.0;
const PILOT_NS: f64 = 1_000_000.0;
/// Maximum length of a block, even if more samples were requested.
const MAX_BLOCK_NS: f64 = 3.6e12;

/// Time limit for a step of a share, on top of the time that its whole group takes.
const SHARE_PATIENCE: Duration = Duration::from_secs(120);

/// Maximum time between two messages of a process that measures these cells and does not hang. The
/// process itself notices much earlier if a thread hangs in a block.
pub fn longest_silence(cells: &[PlannedCell]) -> Duration {
    let group = Duration::from_nanos(estimate_ns([cells], 1));
    let counted = cells.iter().any(|planned| planned.budget.stamped_count.is_some());
    // If samples were requested, a block may take up to `MAX_BLOCK_NS`, and counts as hung only
    // after six times that.
    let longest = if counted { Duration::from_nanos(6 * MAX_BLOCK_NS as u64) } else { group };
    SHARE_PATIENCE + group.max(longest)
}

/// The real machine.
#[derive(Debug)]
pub struct RealBackend {
    clock: Clock,
    facts: ClockFacts,
    patience: Duration,
    start: Instant,
    start_ticks: u64,
    registry: Registry,
}

impl RealBackend {
    /// Creates a backend that measures with this clock. `facts` come from the clock's validation.
    pub fn new(clock: Clock, facts: ClockFacts) -> Self {
        RealBackend {
            clock,
            facts,
            patience: PATIENCE,
            start: Instant::now(),
            start_ticks: clock.stamp(),
            registry: Registry::default(),
        }
    }

    /// Continues a run that has lasted this long.
    pub fn since(self, seconds: f64) -> Self {
        let ticks = self.clock.ticks(seconds * 1e9);
        let start = self.start.checked_sub(Duration::from_secs_f64(seconds));
        RealBackend {
            start: start.unwrap_or(self.start),
            start_ticks: self.start_ticks.saturating_sub(ticks),
            ..self
        }
    }

    /// Gives up on a cell if it makes no progress for the length of its block plus this time.
    pub fn with_patience(self, patience: Duration) -> Self {
        RealBackend { patience, ..self }
    }

    /// Looks up mechanisms, queues and locks in this registry.
    pub fn with_registry(self, registry: Registry) -> Self {
        RealBackend { registry, ..self }
    }
}

impl Backend for RealBackend {
    fn now(&mut self) -> Now {
        Now { unix_ns: clock::unix_ns(), since_start_s: self.start.elapsed().as_secs_f64() }
    }

    fn open(
        &mut self,
        machine: &Machine,
        group: &[PlannedCell],
        at: &mut At<'_>,
    ) -> Result<Vec<Box<dyn OpenCell>>, LabError> {
        let mut group_state = GroupState {
            bounds_ns: self.clock_bounds(group)?,
            calibrator: Calibrator::new(&self.clock, self.patience),
        };
        let programs: Vec<Program> = group
            .iter()
            .map(|planned| self.registry.program(planned))
            .collect::<Result<_, LabError>>()?;
        // Programs start before all threads: starting a program forks this process, and the
        // program's runtime then compiles in the background. All threads start before any
        // calibration.
        let mut cells: Vec<(usize, Box<dyn RealCell>)> = Vec::new();
        let (elsewhere, here): (Vec<_>, Vec<_>) = programs
            .into_iter()
            .enumerate()
            .partition(|(_, program)| matches!(program, Program::Elsewhere { .. }));
        for (index, program) in elsewhere.into_iter().chain(here) {
            at(index)?;
            cells.push((index, self.open_cell(machine, &group[index], program)?));
        }
        cells.sort_by_key(|(index, _)| *index);
        let mut cells: Vec<Box<dyn RealCell>> = cells.into_iter().map(|(_, cell)| cell).collect();
        for _ in 0..PASSES {
            group_state.calibrator.begin_pass();
            for (index, cell) in cells.iter_mut().enumerate().filter(|(_, cell)| cell.surveys()) {
                at(index)?;
                cell.survey(&mut group_state)?;
            }
        }
        for (index, cell) in cells.iter_mut().enumerate() {
            at(index)?;
            cell.prepare(&mut group_state)?;
        }
        Ok(cells.into_iter().map(|cell| cell as Box<dyn OpenCell>).collect())
    }

    fn wait(&mut self, ns: u64) {
        std::thread::sleep(Duration::from_nanos(ns));
    }

    fn recheck(&mut self) -> Result<(), LabError> {
        self.clock
            .recheck(&self.facts)
            .map(|_| ())
            .map_err(|refused| LabError::Clock(refused.to_string()))
    }
}

impl RealBackend {
    fn clock_bounds(&self, group: &[PlannedCell]) -> Result<HashMap<(u32, u32), f64>, LabError> {
        let mut bounds_ns = HashMap::new();
        for planned in group {
            if let (Placement::Pinned, &[a, b]) =
                (planned.cell.placement, planned.cell.cpus.as_slice())
                && let Entry::Vacant(entry) = bounds_ns.entry((a, b))
            {
                entry.insert(agreement::bound_ns(&self.clock, a, b)?);
            }
        }
        Ok(bounds_ns)
    }

    fn open_cell(
        &self,
        machine: &Machine,
        planned: &PlannedCell,
        program: Program,
    ) -> Result<Box<dyn RealCell>, LabError> {
        let context = CellContext {
            clock: self.clock,
            planned: planned.clone(),
            environment: Environment::start(&planned.cell, &machine.allowed)?,
            stamp_ns: self.facts.step_ns.get() + self.facts.read_ns.get(),
            patience: self.patience,
            start_ticks: self.start_ticks,
        };
        Ok(match program {
            Program::Exchange { make, class } => Box::new(Exchange::open(context, make, class)?),
            Program::Stream(program) => Box::new(Stream::open(context, program)?),
            Program::ThreadGroup(program) => Box::new(ThreadGroupCell::open(context, program)?),
            Program::Contention(spec, subject) => match subject.overload {
                Some(overload) => {
                    Box::new(OverloadedCell::open(context, *spec, subject, overload)?)
                }
                None => Box::new(Contention::open(context, *spec, subject)?),
            },
            Program::Elsewhere { file, .. } => Box::new(Elsewhere::open(context, &file)?),
        })
    }
}

trait RealCell: OpenCell {
    /// True if predictions for the cell need calibration runs.
    fn surveys(&self) -> bool {
        false
    }

    /// Called once per calibration pass, to measure the inputs of the models.
    fn survey(&mut self, _: &mut GroupState) -> Result<(), LabError> {
        Ok(())
    }

    fn prepare(&mut self, group: &mut GroupState) -> Result<(), LabError>;
}

struct GroupState {
    /// For each pair of CPUs, the bound on their clocks' disagreement.
    bounds_ns: HashMap<(u32, u32), f64>,
    calibrator: Calibrator,
}

impl GroupState {
    fn bound_ns(&self, cell: &Cell) -> Option<f64> {
        let &[a, b] = cell.cpus.as_slice() else { return None };
        self.bounds_ns.get(&(a, b)).copied()
    }
}

struct CellContext {
    clock: Clock,
    planned: PlannedCell,
    environment: Environment,
    /// Time that a stamp takes plus the step of the clock.
    stamp_ns: f64,
    patience: Duration,
    start_ticks: u64,
}

impl CellContext {
    fn warm_up_ns(&self) -> f64 {
        match self.planned.cell.placement {
            Placement::Free => WARM_UP_FREE_NS,
            Placement::Pinned | Placement::SameCpu => WARM_UP_NS,
        }
    }
}

/// `gap_ns` is the time that an end lost while it was spinning; `None` if no end spins.
fn counters(
    threads: &[ThreadCounters],
    system: SystemCounters,
    gap_ns: Option<u64>,
    operations: u64,
) -> Counters {
    let (cost, disturbance) = account(threads, system, gap_ns);
    Counters { cost, operations, disturbance, spins: gap_ns.is_some(), grows: false }
}

/// Minimum number of round trips per stretch for the cost of a stamp to be negligible.
fn per_stretch(stamp_ns: f64, round_trip_ns: f64) -> u64 {
    (STAMP_SHARE * stamp_ns / round_trip_ns).ceil().max(1.0) as u64
}
