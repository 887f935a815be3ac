use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A measured lock from which a prediction took its times (`predict --from`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredLock {
    /// Name of the file.
    pub file: String,
    /// Kind of the file.
    pub source: MeasuredBy,
    /// Name of the lock.
    pub lock: String,
    /// True if the figures come from a simulated machine.
    pub simulated: bool,
    /// Number of threads that used the lock.
    pub threads: u32,
    /// Fraction of the time for which the lock was held; null in a contention record.
    pub held_share: Option<f64>,
    /// 95% interval of `held_share`.
    pub held_share_interval95: Option<[f64; 2]>,
    /// 95% interval of the mean hold time, in nanoseconds; null if the file has none.
    pub hold_ns_interval95: Option<[f64; 2]>,
    /// 95% interval of the mean think time, in nanoseconds; null if the file has none.
    pub think_ns_interval95: Option<[f64; 2]>,
    /// Measured number of waiting threads, averaged over time.
    pub queue_mean: Option<f64>,
    /// 95% interval of `queue_mean`.
    pub queue_mean_interval95: Option<[f64; 2]>,
    /// True if holds were too short for the profiler, so that `queue_mean` is a lower bound.
    pub queue_is_lower_bound: bool,
    /// Measured throughput relative to one thread without the lock; null in a profile.
    pub speedup: Option<f64>,
    /// 95% interval of `speedup`.
    pub speedup_interval95: Option<[f64; 2]>,
    /// Arrivals at the lock: acquisitions per second of all threads together; null in a profile.
    pub acquisitions_per_s: Option<f64>,
    /// 95% interval of `acquisitions_per_s`.
    pub acquisitions_per_s_interval95: Option<[f64; 2]>,
    /// Mean time from a release until a waiting thread had the lock, in nanoseconds; null if
    /// unknown. The prediction leaves it out.
    pub handoff_ns: Option<f64>,
    /// True if the profile shows that more than this lock sets the pace of its threads, so that it
    /// predicts no other numbers of threads.
    pub others_set_pace: bool,
}

/// Kind of the file with a measured lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MeasuredBy {
    /// A profile of a program.
    Profile,
    /// Records of `contention`.
    Contention,
}
