//! Predictions for threads that share a lock: speed-up, queue and wait by number of threads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Comparison, Fit};

/// An object that `--json` prints as a whole; `schema` names its type. It is not a line of a result
/// file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "schema")]
pub enum Document {
    /// The output of `predict`.
    #[serde(rename = "threadtoll.prediction/1")]
    Prediction(Box<Prediction>),
    /// The output of `predict --fit`.
    #[serde(rename = "threadtoll.fit/1")]
    Fit(Fit),
    /// The output of `compare`.
    #[serde(rename = "threadtoll.comparison/1")]
    Comparison(Box<Comparison>),
}

/// Prediction for threads that work outside a lock (think), acquire it, hold it, and think again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// Mean hold time of the lock.
    pub hold_ns: f64,
    /// Mean think time of a thread (time outside the lock).
    pub think_ns: f64,
    /// Time from waking a thread until it runs.
    pub handoff_ns: f64,
    /// Number of cores on which the threads run; null without a limit.
    pub cores: Option<u32>,
    /// Number of tasks in the run, each with a hold time and a think time; null for a run of
    /// unlimited length.
    pub tasks: Option<u64>,
    /// Distribution of hold times: `fixed`, `exponential`, or the name of a file.
    pub hold_shape: String,
    /// Distribution of think times: `fixed`, `exponential`, or the name of a file.
    pub think_shape: String,
    /// Squared coefficient of variation of the hold times: 0 if they are fixed, 1 if exponential.
    pub hold_variation: f64,
    /// Squared coefficient of variation of the think times.
    pub think_variation: f64,
    /// The thread that gets a released lock.
    pub policy: PredictedPolicy,
    /// Number of equal locks that share the load; 1 if the lock is not striped.
    pub stripes: u32,
    /// Seed of simulations.
    pub seed: u64,
    /// Number of threads at which the two asymptotes of the speed-up meet (linear growth, and the
    /// largest possible speed-up); null if nothing limits the speed-up.
    pub knee: Option<f64>,
    /// Largest number of threads for which the last thread still adds at least half a thread's
    /// work, in the long run; null if nothing limits the speed-up, or if the number is above ten
    /// million.
    pub recommended_threads: Option<u32>,
    /// One row for each requested number of threads, in the order of the request.
    pub rows: Vec<PredictedRow>,
    /// Effects of changes for the largest requested number of threads, in the long run; empty if
    /// the lock is never held.
    pub what_if: Vec<PredictedChange>,
}

/// The thread that gets a released lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PredictedPolicy {
    /// The longest waiter.
    Fifo,
    /// Any thread that asks for the lock before the woken thread runs.
    Barging,
}

impl PredictedPolicy {
    /// Name in files and options.
    pub fn name(self) -> &'static str {
        match self {
            PredictedPolicy::Fifo => "fifo",
            PredictedPolicy::Barging => "barging",
        }
    }
}

/// Prediction for one number of threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PredictedRow {
    /// Number of threads.
    pub threads: u32,
    /// The model: `bounds`, `repairman`, `takacs`, `mva`, `cores` or `simulation`.
    pub model: String,
    /// Why that model was chosen.
    pub why: String,
    /// Throughput relative to one thread that never waits.
    pub speedup: f64,
    /// 99% interval of the speed-up; null for closed forms, and for a single run without
    /// randomness.
    pub speedup_interval99: Option<[f64; 2]>,
    /// Tasks per second of all threads together.
    pub throughput_per_s: f64,
    /// Number of waiting threads, averaged over time, without the holder; summed over all stripes.
    pub queue_mean: f64,
    /// 99% interval of the mean queue; null in the same cases as `speedup_interval99`.
    pub queue_mean_interval99: Option<[f64; 2]>,
    /// Mean number of threads still waiting for the lock (or stripe) just after one of them has
    /// acquired it.
    pub queue_on_entry: f64,
    /// Fraction of the threads' time that they spend waiting for the lock, 0 to 1.
    pub wait_share: f64,
    /// Time for all tasks in seconds; null if there is no fixed number of tasks.
    pub total_s: Option<f64>,
    /// Upper bound on the speed-up.
    pub bound: f64,
    /// Speed-up by Amdahl's law, as if all threads always requested the lock at the same moment: a
    /// lower limit, not a prediction.
    pub amdahl: f64,
}

/// Effect of a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PredictedChange {
    /// `hold/2`: half the hold time. `move-out/2`: half the work under the lock moved outside.
    /// `stripe/K`: K locks instead of one.
    pub change: String,
    /// Number of threads.
    pub threads: u32,
    /// The model.
    pub model: String,
    /// Tasks per second with the change.
    pub throughput_per_s: f64,
    /// Throughput with the change, as a multiple of what one thread that never waits achieves
    /// without the change.
    pub speedup: f64,
    /// Throughput with the change, as a multiple of what the same number of threads achieves
    /// without it.
    pub gain: f64,
}
