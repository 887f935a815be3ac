//! Measures a plan group by group, with the cells of each round in random order. Each block is
//! written to disk as soon as it ends.
//!
//! All blocks of a process share its addresses and pages, so several processes may each measure a
//! share of every group's rounds. This process measures the first share or none.
//!
//! If a cell fails, its whole row is given up ([`Strike`]), and the group is measured again without
//! that row. If the reference fails, the run ends, because every figure depends on the reference.

mod share;

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use threadtoll_model::queue_trace::Excerpt;
use threadtoll_record::file::{Appender, GroupState, Results};
use threadtoll_record::{
    Block, BlockFigures, CellPrediction, Count, Line, LockSubject, Machine, Plan, PlannedCell,
    Record, Strike, Timeline, fold, timestamp,
};

use crate::LabError;
use crate::backend::{Backend, OpenCell};
use crate::block::{History, Position, to_block};
use crate::contention::overload;
use crate::contention::predict::{self, CellAttempt};
use crate::plan::{remaining_ns, wait_ns};

pub use share::{Launcher, Peers, Task, serve_share};

/// Interval at which a wait checks `stop`.
const WAIT_STEP_NS: u64 = 100_000_000;

/// Outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All groups were measured, except those above saturation.
    Complete,
    /// Stopped on request; finished blocks are kept.
    Interrupted,
}

/// Receives a run's progress.
pub trait Observer {
    /// A group begins; `remaining_ns` is the estimated time for the rest of the run, including this
    /// group.
    fn group(&mut self, index: usize, of: usize, cells: &[PlannedCell], remaining_ns: u64);
    /// The next group must wait for another `left_ns`; `remaining_ns` is the estimated time for the
    /// rest of the run, including this wait.
    fn waits(&mut self, _left_ns: u64, _remaining_ns: u64) {}
    /// A block ended; the group has `done` of `of` blocks.
    fn block(&mut self, cell: &PlannedCell, done: u64, of: u64);
    /// A record is complete.
    fn record(&mut self, record: &Record);
    /// A row was given up.
    fn struck(&mut self, _plan: &Plan, _strike: &Strike) {}
}

/// Part of a group that one process measures, in one attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Index of the group in the plan.
    pub group: usize,
    /// Indices of the group's cells that were not given up, in ascending order.
    pub cells: Vec<usize>,
    /// Number of attempts at the group, including this one.
    pub attempt: u32,
    /// Number of the process, from 0.
    pub process: u32,
    /// Time since the run began, in seconds.
    pub since_start_s: f64,
}

/// Progress of a share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// The code of the cell with this index runs next.
    At(usize),
    /// A line for the results file.
    Line(Line),
}

/// Callback that receives each step of a share.
pub type Take<'a> = dyn FnMut(Step) -> Result<(), LabError> + 'a;

/// Starts other processes that measure shares.
pub trait Launch {
    /// Returns `true` if other processes measure every share, and this process measures none.
    fn every_share(&self) -> bool {
        false
    }

    /// Measures a share in another process, which ends early if the run is told to stop.
    ///
    /// # Errors
    ///
    /// The errors of [`measure_share`], or an error of the process.
    fn launch(
        &mut self,
        machine: &Machine,
        plan: &Plan,
        share: &Share,
        take: &mut Take<'_>,
    ) -> Result<(), LabError>;
}

impl<F> Launch for F
where
    F: FnMut(&Machine, &Plan, &Share, &mut Take<'_>) -> Result<(), LabError>,
{
    fn launch(
        &mut self,
        machine: &Machine,
        plan: &Plan,
        share: &Share,
        take: &mut Take<'_>,
    ) -> Result<(), LabError> {
        self(machine, plan, share, take)
    }
}

/// Measures every incomplete group of `results`, in order. A group is left out if the records of
/// earlier groups show that it is above saturation.
///
/// Blocks and records are appended to `file` as soon as they are available. `stop` is checked after
/// each block, and several times a second while the run waits to repeat a group.
///
/// # Errors
///
/// If a reference fails, the clock fails its recheck, another process fails for a reason that does
/// not concern a row, or the file cannot be written. Finished blocks stay in `results` and in the
/// file.
///
/// Also if a row fails in this process: threads that the row leaves behind would disturb later
/// measurements. The row is given up, so a resumed run continues without it.
pub fn run(
    backend: &mut dyn Backend,
    launch: &mut dyn Launch,
    results: &mut Results,
    file: &mut Option<Appender>,
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    let count = results.plan.groups.len();
    for index in 0..count {
        // A group is repeated if one of its rows was given up.
        while !results.complete_groups()[index] {
            if stop.load(Ordering::Relaxed)
                || wait(backend, results, index, observer, stop) == Outcome::Interrupted
            {
                return Ok(Outcome::Interrupted);
            }
            let remaining = remaining_ns(results, backend.now().unix_ns);
            observer.group(index, count, &results.remaining_cells(index), remaining);
            let outcome = measure_group(backend, launch, results, index, file, observer, stop)?;
            if outcome == Outcome::Interrupted {
                return Ok(Outcome::Interrupted);
            }
        }
    }
    if let Some(file) = file {
        file.sync()?;
    }
    Ok(Outcome::Complete)
}

/// Only a group that repeats an earlier one may have to wait.
fn wait(
    backend: &mut dyn Backend,
    results: &Results,
    index: usize,
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Outcome {
    let begin = backend.now();
    let whole_ns = wait_ns(results, index, begin.unix_ns);
    let remaining_ns = remaining_ns(results, begin.unix_ns);
    loop {
        let waited_ns = ((backend.now().since_start_s - begin.since_start_s) * 1e9) as u64;
        let left_ns = whole_ns.saturating_sub(waited_ns);
        if left_ns == 0 {
            return Outcome::Complete;
        }
        observer.waits(left_ns, remaining_ns.saturating_sub(waited_ns));
        backend.wait(left_ns.min(WAIT_STEP_NS));
        if stop.load(Ordering::Relaxed) {
            return Outcome::Interrupted;
        }
    }
}

fn measure_group(
    backend: &mut dyn Backend,
    launch: &mut dyn Launch,
    results: &mut Results,
    index: usize,
    file: &mut Option<Appender>,
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    let remaining = results.remaining(index);
    let mut attempt = Attempt { backend, launch, file, observer, stop, elsewhere: false };
    let error = match attempt.measure(results, index, &remaining) {
        Err(error) => error,
        Ok(outcome) => return Ok(outcome),
    };
    let Attempt { elsewhere, .. } = attempt;
    let LabError::Cell { cell, clause, .. } = &error else { return Err(error) };
    if !results.plan.may_strike(index, *cell) {
        return Err(error);
    }
    let strike = Strike {
        run: results.plan.run.clone(),
        at: timestamp(backend.now().unix_ns).into(),
        group: index,
        attempt: results.groups[index].attempts,
        cell: *cell,
        what: clause.clone().into(),
    };
    if let Some(file) = file {
        file.append(&[Line::Strike(Box::new(strike.clone()))])?;
    }
    observer.struck(&results.plan, &strike);
    results.strike(strike);
    if !elsewhere && backend.leaves_threads() { Err(error) } else { Ok(Outcome::Complete) }
}

struct Attempt<'a> {
    backend: &'a mut dyn Backend,
    launch: &'a mut dyn Launch,
    file: &'a mut Option<Appender>,
    observer: &'a mut dyn Observer,
    stop: &'a AtomicBool,
    /// True if another process measures the current share.
    elsewhere: bool,
}

impl Attempt<'_> {
    fn measure(
        &mut self,
        results: &mut Results,
        index: usize,
        remaining: &[usize],
    ) -> Result<Outcome, LabError> {
        let Attempt { backend, launch, file, observer, stop, elsewhere } = self;
        let Results { machine, plan, groups, .. } = results;
        let (cells, state) = (&plan.groups[index], &mut groups[index]);
        let attempt = state.attempts + 1;
        state.begin(attempt);
        let rounds = cells[0].budget.rounds;
        let in_round: usize = remaining.iter().map(|cell| cells[*cell].budget.kinds().len()).sum();
        let all = in_round as u64 * u64::from(rounds);
        let (in_share, measured_ns) = (Cell::new(0), Cell::new(0));
        let mut take = |step: Step| {
            let Step::Line(line) = step else { return Ok(()) };
            if let Line::Timeline(timeline) = &line
                && !state.keep(timeline)
            {
                return Ok(());
            }
            if let Some(file) = file {
                file.append(&[kept(&line, cells, machine)])?;
            }
            match line {
                Line::Block(block) => {
                    let cell = &cells[block.cell];
                    measured_ns.set(measured_ns.get() + block.elapsed_ns.get());
                    in_share.set(in_share.get() + 1);
                    state.blocks.push(*block);
                    observer.block(cell, state.blocks.len() as u64, all);
                }
                Line::CellPrediction(prediction) => state.predictions.push(*prediction),
                _ => {}
            }
            Ok(())
        };
        for process in 0..=plan.process(rounds - 1, rounds) {
            let since_start_s = backend.now().since_start_s;
            let cells = remaining.to_vec();
            let share = Share { group: index, cells, attempt, process, since_start_s };
            *elsewhere = process > 0 || launch.every_share();
            if *elsewhere {
                let launched = launch.launch(machine, plan, &share, &mut take);
                backend.elapse(in_share.get(), measured_ns.get());
                launched?;
            } else {
                measure_share(*backend, machine, plan, &share, &mut take, stop)?;
            }
            in_share.set(0);
            measured_ns.set(0);
            if stop.load(Ordering::Relaxed) {
                return Ok(Outcome::Interrupted);
            }
        }
        if (state.blocks.len() as u64) < all {
            return Err(LabError::Process(
                "a measuring process ended before it had done its part of the run".into(),
            ));
        }
        let at = timestamp(backend.now().unix_ns);
        let records = fold(machine, plan, index, attempt, &state.blocks, &state.predictions, &at);
        if let Some(file) = file {
            let lines: Vec<Line> =
                records.iter().map(|record| Line::Record(Box::new(record.clone()))).collect();
            file.append(&lines)?;
        }
        records.iter().for_each(|record| observer.record(record));
        state.records = Some(records);
        state.blocks.clear();
        state.predictions.clear();
        Ok(Outcome::Complete)
    }
}

fn kept(line: &Line, cells: &[PlannedCell], machine: &Machine) -> Line {
    let mut line = line.clone();
    if let Line::Block(block) = &mut line
        && !cells[block.cell].experiment.keeps_histograms(machine)
    {
        block.histogram = None;
        if let BlockFigures::HandOffs(own) = &mut block.figures {
            own.one_way = None;
        }
    }
    line
}

/// Measures a share. The share of the first process begins with the predictions.
///
/// # Errors
///
/// If a cell fails, the clock fails its recheck, or `take` returns an error.
pub fn measure_share(
    backend: &mut dyn Backend,
    machine: &Machine,
    plan: &Plan,
    share: &Share,
    take: &mut Take<'_>,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    let mut at = None;
    let mut noted = |step: Step| {
        if let Step::At(cell) = &step {
            at = Some(*cell);
        }
        take(step)
    };
    let outcome = measure_cells(backend, machine, plan, share, &mut noted, stop);
    outcome.map_err(|error| match at {
        Some(cell) => error.of_cell(cell),
        None => error,
    })
}

fn measure_cells(
    backend: &mut dyn Backend,
    machine: &Machine,
    plan: &Plan,
    share: &Share,
    take: &mut Take<'_>,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    let Share { group, attempt, process, cells: indices, .. } = share;
    let (group, attempt, process) = (*group, *attempt, *process);
    let cells: Vec<PlannedCell> =
        indices.iter().map(|cell| plan.groups[group][*cell].clone()).collect();
    let seed = plan.seed
        ^ ((group as u64) << 32)
        ^ (u64::from(process) << 48)
        ^ (u64::from(attempt) << 56);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut history: Vec<History> =
        cells.iter().map(|planned| History::new(&machine.noise, &planned.cell.cpus)).collect();
    let mut shown = GroupState::default();
    let rounds = cells[0].budget.rounds;
    {
        let mut open = backend.open(machine, &cells, &mut |cell| take(Step::At(indices[cell])))?;
        if process == 0
            && predict_group(backend, &open, plan, share, take, stop)? == Outcome::Interrupted
        {
            return Ok(Outcome::Interrupted);
        }
        let mut order: Vec<usize> = (0..cells.len()).collect();
        let own = (0..rounds).filter(|round| plan.process(*round, rounds) == process);
        for (nth, round) in own.enumerate() {
            order.shuffle(&mut rng);
            if nth > 0 {
                for cell in order.iter().copied() {
                    take(Step::At(indices[cell]))?;
                    open[cell].reopen()?;
                }
            }
            for cell in order.iter().copied() {
                let mut kinds = cells[cell].budget.kinds().to_vec();
                if rng.random::<bool>() {
                    kinds.reverse();
                }
                for kind in kinds {
                    let index = indices[cell];
                    take(Step::At(index))?;
                    let mut samples = open[cell].block(kind)?;
                    let excerpt = samples.samples.take_excerpt();
                    let at = timestamp(backend.now().unix_ns);
                    let position = Position { group, attempt, process, cell: index, round, kind };
                    let block = to_block(plan, position, samples, at, &mut history[cell]);
                    let block = Block { own_program: open[cell].own_program(), ..block };
                    let timeline = excerpt.map(|excerpt| timeline(&block, excerpt));
                    // The timeline comes before its block: if the run is told to stop at a block,
                    // nothing follows that block.
                    if let Some(timeline) = timeline.filter(|timeline| shown.keep(timeline)) {
                        take(Step::Line(Line::Timeline(Box::new(timeline))))?;
                    }
                    take(Step::Line(Line::Block(Box::new(block))))?;
                    if stop.load(Ordering::Relaxed) {
                        return Ok(Outcome::Interrupted);
                    }
                }
            }
        }
        for (cell, opened) in open.into_iter().enumerate() {
            take(Step::At(indices[cell]))?;
            drop(opened);
        }
    }
    backend.recheck()?;
    Ok(Outcome::Complete)
}

fn timeline(block: &Block, excerpt: Excerpt) -> Timeline {
    let Block { run, group, attempt, cell, seq, clean, .. } = block;
    let thread = |thread: Vec<[u64; 3]>| thread.into_iter().map(|at| at.map(Count::from)).collect();
    Timeline {
        run: run.clone(),
        group: *group,
        attempt: *attempt,
        cell: *cell,
        seq: *seq,
        clean: *clean,
        elapsed_ns: excerpt.length.into(),
        acquisitions: excerpt.threads.into_iter().map(thread).collect(),
    }
}

/// Called before any cell of the group is measured.
fn predict_group(
    backend: &mut dyn Backend,
    open: &[Box<dyn OpenCell>],
    plan: &Plan,
    share: &Share,
    take: &mut Take<'_>,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    let (group, attempt) = (share.group, share.attempt);
    for (cell, opened) in share.cells.iter().copied().zip(open) {
        let planned = &plan.groups[group][cell];
        let Some(subject) = planned.cell.lock().filter(|subject| !subject.is_alone()) else {
            continue;
        };
        let at = timestamp(backend.now().unix_ns);
        let of = CellAttempt { run: &plan.run, group, attempt, cell, at: &at };
        let prediction = match predict::refusal(&planned.cell) {
            Some(why) => Some(of.refuse(why, opened.calibration().as_ref())),
            None => predicted(&of, &**opened, planned, subject, plan.seed),
        };
        let Some(prediction) = prediction else { continue };
        take(Step::Line(Line::CellPrediction(Box::new(prediction))))?;
        if stop.load(Ordering::Relaxed) {
            return Ok(Outcome::Interrupted);
        }
    }
    Ok(Outcome::Complete)
}

/// Calibrated figures outside the models' range give no prediction.
fn predicted(
    of: &CellAttempt<'_>,
    opened: &dyn OpenCell,
    planned: &PlannedCell,
    subject: &LockSubject,
    seed: u64,
) -> Option<CellPrediction> {
    match &subject.overload {
        Some(load) => {
            overload::predict(of, planned, subject, load, &opened.overload_calibration()?).ok()
        }
        None => of.predict(planned, subject, &opened.calibration()?, seed).ok(),
    }
}
