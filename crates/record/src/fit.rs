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
    /// Number of threads at which the curve is highest. Null unless the curve then falls until
    /// `trusted_up_to`, by more than 1% and by more than its own error.
    pub peak_threads: Option<u32>,
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
    /// Number of threads.
    pub threads: u32,
    /// Measured throughput; null if this number of threads was not measured.
    pub measured: Option<f64>,
    /// Throughput on the curve.
    pub fitted: f64,
}
