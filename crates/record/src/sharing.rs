//! Receivers that share the messages of a sender, as blocks and records describe them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Count, Fraction};

/// The receivers of a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkersBlock {
    /// True if each receiver has a queue of its own, among which the sender deals out messages in
    /// turn; false if all take them from one queue.
    pub bundle: bool,
    /// Messages by receiver.
    pub messages: Vec<Count>,
}

/// Receivers that share the messages of a sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workers {
    /// True if each receiver has a queue of its own, among which the sender deals out messages in
    /// turn; false if all take them from one queue.
    pub bundle: bool,
    /// Jain's index of the receivers' messages in a block, mean over blocks; 1 if all received
    /// equally many.
    pub fairness: Option<Fraction>,
}
