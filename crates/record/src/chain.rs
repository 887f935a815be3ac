//! Queues in a row, as blocks and records describe them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Histogram, Ns, Quantiles};

/// The hops of a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChainBlock {
    /// Times from one thread to the next, by hop: from the moment at which a message was sent, or
    /// received by the thread before, until it was received.
    pub hops: Vec<Histogram>,
}

/// The hops of a chain of queues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Chain {
    /// Quantiles of the times of each hop.
    pub hops: Vec<Quantiles>,
    /// Sum of their medians.
    pub p50_sum_ns: Option<Ns>,
    /// Sum of their 99% quantiles.
    pub p99_sum_ns: Option<Ns>,
}
