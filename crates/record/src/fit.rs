use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The universal scalability law, fitted to measured throughput: a description of the measurement,
/// not a prediction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fit {
    /// Throughput of one thread, in the unit of the input.
    pub gamma: f64,
    /// Contention: the serial share of the work.
    pub alpha: f64,
    /// Coherency: the cost of keeping each pair of threads in agreement.
    pub beta: f64,
    /// Root mean square of the relative errors of the measured points.
    pub relative_rms: f64,
    /// Number of threads at which throughput peaks: `curve_peak_threads`, if the points show that
    /// throughput falls beyond it. Null unless the point with the most threads is beyond it, and
    /// lower by more than 1% and by more than twice the standard error of a point.
    pub peak_threads: Option<u32>,
    /// Number of threads at which the curve is highest; null if the curve still rises at
    /// `trusted_up_to`.
    pub curve_peak_threads: Option<u32>,
    /// Largest number of threads measured.
    pub measured_up_to: u32,
    /// Largest number of threads for which the curve may be used: twice the largest measured
    /// number.
    pub trusted_up_to: u32,
    /// The curve at the measured and at the requested numbers of threads, in ascending order.
    pub rows: Vec<FittedRow>,
}

/// The fitted curve at one number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FittedRow {
    /// Number of threads; null if it was not given, so that the row is about `in_flight` threads.
    pub threads: Option<u32>,
    /// Measured throughput; null if this number of threads was not measured.
    pub measured: Option<f64>,
    /// Throughput on the curve.
    pub fitted: f64,
    /// Measured latency, in nanoseconds; null if it was not given.
    pub latency_ns: Option<f64>,
    /// Mean number of requests in progress: throughput per second × latency, by Little's law. Null
    /// without a latency.
    pub in_flight: Option<f64>,
}

impl FittedRow {
    /// Number of threads, given or by Little's law.
    pub fn number(&self) -> f64 {
        self.threads.map(f64::from).or(self.in_flight).unwrap_or(f64::NAN)
    }
}
