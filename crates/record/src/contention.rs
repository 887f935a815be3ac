//! Threads that queue for a lock: what a block and a record say of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CellPrediction, Count, Fraction, Ns, PerSecond, Ratio, Seconds, SignedNs};

/// Work and acquisitions of the threads of one block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContentionBlock {
    /// Work done by all of them: units, or nanoseconds that were to be slept.
    pub work: Ratio,
    /// Acquisitions of each thread.
    pub acquisitions: Vec<Count>,
    /// Of one thread alone that has worked on each CPU of its cell in turn: its work per nanosecond
    /// on each. CPUs need not be equally fast.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work_by_cpu: Vec<Ratio>,
    /// Times and queues that stamps showed; absent in blocks of stretches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<ContentionSeen>,
}

impl ContentionBlock {
    /// Checks what was read from a file in a block of `count` acquisitions.
    pub(crate) fn validate(&self, count: Count) -> Result<(), &'static str> {
        if self.acquisitions.iter().copied().sum::<Count>() != count {
            return Err("the acquisitions of the threads are not those of the block");
        }
        let Some(seen) = self.seen else { return Ok(()) };
        let threads = self.acquisitions.len();
        if seen.handoffs > count
            || seen.queue_on_entry.get() > count.get().saturating_mul(threads as u64)
            || seen.queue_max as usize > threads
        {
            return Err("more threads of the block waited for its lock than it has");
        }
        Ok(())
    }
}

/// Times and queues from the stamps around each acquisition, all threads together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContentionSeen {
    /// Time that threads waited, in nanoseconds.
    pub wait_ns: Ns,
    /// Time that they held the lock, in nanoseconds.
    pub hold_ns: Ns,
    /// Time that they had nothing to do with it, in nanoseconds.
    pub think_ns: Ns,
    /// Threads that still waited, summed over the moments at which one had just got the lock.
    pub queue_on_entry: Count,
    /// The most threads that waited at once.
    pub queue_max: u32,
    /// Acquisitions by threads that waited when the lock was let go of.
    pub handoffs: Count,
    /// Time from letting go of the lock until such a thread had it, summed, in nanoseconds.
    pub handoff_ns: SignedNs,
    /// The longest that a thread waited, in nanoseconds.
    pub starved_ns: Ns,
}

/// What the record of a contention cell says beside the distribution of the waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contention {
    /// Number of threads.
    pub threads: u32,
    /// Share of its time for which a thread that never waits holds the lock: the intended one, or
    /// what sleeps really gave.
    pub hold_share: Option<Fraction>,
    /// How often a thread that never waits is to take the lock, per second.
    pub locks_per_s: PerSecond,
    /// Work per second of all threads against one thread alone without the lock: median over pairs
    /// of blocks.
    pub speedup: Option<Ratio>,
    /// Its 95% interval, from resampling pairs.
    pub speedup_interval95: Option<[Ratio; 2]>,
    /// Share of the threads' time that they waited.
    pub wait_share: Option<Fraction>,
    /// Threads waiting at an average moment, the holder not counted.
    pub queue_mean: Option<Ratio>,
    /// Threads still waiting when one had just got the lock, on average.
    pub queue_on_entry: Option<Ratio>,
    /// The most threads that waited at once.
    pub queue_max: Option<u32>,
    /// Jain's index of the threads' acquisitions: 1 if all got equally many, 1/threads if one got
    /// all.
    pub fairness: Option<Fraction>,
    /// The longest that a thread waited, in nanoseconds.
    pub starved_ns: Option<Ns>,
    /// Mean time from letting go of the lock until a thread that waited has it, in nanoseconds.
    pub handoff_ns: Option<SignedNs>,
    /// Mean time for which the lock was really held, in nanoseconds.
    pub hold_ns: Option<Ns>,
    /// Mean time that a thread really spent without it, in nanoseconds.
    pub think_ns: Option<Ns>,
    /// Time for all tasks, in seconds, median over blocks; null where there is no number of tasks.
    pub total_s: Option<Seconds>,
    /// Its 95% interval, from resampling blocks.
    pub total_s_interval95: Option<[Seconds; 2]>,
    /// Prediction made before the cell was measured; null where no model speaks of it.
    pub predicted: Option<CellPrediction>,
}
