//! One uninterrupted measured stretch of a cell.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ContentionBlock, Count, Fraction, Histogram, Ns, Seconds, Text, fold};

/// Which of the two loops made a block.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum BlockKind {
    /// Many round trips, or messages, between two stamps: means, medians, rates and ratios come
    /// from these.
    Stretch,
    /// One stamp per message: the distribution and its tail come from these.
    Stamped,
}

/// One uninterrupted measured stretch of a cell, written as soon as it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Block {
    /// Names the run.
    pub run: Text,
    /// Index of the group in the plan.
    pub group: usize,
    /// Number of attempts at the group, this one included.
    pub attempt: u32,
    /// Index of the cell in its group.
    pub cell: usize,
    /// Round of the group, from 0.
    pub seq: u32,
    /// When the block ended, RFC 3339 UTC.
    pub at: Text,
    /// Which loop made it.
    pub kind: BlockKind,
    /// Round trips in it, messages of a stream, or acquisitions of a lock.
    pub count: Count,
    /// Its length in nanoseconds.
    pub elapsed_ns: Count,
    /// Mean round trip, or mean time per message of a stream, in nanoseconds.
    pub mean: Ns,
    /// Shortest value in nanoseconds: of a stamped round trip, or of the mean round trip of a
    /// stretch.
    pub min: Ns,
    /// Longest value in nanoseconds, likewise.
    pub max: Ns,
    /// Stamped: the round trips. Stretch: the mean round trip, or mean time per message, of each
    /// stretch.
    pub histogram: Option<Histogram>,
    /// Round trips longer than the plan's limit; null in a block of stretches.
    pub over: Option<Count>,
    /// One-way times, where the clocks of both CPUs were shown to agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<OneWayBlock>,
    /// Share of the exchanges that began with both ends on one CPU; only in stamped blocks of free
    /// placement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_cpu_share: Option<Fraction>,
    /// Of a lock: what its threads did. The values of the block are then their waits, or of
    /// stretches the mean time from one acquisition to the next of all threads together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contention: Option<ContentionBlock>,
    /// The samples of this block that were among the 64 longest of their cell when it ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worst: Vec<Worst>,
    /// CPU time and context switches of both ends together.
    pub cost: BlockCost,
    /// Round trips, or messages of a stream, that the cost is of: those of the block and the few
    /// around it.
    pub cost_round_trips: Count,
    /// Disturbances of the machine meanwhile.
    pub disturbance: Disturbance,
    /// True where nothing of it reached its threshold.
    pub clean: bool,
}

impl Block {
    /// Checks what was read from a file.
    pub(crate) fn validate(&self) -> Result<(), &'static str> {
        if self.count.get() == 0 {
            return Err("the block has no values");
        }
        if self.histogram.as_ref().is_some_and(|histogram| histogram.count() > self.count.get()) {
            return Err("the histogram of the block holds more values than the block");
        }
        if self.over.is_some_and(|over| over > self.count) {
            return Err("more values of the block are over the limit than it has");
        }
        if self.worst.len() > fold::WORST {
            return Err("the block has too many longest samples");
        }
        self.contention.as_ref().map_or(Ok(()), |contention| contention.validate(self.count))
    }
}

/// One-way times stamped on both CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneWayBlock {
    /// Times in both directions; negative differences are not in it.
    pub histogram: Histogram,
    /// Number of negative differences.
    pub negative: Count,
    /// Two-sided bound on the disagreement of the two clocks, in nanoseconds.
    pub clock_bound_ns: Ns,
}

/// CPU time and context switches of both ends together, in one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockCost {
    /// Time in user mode, in nanoseconds.
    pub user_ns: Count,
    /// Time in the kernel, in nanoseconds.
    pub system_ns: Count,
    /// Context switches because an end waited.
    pub voluntary_switches: Count,
    /// Context switches because an end was pushed off its CPU.
    pub involuntary_switches: Count,
}

/// Why a block is marked.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The reference cell moved by more than 10% around the block.
    ReferenceDrift,
    /// A pinned end ran on another CPU than it should.
    Migration,
    /// An end was pushed off its CPU.
    InvoluntarySwitch,
    /// An end stood in a run queue.
    RunQueueDelay,
    /// The hypervisor took the CPU.
    Steal,
    /// A spinning end saw time vanish.
    Gap,
    /// Memory had to be brought in.
    PageFault,
    /// The control group's quota or the heat held the CPUs back.
    Throttled,
}

impl Cause {
    /// The name that the files use.
    pub fn name(self) -> &'static str {
        match self {
            Cause::ReferenceDrift => "reference-drift",
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

/// Disturbances of the machine during a block; null where the kernel does not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disturbance {
    /// Which of these reached their threshold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// Migrations of the ends between CPUs.
    #[serde(default)]
    pub migrations: Option<Count>,
    /// Time that the ends stood in run queues, in nanoseconds.
    #[serde(default)]
    pub run_queue_ns: Option<Count>,
    /// Time that the hypervisor took from the CPUs of the cell, in nanoseconds.
    #[serde(default)]
    pub steal_ns: Option<Count>,
    /// Page faults of the ends.
    #[serde(default)]
    pub page_faults: Count,
    /// Time that vanished while an end spun, in nanoseconds; null where no end spins.
    #[serde(default)]
    pub gap_ns: Option<Count>,
    /// Times that the control group or the heat throttled.
    #[serde(default)]
    pub throttled: Option<Count>,
}

/// One of the longest samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Worst {
    /// When it ended, in seconds since the run began.
    pub at_s: Seconds,
    /// The round trip in nanoseconds.
    pub ns: Ns,
    /// The CPU on which the first end saw it end.
    pub cpu: u32,
    /// The likely cause; null where nothing was seen.
    pub cause: Option<Cause>,
}
