use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::WORST;
use crate::{BlockFigures, Count, Histogram, Ns, OwnProgram, Seconds, Text};

/// Kind of measuring loop that produces a block.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum BlockKind {
    /// Takes a timestamp only after many round trips or messages (a *stretch*). Yields means,
    /// medians, rates and ratios.
    Stretch,
    /// Takes a timestamp for each message. Yields the distribution and its tail.
    Stamped,
}

/// One uninterrupted measurement of a cell (a mechanism, queue or lock in one setting), written to
/// the file as soon as it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Block {
    /// Id of the run.
    pub run: Text,
    /// Index of the group in the plan.
    pub group: usize,
    /// Attempt at measuring the group, from 1.
    pub attempt: u32,
    /// Index of the cell in its group.
    pub cell: usize,
    /// Index of the process that measured the block, from 0.
    #[serde(default)]
    pub process: u32,
    /// Index of the round, from 0; each round measures every cell of the group.
    pub seq: u32,
    /// End of the block, RFC 3339 UTC.
    pub at: Text,
    /// Kind of the measuring loop.
    pub kind: BlockKind,
    /// Number of measured operations: round trips, messages, calls on a queue, or acquisitions of a
    /// lock.
    pub count: Count,
    /// Duration of the block, in nanoseconds.
    pub elapsed_ns: Count,
    /// Mean round trip, or mean time per message of a stream, in nanoseconds.
    pub mean: Ns,
    /// Shortest round trip, in nanoseconds; in a stretch block, the mean of the fastest stretch.
    pub min: Ns,
    /// Longest round trip, in nanoseconds; in a stretch block, the mean of the slowest stretch.
    pub max: Ns,
    /// Distribution of the round trips; in a stretch block, of the stretches' means.
    pub histogram: Option<Histogram>,
    /// Number of round trips that took longer than the plan's limit; null in stretch blocks.
    pub over: Option<Count>,
    /// Figures that only cells of this kind have.
    #[serde(flatten)]
    pub figures: BlockFigures,
    /// Set if a separate program in another language measured the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_program: Option<OwnProgram>,
    /// Samples of the block that were among the cell's 64 longest when the block ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worst: Vec<Worst>,
    /// CPU time and context switches of the cell's threads.
    pub cost: BlockCost,
    /// Number of round trips (for a stream, messages) that `cost` covers: those of the block, and
    /// the few just before and after them.
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

/// CPU time and context switches of a cell's threads in one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockCost {
    /// CPU time in user mode, in nanoseconds.
    pub user_ns: Count,
    /// CPU time in the kernel, in nanoseconds.
    pub system_ns: Count,
    /// Number of voluntary context switches.
    pub voluntary_switches: Count,
    /// Number of involuntary context switches.
    pub involuntary_switches: Count,
}

/// Reason for marking a block as disturbed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// From just before the block to just after it, the time of the reference cell changed by over
    /// 10%, and by more than usual.
    ReferenceDrift,
    /// Independent threads, one on each CPU, did over 10% more or less work than when the
    /// predictions were made.
    WorkDrift,
    /// A pinned thread ran on the wrong CPU.
    Migration,
    /// Another thread preempted one of the cell's threads.
    InvoluntarySwitch,
    /// A thread of the cell waited in a run queue of the scheduler.
    RunQueueDelay,
    /// The hypervisor took CPU time.
    Steal,
    /// A spinning thread lost time for an unknown reason.
    Gap,
    /// A thread of the cell had a page fault.
    PageFault,
    /// The CPUs were throttled, by the control group's quota or because of their temperature.
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

/// Disturbances of the machine during a block. Figures that the kernel does not report are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disturbance {
    /// Causes that reached their thresholds. A block with any cause counts as disturbed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// Number of CPU migrations of the cell's threads.
    #[serde(default)]
    pub migrations: Option<Count>,
    /// Time that the cell's threads waited in run queues, in nanoseconds.
    #[serde(default)]
    pub run_queue_ns: Option<Count>,
    /// CPU time stolen by the hypervisor, in nanoseconds.
    #[serde(default)]
    pub steal_ns: Option<Count>,
    /// Number of page faults of the cell's threads.
    #[serde(default)]
    pub page_faults: Count,
    /// Time that spinning threads lost for an unknown reason, in nanoseconds; null if no thread
    /// spins.
    #[serde(default)]
    pub gap_ns: Option<Count>,
    /// Number of times that the CPUs were throttled, by the control group or because of their
    /// temperature.
    #[serde(default)]
    pub throttled: Option<Count>,
}

/// One of a cell's longest samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Worst {
    /// End of the sample, in seconds since the start of the run.
    pub at_s: Seconds,
    /// Duration of the round trip, in nanoseconds.
    pub ns: Ns,
    /// The CPU on which the measured thread ran when the sample ended.
    pub cpu: u32,
    /// Likely cause of the long duration; null if none was seen.
    pub cause: Option<Cause>,
}
