use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::MeasuredLock;

/// Prediction for a pool of servers (connections, workers, permits) at which callers arrive at
/// random, wait for a free server, and hold it for a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PoolPrediction {
    /// The measured lock from which hold times were taken; null if they were given.
    pub from: Option<MeasuredLock>,
    /// Mean number of arrivals per second.
    pub arrivals_per_s: f64,
    /// 95% interval of `arrivals_per_s`; null if the rate was given, or the file has none.
    pub arrivals_per_s_interval95: Option<[f64; 2]>,
    /// Mean time for which a caller holds a server, in nanoseconds.
    pub hold_ns: f64,
    /// 95% interval of `hold_ns`; null if the time was given, or the file has none. In a profile,
    /// `hold_ns` is the held share divided by `arrivals_per_s`.
    pub hold_ns_interval95: Option<[f64; 2]>,
    /// Distribution of hold times: `fixed`, `exponential`, or the name of a file.
    pub hold_shape: String,
    /// Squared coefficient of variation of the hold times: 0 if they are fixed, 1 if exponential.
    pub hold_variation: f64,
    /// Number of places to wait, beyond which callers are refused; null without a limit.
    pub queue: Option<u32>,
    /// Time after which a waiting caller gives up, in nanoseconds; null if none does.
    pub patience_ns: Option<f64>,
    /// The p99 wait must be below this time for a number of servers to be enough, in nanoseconds.
    pub target_ns: f64,
    /// Seed of the simulations.
    pub seed: u64,
    /// Mean number of arrivals during a hold time: the mean number of servers in use if nobody is
    /// turned away.
    pub offered_load: f64,
    /// Fewest servers that keep the p99 wait below `target_ns`, and turn away at most 1% of the
    /// callers. Null if that number is above a million, or not known.
    pub enough_servers: Option<u32>,
    /// `enough_servers` with arrivals and hold times at both ends of their intervals; null if they
    /// have none, or if it is null at an end.
    pub enough_servers_interval95: Option<[u32; 2]>,
    /// True if fewer servers may be enough, or, with `enough_servers` null, any number: simulations
    /// would have to be too long to tell.
    pub fewer_may_do: bool,
    /// One row for each requested number of servers, in the order of the request.
    pub rows: Vec<PoolRow>,
}

/// Prediction for one number of servers. If the queue grows without end, or a simulation would have
/// to be too long, figures are null.
///
/// The 95% intervals are those with arrivals and hold times at both ends of their intervals; they
/// include the error of a simulation. They are null if the times were given, and if a figure is
/// null at an end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PoolRow {
    /// Number of servers.
    pub servers: u32,
    /// Name of the model: `fluid` (the queue grows), `M/M/c`, `M/G/c/c`, `M/M/c/K`, `M/D/1` or
    /// `simulation`.
    pub model: String,
    /// Reason for choosing the model, or for null figures.
    pub why: String,
    /// Number by which the queue grows per second, in the long run; null if it does not grow
    /// without end. Zero if the servers can serve exactly what arrives.
    pub queue_growth_per_s: Option<f64>,
    /// Mean number of servers in use.
    pub in_use_mean: Option<f64>,
    /// Share of the callers who have to wait, including those who give up.
    pub wait_probability: Option<f64>,
    /// 99% interval of `wait_probability`. All intervals are null for closed forms.
    pub wait_probability_interval99: Option<[f64; 2]>,
    /// 95% interval of `wait_probability`.
    pub wait_probability_interval95: Option<[f64; 2]>,
    /// Mean wait of the callers who are served, in nanoseconds; zero for those who find a free
    /// server.
    pub wait_mean_ns: Option<f64>,
    /// 99% interval of `wait_mean_ns`.
    pub wait_mean_ns_interval99: Option<[f64; 2]>,
    /// 95% interval of `wait_mean_ns`.
    pub wait_mean_ns_interval95: Option<[f64; 2]>,
    /// Median wait of the callers who are served, in nanoseconds.
    pub wait_p50_ns: Option<f64>,
    /// 99% interval of `wait_p50_ns`.
    pub wait_p50_ns_interval99: Option<[f64; 2]>,
    /// 95% interval of `wait_p50_ns`.
    pub wait_p50_ns_interval95: Option<[f64; 2]>,
    /// Wait that 99% of the callers who are served do not exceed, in nanoseconds.
    pub wait_p99_ns: Option<f64>,
    /// 99% interval of `wait_p99_ns`.
    pub wait_p99_ns_interval99: Option<[f64; 2]>,
    /// 95% interval of `wait_p99_ns`.
    pub wait_p99_ns_interval95: Option<[f64; 2]>,
    /// Share of the callers who are refused because all places to wait are taken.
    pub refused_share: Option<f64>,
    /// 99% interval of `refused_share`.
    pub refused_share_interval99: Option<[f64; 2]>,
    /// 95% interval of `refused_share`.
    pub refused_share_interval95: Option<[f64; 2]>,
    /// Share of the callers who give up.
    pub gave_up_share: Option<f64>,
    /// 99% interval of `gave_up_share`.
    pub gave_up_share_interval99: Option<[f64; 2]>,
    /// 95% interval of `gave_up_share`.
    pub gave_up_share_interval95: Option<[f64; 2]>,
}
