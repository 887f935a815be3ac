//! Open loops, in which messages are sent at planned times: figures of blocks and records.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Burst, BurstBlock, Count, Funnel, FunnelBlock, Histogram, Idle, IdleBlock, Lost, Ns, PerSecond,
    Quantiles,
};

/// Figures of a block in which messages were sent at planned times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenLoopBlockFigures {
    /// Lateness, and numbers of messages due and received.
    pub open_loop: OpenLoopBlock,
    /// Bursts only: figures of their first and last messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<BurstBlock>,
    /// Messages that were lost; absent if the queue may not lose any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sends: Option<Lost>,
    /// Figures of the chatty senders' messages; only if important messages are sent among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub funnel: Option<FunnelBlock>,
    /// Rare messages only: idle states of the receiver's CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdleBlock>,
}

/// Figures of an open loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenLoopFigures {
    /// Rate, lateness and saturation.
    pub open_loop: OpenLoop,
    /// Bursts only: figures of their first and last messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Burst>,
    /// Number of messages that the queue refused; absent if the queue may not lose any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Count>,
    /// Number of messages that the queue accepted but dropped later; absent if the queue may not
    /// lose any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<Count>,
    /// Figures of the chatty senders' messages; only if important messages are sent among them. The
    /// record's own values are those of the important messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub funnel: Option<Funnel>,
    /// Rare messages only: idle states of the receiver's CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
}

/// Figures of a block of an open loop (messages are sent at planned times), in addition to the
/// messages' delivery times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenLoopBlock {
    /// Lateness of the sender itself: the time by which a send call began later than it should
    /// have. A send call should begin when its message is due, or when the previous send calls
    /// would have returned if the sender had not delayed them, whichever is later.
    pub lateness: Histogram,
    /// Time from when the first counted message was due until the last one was due, in nanoseconds.
    pub window_ns: Count,
    /// Number of messages due within `window_ns`.
    pub due: Count,
    /// Number of messages received within `window_ns`.
    pub received: Count,
    /// CPU time of the receiver plus time in send calls, over all messages of the block, in
    /// nanoseconds. The sender's wait for the next message is not included.
    pub busy_ns: Count,
    /// Number of messages that `busy_ns` covers; 0 if `busy_ns` is unknown.
    pub busy_messages: Count,
    /// Number of messages that appear to have been received before they were due, because the two
    /// times were read from the clocks of two CPUs, which may disagree.
    pub negative: Count,
    /// Largest possible disagreement of these two clocks, in either direction, in nanoseconds; null
    /// if the threads were not pinned.
    pub clock_bound_ns: Option<Ns>,
}

impl OpenLoopBlock {
    pub(crate) fn validate(&self) -> Result<(), &'static str> {
        if self.window_ns.get() == 0 || self.due.get() == 0 {
            return Err("the block's open loop has no duration or no messages");
        }
        Ok(())
    }
}

/// Figures of an open loop (messages are sent at planned times), in addition to the distribution of
/// delivery times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenLoop {
    /// Number of messages due per second.
    pub rate_per_s: Option<PerSecond>,
    /// Lateness of the sender.
    pub lateness: Lateness,
    /// Number of messages received per second, median over blocks.
    pub achieved_per_s: Option<PerSecond>,
    /// 95% interval of `achieved_per_s`, from resampling blocks.
    pub achieved_interval95: Option<[PerSecond; 2]>,
    /// True if, with 95% confidence, fewer than 95% of the messages due in the measured time were
    /// received within that time. If there are at least six undisturbed blocks, only these count.
    pub saturated: bool,
    /// Number of messages per second that the queue transferred; null unless it was saturated.
    pub saturated_at_per_s: Option<PerSecond>,
    /// Its 95% interval.
    pub saturated_at_interval95: Option<[PerSecond; 2]>,
    /// True if the sender's lateness exceeds a quarter of the delivery time, at the median or at
    /// the 99% quantile, or if a stamp takes more than a quarter of a saturated queue's time per
    /// message.
    pub generator_was_limit: bool,
    /// CPU time of the receiver plus time in send calls, per message.
    pub cpu_ns_per_message: Option<Ns>,
    /// 95% interval of the CPU time per message, from resampling blocks; absent from files of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_interval95: Option<[Ns; 2]>,
    /// Largest possible disagreement of the two CPUs' clocks, in either direction, in nanoseconds.
    pub clock_bound_ns: Option<Ns>,
}

/// Distribution of the sender's own lateness, as defined in [`OpenLoopBlock`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lateness {
    /// Its quantiles.
    pub quantiles: Quantiles,
    /// The distribution; null if there is none.
    pub histogram: Option<Histogram>,
}
