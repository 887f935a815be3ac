//! Predictions for a cell with an overloaded lock: simulations with the very arrivals of its
//! blocks.

use threadtoll_model::ModelError;
use threadtoll_model::overload::{Outcome, OverloadedLock, Phases, Rules, outcome, simulate};
use threadtoll_record::{
    CalibratedOverload, CellPrediction, LockSubject, Overload, PlannedCell, PredictedOverload,
};
use threadtoll_stats::median;

use super::super::predict::{CellAttempt, interval95};
use super::super::repeated::Part;

/// Maximum number of blocks that are simulated: the mean of more would hardly differ.
const MAX_BLOCKS: u32 = 100;

/// Error of the simulation itself, as a share of each figure: it ignores caches, timers and ticks.
/// Chosen after two runs of `contention overload` on two CPUs of an EPYC (Milan): 43 figures of
/// undisturbed cells, all with holders that sleep, were off by 1.0% on average and 4.9% at worst,
/// chance included. No cell with holders that compute was undisturbed there.
const UNMODELLED: f64 = 0.03;

/// Calibrated inputs of the simulation for a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct OverloadCalibration {
    lock: OverloadedLock,
    /// One for each batch of repeats. Their spread shows the error of the calibration.
    batches: Vec<OverloadedLock>,
}

impl OverloadCalibration {
    /// `None` if any of the inputs is outside the range that the model accepts.
    pub(crate) fn by_part(lock: impl Fn(Part) -> Option<OverloadedLock>) -> Option<Self> {
        Some(OverloadCalibration {
            lock: lock(Part::All)?,
            batches: Part::batches().map(lock).collect::<Option<_>>()?,
        })
    }
}

/// Means over the blocks of a cell.
struct Figures {
    in_time: f64,
    late: f64,
    refused: f64,
    gave_up: f64,
    queue_mean: f64,
    queue: Vec<f64>,
    /// Median over blocks; `None` if in most blocks somebody waits to the end.
    recovery_ns: Option<f64>,
}

impl Figures {
    fn of(
        lock: &OverloadedLock,
        (phases, rules): (&Phases, &Rules),
        blocks: u32,
    ) -> Result<Self, ModelError> {
        let block = |nth: u32| -> Result<Outcome, ModelError> {
            let nth = u64::from(nth);
            let callers = simulate(lock, rules, &super::due_ns(phases, nth), nth)?;
            Ok(outcome(&callers, phases, rules.deadline_ns))
        };
        let blocks: Vec<Outcome> = (0..blocks).map(block).collect::<Result<_, ModelError>>()?;
        let sum =
            |of: fn(&Outcome) -> u32| blocks.iter().map(|one| f64::from(of(one))).sum::<f64>();
        let arrived = sum(|one| one.arrived).max(1.0);
        let mean = |of: &dyn Fn(&Outcome) -> f64| {
            blocks.iter().map(of).sum::<f64>() / blocks.len().max(1) as f64
        };
        let slices = blocks.first().map_or(0, |one| one.queue.len());
        let recoveries = blocks.iter().map(|one| one.recovery_ns.unwrap_or(phases.after_ns));
        Ok(Figures {
            in_time: sum(|one| one.in_time) / arrived,
            late: sum(|one| one.late) / arrived,
            refused: sum(|one| one.refused) / arrived,
            gave_up: sum(|one| one.gave_up) / arrived,
            queue_mean: mean(&|one| one.queue_mean),
            queue: (0..slices).map(|slice| mean(&|one| one.queue[slice])).collect(),
            recovery_ns: median(recoveries).filter(|ns| *ns < phases.after_ns),
        })
    }
}

/// Predicts the cell, without using anything that was measured in the cell itself.
///
/// # Errors
///
/// If a calibrated figure is outside the range that the model accepts.
pub(crate) fn predict(
    attempt: &CellAttempt<'_>,
    planned: &PlannedCell,
    subject: &LockSubject,
    overload: &Overload,
    calibration: &OverloadCalibration,
) -> Result<CellPrediction, ModelError> {
    let OverloadCalibration { lock, batches } = calibration;
    let blocks = planned.budget.rounds.min(MAX_BLOCKS);
    let (phases, rules) = (super::phases(subject.hold_ns, overload), super::rules(overload));
    let of = |lock: &OverloadedLock| Figures::of(lock, (&phases, &rules), blocks);
    let found = of(lock)?;
    let by_batch: Vec<Figures> = batches.iter().map(of).collect::<Result<_, _>>()?;
    let interval = |value: f64, figure: &dyn Fn(&Figures) -> f64| {
        let batches: Vec<f64> = by_batch.iter().map(figure).collect();
        interval95(value, &batches, 0.0, UNMODELLED * value)
    };
    let share = |value: f64| value.clamp(0.0, 1.0).into();
    let queue_mean = interval(found.queue_mean, &|one| one.queue_mean);
    let recovery = found
        .recovery_ns
        .map(|ns| interval(ns, &|one| one.recovery_ns.unwrap_or(phases.after_ns)).map(Into::into));
    Ok(CellPrediction {
        model: Some("simulation".into()),
        why: Some(
            "callers arrive from outside, and no closed form follows a rate that changes".into(),
        ),
        queue_mean: Some(found.queue_mean.into()),
        queue_mean_interval95: Some(queue_mean.map(Into::into)),
        overload: Some(Box::new(PredictedOverload {
            in_time_share: share(found.in_time),
            in_time_interval95: interval(found.in_time, &|one| one.in_time).map(share),
            late_share: share(found.late),
            refused_share: share(found.refused),
            gave_up_share: share(found.gave_up),
            recovery_ns: found.recovery_ns.map(Into::into),
            recovery_interval95: recovery,
            queue: super::ratios(&found.queue),
            from: CalibratedOverload {
                hold_ns: lock.hold_ns.into(),
                handoff_ns: lock.hand_off.after(lock.hold_ns).into(),
                overtaken_share: share(lock.overtaken_share),
                late_ns: lock.late_ns.into(),
            },
        })),
        ..attempt.line()
    })
}
