//! Measures a plan, group by group, round by round, with cells in random order. Each block is
//! written to disk as soon as it ends.
//!
//! A plan may be measured by several processes, because the blocks of one share its addresses and
//! pages. This process then measures the first share of each group's rounds, others the rest.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use threadtoll_record::file::{Appender, Results};
use threadtoll_record::{Line, Machine, Plan, PlannedCell, Record, fold, timestamp};

use crate::LabError;
use crate::backend::{Backend, OpenCell};
use crate::block::{History, Position, to_block};
use crate::contention::predict::{self, CellAttempt};
use crate::plan::{remaining_ns, wait_ns};

/// Time after which a wait looks for `stop`.
const WAIT_STEP_NS: u64 = 100_000_000;

/// Outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All groups were measured, or are above saturation.
    Complete,
    /// Stopped on request; finished blocks are kept.
    Interrupted,
}

/// Observer of a run's progress.
pub trait Observer {
    /// A group begins; `remaining_ns` is the estimate for the rest of the run, including this
    /// group.
    fn group(&mut self, index: usize, of: usize, cells: &[PlannedCell], remaining_ns: u64);
    /// A group is not due for another `left_ns`; `remaining_ns` is the estimate for the rest of the
    /// run, including this wait.
    fn waits(&mut self, _left_ns: u64, _remaining_ns: u64) {}
    /// A block ended; the group has `done` of `of` blocks.
    fn block(&mut self, cell: &PlannedCell, done: u64, of: u64);
    /// A record is complete.
    fn record(&mut self, record: &Record);
}

/// A process's share of an attempt at a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Index of the group in the plan.
    pub group: usize,
    /// Number of attempts at the group, including this one.
    pub attempt: u32,
    /// Number of the process, from 0.
    pub process: u32,
    /// Time since the run began, in seconds.
    pub since_start_s: f64,
}

/// Takes each line as soon as it is measured.
pub type Take<'a> = dyn FnMut(Line) -> Result<(), LabError> + 'a;

/// Measures a share in another process, which ends early if the run is told to stop.
pub type Launch<'a> = dyn FnMut(&Machine, &Plan, Share, &mut Take<'_>) -> Result<(), LabError> + 'a;

/// Measures every incomplete group of `results`, in order. The records of the groups before it tell
/// if one is above saturation.
///
/// Blocks and records are appended to `file` as they come. `stop` is checked after each block, and
/// several times a second while the repetition of a group is not due yet.
///
/// # Errors
///
/// If a group cannot be opened, a message is wrong or does not arrive, the clock fails its recheck,
/// another process fails, or the file cannot be written. All finished blocks are in `results` and
/// in the file.
pub fn run(
    backend: &mut dyn Backend,
    launch: &mut Launch<'_>,
    results: &mut Results,
    file: &mut Option<Appender>,
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    let count = results.plan.groups.len();
    for index in 0..count {
        if results.complete_groups()[index] {
            continue;
        }
        if stop.load(Ordering::Relaxed)
            || wait(backend, results, index, observer, stop) == Outcome::Interrupted
        {
            return Ok(Outcome::Interrupted);
        }
        let remaining = remaining_ns(results, backend.now().unix_ns);
        observer.group(index, count, &results.plan.groups[index], remaining);
        let outcome = measure_group(backend, launch, results, index, file, observer, stop)?;
        if outcome == Outcome::Interrupted {
            return Ok(Outcome::Interrupted);
        }
    }
    if let Some(file) = file {
        file.sync()?;
    }
    Ok(Outcome::Complete)
}

/// Waits until a group is due: the repetition of another one may not be yet.
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
    launch: &mut Launch<'_>,
    results: &mut Results,
    index: usize,
    file: &mut Option<Appender>,
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    let Results { machine, plan, groups, .. } = results;
    let (cells, state) = (&plan.groups[index], &mut groups[index]);
    state.attempts += 1;
    state.blocks.clear();
    state.predictions.clear();
    let attempt = state.attempts;
    let rounds = cells[0].budget.rounds;
    let in_round: usize = cells.iter().map(|planned| planned.budget.kinds().len()).sum();
    let all = in_round as u64 * u64::from(rounds);
    let (in_share, measured_ns) = (Cell::new(0), Cell::new(0));
    let mut take = |line: Line| {
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
        let share =
            Share { group: index, attempt, process, since_start_s: backend.now().since_start_s };
        if process == 0 {
            measure_share(backend, machine, plan, share, &mut take, stop)?;
        } else {
            launch(machine, plan, share, &mut take)?;
            backend.elapse(in_share.get(), measured_ns.get());
        }
        in_share.set(0);
        measured_ns.set(0);
        if stop.load(Ordering::Relaxed) {
            return Ok(Outcome::Interrupted);
        }
    }
    if (state.blocks.len() as u64) < all {
        return Err(LabError::Process("a process ended before it had measured its share".into()));
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

/// The line as the file keeps it: without the histograms of experiments that drop them.
fn kept(line: &Line, cells: &[PlannedCell], machine: &Machine) -> Line {
    let mut line = line.clone();
    if let Line::Block(block) = &mut line
        && !cells[block.cell].experiment.keeps_histograms(machine)
    {
        block.histogram = None;
        block.one_way = None;
    }
    line
}

/// Measures a share, predictions first if it is that of the first process.
///
/// # Errors
///
/// As [`run`].
pub fn measure_share(
    backend: &mut dyn Backend,
    machine: &Machine,
    plan: &Plan,
    share: Share,
    take: &mut Take<'_>,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    let Share { group, attempt, process, .. } = share;
    let cells = &plan.groups[group];
    let seed = plan.seed
        ^ ((group as u64) << 32)
        ^ (u64::from(process) << 48)
        ^ (u64::from(attempt) << 56);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut history: Vec<History> =
        cells.iter().map(|planned| History::new(&machine.noise, &planned.cell.cpus)).collect();
    let rounds = cells[0].budget.rounds;
    {
        let mut open = backend.open(machine, cells)?;
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
                order.iter().try_for_each(|cell| open[*cell].reopen())?;
            }
            for cell in order.iter().copied() {
                let mut kinds = cells[cell].budget.kinds().to_vec();
                if rng.random::<bool>() {
                    kinds.reverse();
                }
                for kind in kinds {
                    let samples = open[cell].block(kind)?;
                    let at = timestamp(backend.now().unix_ns);
                    let position = Position { group, attempt, process, cell, round, kind };
                    let block = to_block(plan, position, samples, at, &mut history[cell]);
                    take(Line::Block(Box::new(block)))?;
                    if stop.load(Ordering::Relaxed) {
                        return Ok(Outcome::Interrupted);
                    }
                }
            }
        }
    }
    backend.recheck()?;
    Ok(Outcome::Complete)
}

/// Makes the model predictions for a group's cells before any of them is measured, one line at a
/// time.
fn predict_group(
    backend: &mut dyn Backend,
    open: &[Box<dyn OpenCell>],
    plan: &Plan,
    Share { group, attempt, .. }: Share,
    take: &mut Take<'_>,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    for (cell, opened) in open.iter().enumerate() {
        let planned = &plan.groups[group][cell];
        let Some(subject) = planned.cell.lock().filter(|subject| !subject.is_alone()) else {
            continue;
        };
        let calibration = opened.calibration();
        let at = timestamp(backend.now().unix_ns);
        let of = CellAttempt { run: &plan.run, group, attempt, cell, at: &at };
        // Figures outside the models' range leave the record without a prediction.
        let prediction = match (predict::refusal(&planned.cell), &calibration) {
            (Some(why), calibration) => of.refuse(why, calibration.as_ref()),
            (None, Some(calibration)) => match of.predict(planned, subject, calibration, plan.seed)
            {
                Ok(prediction) => prediction,
                Err(_) => continue,
            },
            (None, None) => continue,
        };
        take(Line::CellPrediction(Box::new(prediction)))?;
        if stop.load(Ordering::Relaxed) {
            return Ok(Outcome::Interrupted);
        }
    }
    Ok(Outcome::Complete)
}
