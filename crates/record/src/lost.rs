//! Messages that a queue may lose, as blocks and records describe them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Count;

/// Messages of a block, or of all blocks of a cell, that were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lost {
    /// Number of messages that the queue refused.
    pub refused: Count,
    /// Number of messages that the queue took and dropped later.
    pub dropped: Count,
}
