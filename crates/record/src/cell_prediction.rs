//! Predictions of a cell, written before it is measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Fraction, Ns, Ratio, Seconds, SignedRatio, Text};

/// Prediction of a cell, made from what was calibrated in its group and written before its
/// first block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellPrediction {
    /// Names the run.
    pub run: Text,
    /// Index of the group in the plan.
    pub group: usize,
    /// Attempt at the group.
    pub attempt: u32,
    /// Index of the cell in its group.
    pub cell: usize,
    /// When it was predicted, RFC 3339 UTC.
    pub at: Text,
    /// Whose answer it is: `bounds`, `repairman`, `takacs`, `mva`, `cores` or `simulation`.
    pub model: Text,
    /// Why that model was asked.
    pub why: Text,
    /// Work per second against one thread alone without the lock.
    pub speedup: Ratio,
    /// 99% interval of a simulated speed-up; null where a closed form answers.
    pub speedup_interval99: Option<[SignedRatio; 2]>,
    /// Share of the threads' time spent waiting.
    pub wait_share: Fraction,
    /// Threads waiting at an average moment.
    pub queue_mean: Ratio,
    /// Threads still waiting when one has just got the lock.
    pub queue_on_entry: Ratio,
    /// Time for all tasks, in seconds; null where there is no number of tasks.
    pub total_s: Option<Seconds>,
    /// Figures that it was made from.
    pub from: Calibrated,
}

/// Figures measured in the group before its cells were predicted, in none of those cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibrated {
    /// Mean time for which the lock will be held, in nanoseconds.
    pub hold_ns: Ns,
    /// Mean time of a thread without it, in nanoseconds.
    pub think_ns: Ns,
    /// Time for both of one thread alone without the lock, in nanoseconds.
    pub alone_ns: Ns,
    /// Time from letting go of the lock until a sleeping thread that is woken for it has it, in
    /// nanoseconds; after a short sleep.
    pub handoff_ns: Ns,
    /// For how long a thread looks at the lock before it sleeps, in nanoseconds; null where it
    /// never sleeps, or at once.
    pub spin_ns: Option<Ns>,
    /// Time of a hand-off to a thread that looks at the lock, in nanoseconds; null where none does.
    pub takeover_ns: Option<Ns>,
    /// An acquisition and a release that nobody else takes part in, in nanoseconds.
    pub pair_ns: Ns,
}
