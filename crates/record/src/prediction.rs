use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Comparison, Fit, MeasuredLock, PoolPrediction};

/// An object that `--json` prints as a whole; it is no line of a result file. The member `schema`
/// names the object's type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "schema")]
pub enum Document {
    /// The output of `predict`.
    #[serde(rename = "threadtoll.prediction/1")]
    Prediction(Box<Prediction>),
    /// The output of `predict --arrivals`.
    #[serde(rename = "threadtoll.pool/1")]
    Pool(Box<PoolPrediction>),
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
    /// The measured lock from which the times were taken; null if they were given.
    pub from: Option<MeasuredLock>,
    /// Mean hold time of the lock, in nanoseconds; null if only `hold_share` is known.
    pub hold_ns: Option<f64>,
    /// Mean think time of a thread (time outside the lock), in nanoseconds; null if only
    /// `hold_share` is known.
    pub think_ns: Option<f64>,
    /// Fraction of its time for which a thread that never waits holds the lock.
    pub hold_share: f64,
    /// 95% interval of `hold_share`; null if the times have no intervals.
    pub hold_share_interval95: Option<[f64; 2]>,
    /// Time from waking a thread until it runs, in nanoseconds.
    pub handoff_ns: f64,
    /// Number of cores on which the threads run; null without a limit.
    pub cores: Option<u32>,
    /// Number of tasks in the run, each with one hold time and one think time; null for a run of
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
    /// Seed of the simulations.
    pub seed: u64,
    /// Number of threads at which the two asymptotes of the speed-up meet: linear growth, and the
    /// largest possible speed-up. Null if nothing limits the speed-up.
    pub knee: Option<f64>,
    /// 95% interval of `knee`, from that of `hold_share`.
    pub knee_interval95: Option<[f64; 2]>,
    /// Largest number of threads at which the last thread still adds at least half a thread's work,
    /// in the long run. Null if nothing limits the speed-up, or if the number is above ten million.
    pub recommended_threads: Option<u32>,
    /// 95% interval of `recommended_threads`, from that of `hold_share`.
    pub recommended_threads_interval95: Option<[u32; 2]>,
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
    /// The thread that has waited longest.
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
    /// Name of the model: `bounds`, `repairman`, `takacs`, `mva`, `cores` or `simulation`.
    pub model: String,
    /// Reason for choosing the model.
    pub why: String,
    /// Throughput relative to one thread that never waits.
    pub speedup: f64,
    /// 99% interval of the speed-up; null for closed forms, and for a single run without
    /// randomness.
    pub speedup_interval99: Option<[f64; 2]>,
    /// 95% interval of the speed-up, from that of `hold_share`: it covers the errors of the
    /// measured times and of the simulation, but not those of the model. Null if the times have no
    /// intervals.
    pub speedup_interval95: Option<[f64; 2]>,
    /// Tasks per second of all threads together; null if only `hold_share` is known.
    pub throughput_per_s: Option<f64>,
    /// Number of waiting threads (without holders), averaged over time, summed over all stripes.
    pub queue_mean: f64,
    /// 99% interval of `queue_mean`; null in the same cases as `speedup_interval99`.
    pub queue_mean_interval99: Option<[f64; 2]>,
    /// 95% interval of `queue_mean`, like `speedup_interval95`.
    pub queue_mean_interval95: Option<[f64; 2]>,
    /// Mean number of threads still waiting just after a thread acquired the lock (or stripe).
    pub queue_on_entry: f64,
    /// Fraction of the threads' time that is spent waiting for the lock, 0 to 1.
    pub wait_share: f64,
    /// Time for all tasks in seconds; null if there is no fixed number of tasks, or if only
    /// `hold_share` is known.
    pub total_s: Option<f64>,
    /// Upper bound on the speed-up.
    pub bound: f64,
    /// Speed-up by Amdahl's law, as if all threads always requested the lock at the same moment.
    /// This is a lower limit, not a prediction.
    pub amdahl: f64,
}

/// Predicted effect of a change to the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PredictedChange {
    /// The change. `hold/2` halves the hold time, `move-out/2` moves half the work under the lock
    /// outside, and `stripe/K` uses K locks instead of one.
    pub change: String,
    /// Number of threads.
    pub threads: u32,
    /// Name of the model.
    pub model: String,
    /// Tasks per second with the change; null if only `hold_share` is known.
    pub throughput_per_s: Option<f64>,
    /// Throughput with the change, as a multiple of the throughput of one thread that never waits,
    /// without the change.
    pub speedup: f64,
    /// Throughput with the change, relative to the same number of threads without the change.
    pub gain: f64,
    /// 95% interval of `gain`, from that of `hold_share`.
    pub gain_interval95: Option<[f64; 2]>,
}
