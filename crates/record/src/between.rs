//! Messages between which caches are emptied or pages are given back, as blocks and records
//! describe them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Count, Fraction, Ratio};

/// What was done between the messages of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BetweenBlock {
    /// Bytes that the receiver read after each message to empty its CPU's caches, or bytes of the
    /// pages that were given back.
    pub bytes: Count,
    /// Page faults of the receiver.
    pub page_faults: Count,
    /// Number of messages before which it was done: all but the first.
    pub messages: Count,
    /// Number of messages that were due before both ends were ready for them.
    pub unready: Count,
}

/// What was done between the messages of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BetweenMessages {
    /// Bytes that the receiver read after each message to empty its CPU's caches, or bytes of the
    /// pages that were given back; the least of all blocks.
    pub bytes: Count,
    /// Page faults of the receiver per message.
    pub page_faults_per_message: Ratio,
    /// Share of the messages that were due before both ends were ready for them.
    pub unready_share: Fraction,
}
