use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Count, Fraction, Histogram, Ns};

/// Figures of a block that measures hand-offs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HandOffBlockFigures {
    /// One-way times; absent if the clocks of the two CPUs do not agree closely enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<OneWayBlock>,
    /// Fraction of the round trips that began with both threads on the same CPU; only in stamped
    /// blocks with free placement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_cpu_share: Option<Fraction>,
}

/// Times from a stamp on the sender's CPU to a stamp on the receiver's CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneWayBlock {
    /// One-way times in both directions, without the negative ones.
    pub histogram: Histogram,
    /// Number of negative times, which occur if the clocks of the two CPUs disagree.
    pub negative: Count,
    /// Largest possible disagreement of the two CPUs' clocks, in either direction, in nanoseconds.
    pub clock_bound_ns: Ns,
}

/// Figures of hand-offs other than times and rates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HandOffFigures {
    /// Fraction of the round trips that began with both threads on the same CPU; only with free
    /// placement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_cpu_share: Option<Fraction>,
}
