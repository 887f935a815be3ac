//! Queues that hold many messages: figures of blocks and of records.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Count, Ns};

/// Memory of a process, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResidentBytes {
    /// Memory before the queue is created.
    pub before: Count,
    /// Memory while the queue holds its messages.
    pub full: Count,
    /// Memory after the messages have been received.
    pub drained: Count,
}

/// A block's figures for a queue that holds many messages. Each time is that of one call, as a
/// median over the block's stretches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallsBlock {
    /// Time of a send call.
    pub send_ns: Ns,
    /// Time of a receive call.
    pub receive_ns: Ns,
    /// Memory of the process; null if the kernel does not report it.
    pub resident_bytes: Option<ResidentBytes>,
}

/// Calls on a queue that holds many messages. Times are medians over blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calls {
    /// Time of a send call.
    pub send_ns: Option<Ns>,
    /// 95% interval of `send_ns`, from resampling blocks.
    pub send_interval95: Option<[Ns; 2]>,
    /// Time of a receive call.
    pub receive_ns: Option<Ns>,
    /// 95% interval of `receive_ns`, from resampling blocks.
    pub receive_interval95: Option<[Ns; 2]>,
}

/// Figures of a queue that holds many messages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DepthFigures {
    /// Times of calls.
    pub calls: Calls,
    /// Memory of the process; each figure is a median over blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident_bytes: Option<ResidentBytes>,
}
