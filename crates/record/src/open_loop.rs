use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Burst, BurstBlock, Count, Funnel, FunnelBlock, Histogram, Idle, IdleBlock, Lost, Ns, PerSecond,
    Quantiles,
};

/// Figures of a block in which messages were sent at planned times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenLoopBlockFigures {
    /// Lateness of the sender, and numbers of messages due and received.
    pub open_loop: OpenLoopBlock,
    /// Figures of the bursts' first and last messages; absent without bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<BurstBlock>,
    /// Numbers of lost messages; absent if the queue may not lose any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sends: Option<Lost>,
    /// Figures of the chatty senders' messages; absent if there are no important messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub funnel: Option<FunnelBlock>,
    /// Idle states of the receiver's CPU; absent unless messages are rare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdleBlock>,
}

/// Figures of a cell whose messages were sent at planned times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenLoopFigures {
    /// Rate, lateness of the sender, and saturation.
    pub open_loop: OpenLoop,
    /// Figures of the bursts' first and last messages; absent without bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Burst>,
    /// Number of messages that the queue refused; absent if the queue may not lose any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Count>,
    /// Number of messages that the queue accepted but dropped later; absent if the queue may not
    /// lose any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<Count>,
    /// Figures of the chatty senders' messages; absent if there are no important messages. The
    /// record's own values are those of the important messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub funnel: Option<Funnel>,
    /// Idle states of the receiver's CPU; absent unless messages are rare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
}

/// Figures of a block of an open loop (messages are sent at planned times), in addition to the
/// messages' delivery times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenLoopBlock {
    /// Lateness of the sender itself: the time by which it starts a send call too late. A send call
    /// should start as soon as its message is due and the previous send calls would have returned
    /// if the sender had not delayed them.
    pub lateness: Histogram,
    /// Time between the due times of the first and the last counted message, in nanoseconds.
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
    /// Number of messages that appear to have been received before they were due. The two times are
    /// from the clocks of two CPUs, which may disagree.
    pub negative: Count,
    /// Largest possible disagreement of the two CPUs' clocks, in either direction, in nanoseconds;
    /// null if the threads were not pinned.
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
    /// Messages per second that the queue transferred; null if the queue was not saturated.
    pub saturated_at_per_s: Option<PerSecond>,
    /// 95% interval of `saturated_at_per_s`.
    pub saturated_at_interval95: Option<[PerSecond; 2]>,
    /// True if the generator limited the figures. Either the sender's lateness exceeds a quarter of
    /// the delivery time, at the median or at the 99% quantile; or a stamp takes more than a
    /// quarter of a saturated queue's time per message.
    pub generator_was_limit: bool,
    /// CPU time of the receiver plus time in send calls, per message, in nanoseconds.
    pub cpu_ns_per_message: Option<Ns>,
    /// 95% interval of `cpu_ns_per_message`, from resampling blocks; absent from files of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_interval95: Option<[Ns; 2]>,
    /// Largest possible disagreement of the two CPUs' clocks, in either direction, in nanoseconds.
    pub clock_bound_ns: Option<Ns>,
}

/// Distribution of the sender's own lateness, as defined in [`OpenLoopBlock`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lateness {
    /// Quantiles of the lateness.
    pub quantiles: Quantiles,
    /// Distribution of the lateness; null if there is none.
    pub histogram: Option<Histogram>,
}
