use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Fraction, Ns, PredictedOverload, Ratio, Seconds, Text};

/// Prediction for a cell with a lock, made from the calibration of the cell's group and written
/// before the group's first block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellPrediction {
    /// Id of the run.
    pub run: Text,
    /// Index of the group in the plan.
    pub group: usize,
    /// Attempt at measuring the group, from 1.
    pub attempt: u32,
    /// Index of the cell in its group.
    pub cell: usize,
    /// Time of the prediction, RFC 3339 UTC.
    pub at: Text,
    /// Reason why no model predicts the cell; null if a model does. With a reason, `model` and the
    /// model's figures are null.
    #[serde(default)]
    pub refused: Option<Refusal>,
    /// Name of the model: `bounds`, `repairman`, `takacs`, `mva`, `cores` or `simulation`.
    pub model: Option<Text>,
    /// Reason for choosing the model.
    pub why: Option<Text>,
    /// Predicted work per second of all threads, divided by that of one thread without the lock.
    pub speedup: Option<Ratio>,
    /// Interval that should contain the measured speed-up with 95% probability, given the errors of
    /// the calibration and of the simulation. Null in files of older versions.
    #[serde(default)]
    pub speedup_interval95: Option<[Ratio; 2]>,
    /// Fraction of the threads' time that is spent waiting for the lock.
    pub wait_share: Option<Fraction>,
    /// Number of waiting threads, averaged over time.
    pub queue_mean: Option<Ratio>,
    /// Interval that should contain the measured mean queue with 95% probability. Null in files of
    /// older versions.
    #[serde(default)]
    pub queue_mean_interval95: Option<[Ratio; 2]>,
    /// Mean number of threads still waiting just after a thread acquired the lock.
    pub queue_on_entry: Option<Ratio>,
    /// Time for all tasks, in seconds; null if there is no fixed number of tasks.
    pub total_s: Option<Seconds>,
    /// Inputs of the model; null if they could not be calibrated.
    pub from: Option<Calibrated>,
    /// Fates and queue of callers who arrive from outside; absent if the threads set the pace. The
    /// queue of the prediction is then that during the overload, and `from` is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overload: Option<Box<PredictedOverload>>,
}

/// Reason why there is no prediction for a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The lock is held for less than 1 µs. Throughput then depends on the cost of moving cache
    /// lines between CPUs, which depends on how the threads' accesses happen to interleave.
    #[serde(rename = "below-1us")]
    Below1us,
    /// There are more computing threads than CPUs. Throughput then depends on the scheduler, which
    /// may even preempt the thread that holds the lock.
    OversubscribedSpin,
}

/// Inputs of the models, measured before the group's predictions are made, and separately from the
/// predicted cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibrated {
    /// Mean hold time, in nanoseconds.
    pub hold_ns: Ns,
    /// Mean think time of a thread (time outside the lock), in nanoseconds.
    pub think_ns: Ns,
    /// Mean time of a single thread for the work of one hold time and one think time, without
    /// taking the lock, in nanoseconds.
    pub alone_ns: Ns,
    /// Time from a release until the sleeping thread that it wakes has the lock, in nanoseconds.
    /// Measured at the shortest calibrated waiting time at which threads sleep.
    pub handoff_ns: Ns,
    /// Time of a release that wakes a sleeping thread, in nanoseconds. Measured at the shortest
    /// calibrated waiting time at which threads sleep; null if no thread sleeps.
    pub wake_cost_ns: Option<Ns>,
    /// Time for which a waiting thread spins before it sleeps, in nanoseconds; null if threads only
    /// spin or only sleep.
    pub spin_ns: Option<Ns>,
    /// Time from a release until a spinning thread has the lock, in nanoseconds; null if no thread
    /// spins.
    pub takeover_ns: Option<Ns>,
    /// Time of an uncontended lock and unlock, in nanoseconds.
    pub pair_ns: Ns,
    /// Factor by which threads slow each other down when they compute at the same time; absent if
    /// threads sleep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown: Option<Ratio>,
}
