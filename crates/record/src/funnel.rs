//! Important messages among those of chatty senders, as blocks and records describe them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Count, Fraction, Histogram, Ns, Quantiles};

/// The chatty senders of a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunnelBlock {
    /// Delivery times of their messages; null without any.
    pub chatty: Option<Histogram>,
    /// Mean delivery time by chatty sender.
    pub means_ns: Vec<Ns>,
    /// Stalls of a sender; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<StallsBlock>,
}

/// Stalls of one sender in the middle of send calls, in a block: those in whose first half another
/// sender began a send call. They are judged by these calls and their messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StallsBlock {
    /// Number of stalls.
    pub count: Count,
    /// Stalls that held up the receiver: it got at least one of the messages only afterwards.
    pub held_receiver: Count,
    /// Stalls that held up senders: at least one of the calls returned only afterwards.
    pub held_senders: Count,
    /// Longest time of these messages from the begin of their send call until the receiver had
    /// them.
    pub longest_delivery_ns: Ns,
    /// Longest of these calls.
    pub longest_send_ns: Ns,
}

/// Chatty senders next to those of important messages, of which the record's values are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Funnel {
    /// Quantiles of the delivery times of their messages.
    pub chatty: Quantiles,
    /// Jain's index of their mean delivery times in a block, mean over blocks; 1 if all are equal,
    /// null without several.
    pub fairness: Option<Fraction>,
    /// Stalls of a chatty sender, whose own messages are not counted; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<Stalls>,
}

/// Stalls of one sender in the middle of send calls, over all blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stalls {
    /// Number of stalls in whose first half another sender began a send call.
    pub count: Count,
    /// Share of these after which the receiver got messages of others that were sent in that half:
    /// the stall held it up. Null without stalls.
    pub held_receiver: Option<Fraction>,
    /// Its 95% interval (E. B. Wilson).
    pub held_receiver_interval95: Option<[Fraction; 2]>,
    /// Share of these after which send calls of others returned that had begun in that half: the
    /// stall held them up. Null without stalls.
    pub held_senders: Option<Fraction>,
    /// Its 95% interval (E. B. Wilson).
    pub held_senders_interval95: Option<[Fraction; 2]>,
    /// Longest time of a message of others, sent in that half, from the begin of its send call
    /// until the receiver had it. Null without stalls.
    pub longest_delivery_ns: Option<Ns>,
    /// Longest send call of others that began in that half. Null without stalls.
    pub longest_send_ns: Option<Ns>,
}
