use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Count, Ns};

/// Resident memory of a process, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResidentBytes {
    /// Memory before the queue is created.
    pub before: Count,
    /// Memory while the queue holds its messages.
    pub full: Count,
    /// Memory after the messages have been received.
    pub drained: Count,
}

/// Figures of a block that measures a queue holding many messages. Times are per call, as medians
/// over the block's stretches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallsBlock {
    /// Time of a send call.
    pub send_ns: Ns,
    /// Time of a receive call.
    pub receive_ns: Ns,
    /// Memory of the process; null if the kernel does not report it.
    pub resident_bytes: Option<ResidentBytes>,
}

/// Times of calls on a queue that holds many messages, as medians over blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calls {
    /// Time of one send call, in nanoseconds.
    pub send_ns: Option<Ns>,
    /// 95% interval of `send_ns`, from resampling blocks.
    pub send_interval95: Option<[Ns; 2]>,
    /// Time of one receive call, in nanoseconds.
    pub receive_ns: Option<Ns>,
    /// 95% interval of `receive_ns`, from resampling blocks.
    pub receive_interval95: Option<[Ns; 2]>,
}

/// Figures of a cell whose queue holds many messages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DepthFigures {
    /// Times of send and receive calls.
    pub calls: Calls,
    /// Resident memory of the process; each figure is a median over blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident_bytes: Option<ResidentBytes>,
}
