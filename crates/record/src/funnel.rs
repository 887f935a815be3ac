//! Important messages among those of chatty senders, as blocks and records describe them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Fraction, Histogram, Ns, Quantiles};

/// The chatty senders of a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunnelBlock {
    /// Delivery times of their messages; null without any.
    pub chatty: Option<Histogram>,
    /// Mean delivery time by chatty sender.
    pub means_ns: Vec<Ns>,
}

/// Chatty senders next to those of important messages, of which the record's values are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Funnel {
    /// Quantiles of the delivery times of their messages.
    pub chatty: Quantiles,
    /// Jain's index of their mean delivery times in a block, mean over blocks; 1 if all are equal,
    /// null without several.
    pub fairness: Option<Fraction>,
}
