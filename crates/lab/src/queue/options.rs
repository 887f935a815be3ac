//! Options that replace a scenario's defaults.

use std::sync::Arc;

use threadtoll_record::Load;

use super::Trace;

/// Requested settings; `None` keeps the scenario's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// Maximum batch size; 1 for single messages.
    pub batch: Option<u64>,
    /// Sender counts.
    pub senders: Option<Vec<u32>>,
    /// Capacities of bounded queues.
    pub capacities: Option<Vec<u64>>,
    /// Measuring time per cell, in nanoseconds.
    pub time_ns: Option<u64>,
    /// Stamped samples per cell.
    pub samples: Option<u64>,
    /// Loads, as returned by `loads` in the scenario's module.
    pub loads: Option<Vec<Load>>,
    /// Message sizes, in bytes.
    pub payloads: Option<Vec<u64>>,
}

/// Requested arrivals.
#[derive(Clone, Debug, PartialEq)]
pub enum ArrivalsChoice {
    /// Evenly spaced.
    Uniform,
    /// At exponentially distributed intervals.
    Poisson,
    /// From a file.
    File(Arc<Trace>),
}

/// Says why options do not suit a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsuitable {
    /// The reason.
    pub why: String,
    /// Advice.
    pub hint: &'static str,
}
