//! Predictions for cells, written before they are measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Fraction, Ns, Ratio, Seconds, Text};

/// Prediction for a cell, made from its group's calibration and written before the group's first
/// block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellPrediction {
    /// Id of the run.
    pub run: Text,
    /// Index of the group in the plan.
    pub group: usize,
    /// Attempt at measuring the group.
    pub attempt: u32,
    /// Index of the cell in its group.
    pub cell: usize,
    /// Time of the prediction, RFC 3339 UTC.
    pub at: Text,
    /// Reason why no model predicts the cell; the model and its figures are then null.
    #[serde(default)]
    pub refused: Option<Refusal>,
    /// The model: `bounds`, `repairman`, `takacs`, `mva`, `cores` or `simulation`.
    pub model: Option<Text>,
    /// Why this model was chosen.
    pub why: Option<Text>,
    /// Work per second, divided by that of one thread without the lock.
    pub speedup: Option<Ratio>,
    /// 95% interval for the measured speed-up, which covers the errors of the calibration and of
    /// the simulation; null in files written before there was such an interval.
    #[serde(default)]
    pub speedup_interval95: Option<[Ratio; 2]>,
    /// Share of the threads' time spent waiting.
    pub wait_share: Option<Fraction>,
    /// Number of waiting threads, averaged over time.
    pub queue_mean: Option<Ratio>,
    /// 95% interval for the measured mean queue; null in the same files.
    #[serde(default)]
    pub queue_mean_interval95: Option<[Ratio; 2]>,
    /// Number of threads still waiting when one has just acquired the lock.
    pub queue_on_entry: Option<Ratio>,
    /// Time for all tasks, in seconds; null if there is no fixed number of tasks.
    pub total_s: Option<Seconds>,
    /// Inputs of the model; null if they could not be calibrated.
    pub from: Option<Calibrated>,
}

/// Reason why no model describes a cell, so that there is no prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The lock is held for less than 1 µs. Throughput then depends on the cost of moving cache
    /// lines between CPUs, which depends on how the threads happen to meet.
    #[serde(rename = "below-1us")]
    Below1us,
    /// More threads than CPUs compute. Throughput then depends on the scheduler, which may even
    /// preempt the thread that holds the lock.
    OversubscribedSpin,
}

/// Inputs of the models, measured in the group before its cells are predicted, but in cells of
/// their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibrated {
    /// Mean hold time, in nanoseconds.
    pub hold_ns: Ns,
    /// Mean time that a thread spends without the lock, in nanoseconds.
    pub think_ns: Ns,
    /// Time that a single thread needs for its work, both parts together and without the lock, in
    /// nanoseconds.
    pub alone_ns: Ns,
    /// Time from a release until a sleeping thread that is woken by it has the lock, in
    /// nanoseconds. Calibrated with short sleeps.
    pub handoff_ns: Ns,
    /// Time that the releasing thread spends on waking a sleeping thread, in nanoseconds.
    /// Calibrated with short sleeps; null if no thread sleeps.
    pub wake_cost_ns: Option<Ns>,
    /// Time for which a thread spins before it sleeps, in nanoseconds; null if it never sleeps, or
    /// if it does not spin.
    pub spin_ns: Option<Ns>,
    /// Time of a hand-off to a spinning thread, in nanoseconds; null if no thread spins.
    pub takeover_ns: Option<Ns>,
    /// Time of an uncontended lock and unlock, in nanoseconds.
    pub pair_ns: Ns,
    /// Factor by which threads slow each other down when they compute at the same time; absent if
    /// threads sleep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown: Option<Ratio>,
}
