//! Measures a plan, group by group, round by round, with cells in random order. Each block is
//! written to disk as soon as it ends.

use std::sync::atomic::{AtomicBool, Ordering};

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use threadtoll_record::file::{Appender, Results};
use threadtoll_record::{Line, PlannedCell, Record, fold, timestamp};

use crate::LabError;
use crate::backend::{Backend, OpenCell};
use crate::block::{History, Position, to_block};
use crate::contention::predict;
use crate::plan::estimate_ns;

/// Outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All groups were measured.
    Complete,
    /// Stopped on request; finished blocks are kept.
    Interrupted,
}

/// Observer of a run's progress.
pub trait Observer {
    /// A group begins; `remaining_ns` is the estimate for the rest of the run, including this
    /// group.
    fn group(&mut self, index: usize, of: usize, cells: &[PlannedCell], remaining_ns: u64);
    /// A block ended; the group has `done` of `of` blocks.
    fn block(&mut self, cell: &PlannedCell, done: u64, of: u64);
    /// A record is complete.
    fn record(&mut self, record: &Record);
}

/// Measures every incomplete group of `results`.
///
/// Blocks and records are appended to `file` as they come. `stop` is checked after each block.
///
/// # Errors
///
/// If a group cannot be opened, a message is wrong or does not arrive, the clock fails its recheck,
/// or the file cannot be written. All finished blocks are in `results` and in the file.
pub fn run(
    backend: &mut dyn Backend,
    results: &mut Results,
    file: &mut Option<Appender>,
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    let count = results.plan.groups.len();
    for index in 0..count {
        if results.groups[index].records.is_some() {
            continue;
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(Outcome::Interrupted);
        }
        let unfinished = (index..count).filter(|index| results.groups[*index].records.is_none());
        let remaining = estimate_ns(unfinished.map(|index| results.plan.groups[index].as_slice()));
        observer.group(index, count, &results.plan.groups[index], remaining);
        if measure_group(backend, results, index, file, observer, stop)? == Outcome::Interrupted {
            return Ok(Outcome::Interrupted);
        }
    }
    if let Some(file) = file {
        file.sync()?;
    }
    Ok(Outcome::Complete)
}

fn measure_group(
    backend: &mut dyn Backend,
    results: &mut Results,
    index: usize,
    file: &mut Option<Appender>,
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    let cells = results.plan.groups[index].clone();
    let attempt = results.groups[index].attempts + 1;
    results.groups[index].attempts = attempt;
    results.groups[index].blocks.clear();
    results.groups[index].predictions.clear();
    let seed = results.plan.seed ^ ((index as u64) << 32) ^ (u64::from(attempt) << 56);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let noise = &results.machine.noise;
    let mut history: Vec<History> =
        cells.iter().map(|planned| History::new(noise, &planned.cell.cpus)).collect();
    let rounds = cells[0].budget.rounds;
    let blocks: usize = cells.iter().map(|planned| planned.budget.kinds().len()).sum();
    let all = u64::from(rounds) * blocks as u64;
    let mut done = 0;
    {
        let mut open = backend.open(&results.machine, &cells)?;
        if predict_group(backend, &open, results, (index, attempt), file, stop)?
            == Outcome::Interrupted
        {
            return Ok(Outcome::Interrupted);
        }
        let mut order: Vec<usize> = (0..cells.len()).collect();
        for round in 0..rounds {
            order.shuffle(&mut rng);
            for cell in order.iter().copied() {
                let mut kinds = cells[cell].budget.kinds().to_vec();
                if rng.random::<bool>() {
                    kinds.reverse();
                }
                for kind in kinds {
                    let samples = open[cell].block(kind)?;
                    let at = timestamp(backend.now().unix_ns);
                    let position = Position { group: index, attempt, cell, round, kind };
                    let block = to_block(&results.plan, position, samples, at, &mut history[cell]);
                    if let Some(file) = file {
                        let mut kept = block.clone();
                        if !cells[cell].experiment.keeps_histograms(&results.machine) {
                            kept.histogram = None;
                            kept.one_way = None;
                        }
                        file.append(&[Line::Block(Box::new(kept))])?;
                    }
                    results.groups[index].blocks.push(block);
                    done += 1;
                    observer.block(&cells[cell], done, all);
                    if stop.load(Ordering::Relaxed) {
                        return Ok(Outcome::Interrupted);
                    }
                }
            }
        }
    }
    backend.recheck()?;
    let at = timestamp(backend.now().unix_ns);
    let state = &mut results.groups[index];
    let records = fold(
        &results.machine,
        &results.plan,
        index,
        attempt,
        &state.blocks,
        &state.predictions,
        &at,
    );
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

/// Writes the model predictions for a group's cells before any of them is measured, one line at a
/// time.
fn predict_group(
    backend: &mut dyn Backend,
    open: &[Box<dyn OpenCell>],
    results: &mut Results,
    (group, attempt): (usize, u32),
    file: &mut Option<Appender>,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    for (cell, opened) in open.iter().enumerate() {
        let Some(subject) = results.plan.groups[group][cell].cell.lock() else { continue };
        let Some(calibration) = opened.calibration() else { continue };
        let at = timestamp(backend.now().unix_ns);
        let of = predict::CellAttempt { run: &results.plan.run, group, attempt, cell, at: &at };
        // Figures outside the models' range leave the record without a prediction.
        let Ok(prediction) = predict::predict(subject, &calibration, results.plan.seed, &of) else {
            continue;
        };
        if let Some(file) = file {
            file.append(&[Line::CellPrediction(Box::new(prediction.clone()))])?;
        }
        results.groups[group].predictions.push(prediction);
        if stop.load(Ordering::Relaxed) {
            return Ok(Outcome::Interrupted);
        }
    }
    Ok(Outcome::Complete)
}
