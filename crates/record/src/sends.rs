//! Sends that a queue may refuse, as blocks describe them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Count;

/// What became of the messages of a block whose send calls are its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SendsBlock {
    /// Number of messages that the queue refused.
    pub refused: Count,
    /// Number of messages that the queue took and dropped later.
    pub dropped: Count,
}
