//! Messages at intended times, as blocks and records describe them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Burst, BurstBlock, Count, Funnel, FunnelBlock, Histogram, Idle, IdleBlock, Lost, Ns, PerSecond,
    Quantiles,
};

/// Figures of a block of an open loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenLoopBlockFigures {
    /// Lateness, and messages that were due and received.
    pub open_loop: OpenLoopBlock,
    /// Bursts only: their first and last messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<BurstBlock>,
    /// Messages that were lost; absent where none may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sends: Option<Lost>,
    /// Important messages among others only: the others.
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
    /// Bursts only: their first and last messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Burst>,
    /// Number of messages that the queue refused; absent where none may be lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Count>,
    /// Number of messages that the queue took and dropped later; absent as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<Count>,
    /// Important messages among others only: the others. The record's values are those of the
    /// important ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub funnel: Option<Funnel>,
    /// Rare messages only: idle states of the receiver's CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
}

/// What a block of an open loop has in addition to the messages' delivery times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenLoopBlock {
    /// Time from the moment at which a message was due, and the send calls before it would have
    /// returned had the sender lost no time of its own, until its send call began.
    pub lateness: Histogram,
    /// Time from the first message that counts to the last one, as intended, in nanoseconds.
    pub window_ns: Count,
    /// Messages that were due in this time.
    pub due: Count,
    /// Messages that were received in this time.
    pub received: Count,
    /// CPU time of the receiver and time in send calls, over all messages of the block, in
    /// nanoseconds. The time in which the sender waits for the next message is not part of it.
    pub busy_ns: Count,
    /// Number of messages that `busy_ns` covers; 0 if the time is not known.
    pub busy_messages: Count,
    /// Number of messages that were received, by the clock of one CPU, before they were due by the
    /// clock of another.
    pub negative: Count,
    /// Two-sided bound on the disagreement of these clocks, in nanoseconds; null if the threads
    /// were not pinned.
    pub clock_bound_ns: Option<Ns>,
}

impl OpenLoopBlock {
    pub(crate) fn validate(&self) -> Result<(), &'static str> {
        if self.window_ns.get() == 0 || self.due.get() == 0 {
            return Err("the open loop of the block lasted no time, or had no message");
        }
        Ok(())
    }
}

/// Figures of an open loop beyond the distribution of delivery times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenLoop {
    /// Messages per second that were due.
    pub rate_per_s: Option<PerSecond>,
    /// Lateness of the sender.
    pub lateness: Lateness,
    /// Messages per second that were received, median over blocks.
    pub achieved_per_s: Option<PerSecond>,
    /// Its 95% interval, from resampling blocks.
    pub achieved_interval95: Option<[PerSecond; 2]>,
    /// True if surely fewer than 95% of the messages that were due were received meanwhile, in
    /// undisturbed blocks if there are at least six.
    pub saturated: bool,
    /// Messages per second of a saturated queue.
    pub saturated_at_per_s: Option<PerSecond>,
    /// Its 95% interval.
    pub saturated_at_interval95: Option<[PerSecond; 2]>,
    /// True if the sender's lateness is more than a quarter of the delivery time, at the median or
    /// at the 99% quantile, or if a stamp takes more than a quarter of a saturated queue's time per
    /// message.
    pub generator_was_limit: bool,
    /// CPU time of the receiver and time in send calls, per message.
    pub cpu_ns_per_message: Option<Ns>,
    /// Its 95% interval, from resampling blocks; absent from files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_interval95: Option<[Ns; 2]>,
    /// Two-sided bound on the disagreement of the two CPUs' clocks.
    pub clock_bound_ns: Option<Ns>,
}

/// Distribution of the sender's own lateness, which blocks define.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lateness {
    /// Its quantiles.
    pub quantiles: Quantiles,
    /// The distribution; null without any.
    pub histogram: Option<Histogram>,
}
