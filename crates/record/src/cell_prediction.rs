//! Predictions for cells, written before they are measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Fraction, Ns, Ratio, Seconds, SignedRatio, Text};

/// Prediction for a cell, made from its group's calibration and written before the group's first
/// block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellPrediction {
    /// Id of the run.
    pub run: Text,
    /// Index of the group in the plan.
    pub group: usize,
    /// Attempt at the group.
    pub attempt: u32,
    /// Index of the cell in its group.
    pub cell: usize,
    /// When it was predicted, RFC 3339 UTC.
    pub at: Text,
    /// The model: `bounds`, `repairman`, `takacs`, `mva`, `cores` or `simulation`.
    pub model: Text,
    /// Why that model was chosen.
    pub why: Text,
    /// Work per second, divided by that of one thread without the lock.
    pub speedup: Ratio,
    /// 99% interval of a simulated speed-up; null for closed forms.
    pub speedup_interval99: Option<[SignedRatio; 2]>,
    /// Share of the threads' time spent waiting.
    pub wait_share: Fraction,
    /// Number of waiting threads, averaged over time.
    pub queue_mean: Ratio,
    /// Number of threads still waiting when one has just acquired the lock.
    pub queue_on_entry: Ratio,
    /// Time for all tasks, in seconds; null without a number of tasks.
    pub total_s: Option<Seconds>,
    /// Inputs of the model.
    pub from: Calibrated,
}

/// Figures measured in the group before its cells are predicted, but not in those cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibrated {
    /// Mean hold time, in nanoseconds.
    pub hold_ns: Ns,
    /// Mean time of a thread without the lock, in nanoseconds.
    pub think_ns: Ns,
    /// Time for both, of one thread without the lock, in nanoseconds.
    pub alone_ns: Ns,
    /// Time from a release until a sleeping thread that is woken has the lock, in nanoseconds,
    /// after a short sleep.
    pub handoff_ns: Ns,
    /// Time for which a thread spins before it sleeps, in nanoseconds; null if it never sleeps, or
    /// sleeps at once.
    pub spin_ns: Option<Ns>,
    /// Time of a hand-off to a spinning thread, in nanoseconds; null if none spins.
    pub takeover_ns: Option<Ns>,
    /// Uncontended lock and unlock, in nanoseconds.
    pub pair_ns: Ns,
}
