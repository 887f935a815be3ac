//! What models say of threads that share a lock: speed-up, queue and wait by number of threads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Fit;

/// An object that `--json` prints as a whole, told apart by its `schema`. It is no line of a file
/// of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "schema")]
pub enum Document {
    /// What `predict` answers.
    #[serde(rename = "threadtoll.prediction/1")]
    Prediction(Box<Prediction>),
    /// What `predict --fit` answers.
    #[serde(rename = "threadtoll.fit/1")]
    Fit(Fit),
}

/// What is predicted for threads that think, take a lock, hold it, and think again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// Mean time for which the lock is held.
    pub hold_ns: f64,
    /// Mean time of a thread outside the lock.
    pub think_ns: f64,
    /// Time from waking a thread until it runs.
    pub handoff_ns: f64,
    /// Cores to run on; null without a limit.
    pub cores: Option<u32>,
    /// Tasks of the run, each a hold and a think time; null for the long run.
    pub tasks: Option<u64>,
    /// How hold times are distributed: `fixed`, `exponential`, or the name of the file that says
    /// so.
    pub hold_shape: String,
    /// How think times are distributed, likewise.
    pub think_shape: String,
    /// Squared coefficient of variation of the hold times: 0 if they are fixed, 1 if exponential.
    pub hold_variation: f64,
    /// The same of the think times.
    pub think_variation: f64,
    /// Who gets the lock that is let go of.
    pub policy: PredictedPolicy,
    /// Equal locks that share the load; 1 if the lock is not striped.
    pub stripes: u32,
    /// Seed of what was simulated.
    pub seed: u64,
    /// Number of threads at which the asymptotes meet; null if nothing limits the threads.
    pub knee: Option<f64>,
    /// The largest number of threads whose last one still adds at least half of a thread's work in
    /// the long run; null if nothing limits the threads, or only beyond ten million.
    pub recommended_threads: Option<u32>,
    /// A row for each number of threads, in the order asked for.
    pub rows: Vec<PredictedRow>,
    /// What changes would bring the largest number of threads asked for, in the long run; empty if
    /// the lock is never held.
    pub what_if: Vec<PredictedChange>,
}

/// Who gets a lock that is let go of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PredictedPolicy {
    /// The thread that has waited longest.
    Fifo,
    /// Whoever comes by until the thread that was woken runs.
    Barging,
}

impl PredictedPolicy {
    /// Its name in files and options.
    pub fn name(self) -> &'static str {
        match self {
            PredictedPolicy::Fifo => "fifo",
            PredictedPolicy::Barging => "barging",
        }
    }
}

/// What is predicted for one number of threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PredictedRow {
    /// How many threads.
    pub threads: u32,
    /// Whose answer it is: `bounds`, `repairman`, `takacs`, `mva`, `cores` or `simulation`.
    pub model: String,
    /// Why that model was asked.
    pub why: String,
    /// Throughput against that of one thread that never waits.
    pub speedup: f64,
    /// 99% interval of the speed-up; null where a closed form answers, or a single run in which
    /// nothing is random.
    pub speedup_interval99: Option<[f64; 2]>,
    /// Tasks per second of all threads together.
    pub throughput_per_s: f64,
    /// Threads waiting at an average moment, the holder not counted; at all stripes together.
    pub queue_mean: f64,
    /// 99% interval of the mean queue; null as above.
    pub queue_mean_interval99: Option<[f64; 2]>,
    /// Threads waiting for the lock (or stripe) as seen by a thread that just got it.
    pub queue_on_entry: f64,
    /// Share of the threads' time spent waiting for the lock, 0 to 1.
    pub wait_share: f64,
    /// Time for all tasks in seconds; null if no number of tasks was asked for.
    pub total_s: Option<f64>,
    /// What the speed-up cannot exceed.
    pub bound: f64,
    /// What Amdahl's law says of the speed-up: a floor, not a prediction.
    pub amdahl: f64,
}

/// What a change would bring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PredictedChange {
    /// `hold/2`: the work under the lock takes half as long. `move-out/2`: half of it is done
    /// outside. `stripe/K`: the lock becomes K.
    pub change: String,
    /// How many threads.
    pub threads: u32,
    /// Whose answer it is.
    pub model: String,
    /// Tasks per second with the change.
    pub throughput_per_s: f64,
    /// Throughput with the change against one thread without it that never waits.
    pub speedup: f64,
    /// Throughput with the change against as many threads without it.
    pub gain: f64,
}
