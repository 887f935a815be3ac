//! One uninterrupted measurement of a cell.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::WORST;
use crate::{BlockFigures, Count, Histogram, Ns, OwnProgram, Seconds, Text};

/// The loop that produced a block.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum BlockKind {
    /// Many round trips, or messages, between two stamps: yields means, medians, rates and ratios.
    Stretch,
    /// One stamp per message: yields the distribution and its tail.
    Stamped,
}

/// One uninterrupted measurement of a cell, written as soon as it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Block {
    /// Id of the run.
    pub run: Text,
    /// Index of the group in the plan.
    pub group: usize,
    /// Number of attempts at the group, including this one.
    pub attempt: u32,
    /// Index of the cell in its group.
    pub cell: usize,
    /// Number of the process that measured the block, from 0.
    #[serde(default)]
    pub process: u32,
    /// Round of the group, from 0.
    pub seq: u32,
    /// When the block ended, RFC 3339 UTC.
    pub at: Text,
    /// The loop that produced the block.
    pub kind: BlockKind,
    /// Number of round trips, of messages, of calls on a queue, or of acquisitions of a lock.
    pub count: Count,
    /// Duration in nanoseconds.
    pub elapsed_ns: Count,
    /// Mean round trip, or mean time per message of a stream, in nanoseconds.
    pub mean: Ns,
    /// Shortest value in nanoseconds: of the stamped round trips, or of the mean round trips of the
    /// stretches.
    pub min: Ns,
    /// Longest of these values, in nanoseconds.
    pub max: Ns,
    /// Stamped blocks: the round trips. Stretch blocks: the mean round trip of each stretch or, for
    /// a stream, the mean time per message.
    pub histogram: Option<Histogram>,
    /// Number of round trips that took longer than the plan's limit; null in stretch blocks.
    pub over: Option<Count>,
    /// Figures that depend on the kind of cell.
    #[serde(flatten)]
    pub figures: BlockFigures,
    /// The program of another language that measured the cell itself, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_program: Option<OwnProgram>,
    /// Samples of this block that were among the 64 longest of their cell at the time when the
    /// block ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worst: Vec<Worst>,
    /// CPU time and context switches of both ends.
    pub cost: BlockCost,
    /// Number of round trips (for a stream, of messages) that the cost covers: those of the block
    /// and the few around it.
    pub cost_round_trips: Count,
    /// Disturbances during the block.
    pub disturbance: Disturbance,
    /// True if no disturbance reached its threshold.
    pub clean: bool,
}

impl Block {
    pub(crate) fn validate(&self) -> Result<(), &'static str> {
        if self.count.get() == 0 {
            return Err("the block has no values");
        }
        if self.histogram.as_ref().is_some_and(|histogram| histogram.count() > self.count.get()) {
            return Err("the block's histogram holds more values than the block");
        }
        if self.over.is_some_and(|over| over > self.count) {
            return Err("more values are over the limit than the block has values");
        }
        if self.worst.len() > WORST {
            return Err("the block has too many longest samples");
        }
        match &self.figures {
            BlockFigures::OpenLoop(own) => own.open_loop.validate(),
            BlockFigures::Contention { contention } => contention.validate(self.count),
            BlockFigures::SendCall { sends } => {
                let lost = sends.refused.get().saturating_add(sends.dropped.get());
                let fits = lost <= self.count.get();
                fits.then_some(()).ok_or("more messages were lost than the block has messages")
            }
            _ => Ok(()),
        }
    }
}

/// CPU time and context switches of both ends in one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockCost {
    /// Time in user mode, in nanoseconds.
    pub user_ns: Count,
    /// Time in the kernel, in nanoseconds.
    pub system_ns: Count,
    /// Voluntary context switches.
    pub voluntary_switches: Count,
    /// Involuntary context switches.
    pub involuntary_switches: Count,
}

/// Why a block is marked as disturbed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The reference cell changed by more than 10% around the block.
    ReferenceDrift,
    /// All CPUs, working at once, did over 10% more or less work than when cells were predicted.
    WorkDrift,
    /// A pinned end ran on the wrong CPU.
    Migration,
    /// Another thread preempted an end.
    InvoluntarySwitch,
    /// An end waited in a scheduler's run queue.
    RunQueueDelay,
    /// The hypervisor took CPU time.
    Steal,
    /// An end that spun lost time for an unknown reason.
    Gap,
    /// An end had a page fault.
    PageFault,
    /// The control group's quota or the temperature throttled the CPUs.
    Throttled,
}

impl Cause {
    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            Cause::ReferenceDrift => "reference-drift",
            Cause::WorkDrift => "work-drift",
            Cause::Migration => "migration",
            Cause::InvoluntarySwitch => "involuntary-switch",
            Cause::RunQueueDelay => "run-queue-delay",
            Cause::Steal => "steal",
            Cause::Gap => "gap",
            Cause::PageFault => "page-fault",
            Cause::Throttled => "throttled",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Disturbances of the machine during a block; null if the kernel does not report them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disturbance {
    /// The causes that reached their thresholds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// CPU migrations of the ends.
    #[serde(default)]
    pub migrations: Option<Count>,
    /// Time that the ends waited in run queues, in nanoseconds.
    #[serde(default)]
    pub run_queue_ns: Option<Count>,
    /// CPU time stolen by the hypervisor, in nanoseconds.
    #[serde(default)]
    pub steal_ns: Option<Count>,
    /// Page faults of the ends.
    #[serde(default)]
    pub page_faults: Count,
    /// Time that an end lost while it spun, for an unknown reason, in nanoseconds; null if no end
    /// spins.
    #[serde(default)]
    pub gap_ns: Option<Count>,
    /// Number of times that the control group or the temperature throttled the CPUs.
    #[serde(default)]
    pub throttled: Option<Count>,
}

/// One of the longest samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Worst {
    /// When the sample ended, in seconds since the start of the run.
    pub at_s: Seconds,
    /// The round trip in nanoseconds.
    pub ns: Ns,
    /// The CPU on which the first end received the reply.
    pub cpu: u32,
    /// The likely cause; null if none was seen.
    pub cause: Option<Cause>,
}
