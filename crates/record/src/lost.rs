use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Count;

/// Numbers of messages that were lost in a block, or in all blocks of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lost {
    /// Number of messages that the queue refused.
    pub refused: Count,
    /// Number of messages that the queue accepted but dropped later.
    pub dropped: Count,
}
