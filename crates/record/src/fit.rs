//! A curve through throughputs that were measured with several numbers of threads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The universal scalability law, fitted to measured throughputs: it repeats what was measured and
/// predicts nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fit {
    /// Throughput of one thread, in the unit of the measured ones.
    pub gamma: f64,
    /// Contention: the share of the work that one thread at a time can do.
    pub alpha: f64,
    /// Coherency: the cost of keeping each pair of threads in agreement.
    pub beta: f64,
    /// Root of the mean squared relative error over the measured points.
    pub relative_rms: f64,
    /// Number of threads at which the curve is highest; null if it does not clearly fall up to
    /// `trusted_up_to`: by more than 1%, and by more than its own error.
    pub peak_threads: Option<u32>,
    /// Most threads that were measured.
    pub measured_up_to: u32,
    /// Most threads for which the curve may be read: twice the most that were measured.
    pub trusted_up_to: u32,
    /// The measured points and the other numbers of threads asked for, in ascending order.
    pub rows: Vec<FittedRow>,
}

/// The curve at one number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FittedRow {
    /// Number of threads.
    pub threads: u32,
    /// Measured throughput; null if this number of threads was not measured.
    pub measured: Option<f64>,
    /// Throughput according to the curve.
    pub fitted: f64,
}
