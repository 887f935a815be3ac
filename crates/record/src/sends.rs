//! Sends that a queue may refuse, as blocks describe them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Count;

/// Messages of a block that were lost. Values of the block are the send calls of all messages, or
/// the deliveries of those that were received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SendsBlock {
    /// Number of messages that the queue refused.
    pub refused: Count,
    /// Number of messages that the queue took and dropped later.
    pub dropped: Count,
}
