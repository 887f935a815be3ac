//! Round trips, and messages in one direction, in blocks and records.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Count, Fraction, Histogram, Ns};

/// Figures of a block of hand-offs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HandOffBlockFigures {
    /// One-way times, if the clocks of both CPUs agree closely enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<OneWayBlock>,
    /// Share of the exchanges that began with both ends on the same CPU; only in stamped blocks of
    /// free placement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_cpu_share: Option<Fraction>,
}

/// One-way times stamped on both CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneWayBlock {
    /// Times in both directions, without negative differences.
    pub histogram: Histogram,
    /// Number of negative differences.
    pub negative: Count,
    /// Bound on the disagreement of the clocks in either direction, in nanoseconds.
    pub clock_bound_ns: Ns,
}

/// Figures of hand-offs other than their times and their rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HandOffFigures {
    /// Free placement only: share of the exchanges that began with both ends on the same CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_cpu_share: Option<Fraction>,
}
