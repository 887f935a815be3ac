//! Threads that queue for a lock: what a block and a record say of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::CellPrediction;

/// What the threads of one block did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContentionBlock {
    /// Work done by all of them: units, or nanoseconds that were to be slept.
    pub work: f64,
    /// Acquisitions of each thread.
    pub acquisitions: Vec<u64>,
    /// Of one thread alone that has worked on each CPU of its cell in turn: its work per nanosecond
    /// on each. CPUs need not be equally fast.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work_by_cpu: Vec<f64>,
    /// What stamps showed; absent in blocks of stretches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<ContentionSeen>,
}

/// What the stamps around each acquisition show, all threads together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContentionSeen {
    /// Time that threads waited, in nanoseconds.
    pub wait_ns: f64,
    /// Time that they held the lock, in nanoseconds.
    pub hold_ns: f64,
    /// Time that they had nothing to do with it, in nanoseconds.
    pub think_ns: f64,
    /// Threads that still waited, summed over the moments at which one had just got the lock.
    pub queue_on_entry: u64,
    /// The most threads that waited at once.
    pub queue_max: u32,
    /// Acquisitions by threads that waited when the lock was let go of.
    pub handoffs: u64,
    /// Time from letting go of the lock until such a thread had it, summed, in nanoseconds.
    pub handoff_ns: f64,
    /// The longest that a thread waited, in nanoseconds.
    pub starved_ns: f64,
}

/// What the record of a contention cell says beside the distribution of the waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contention {
    /// How many threads.
    pub threads: u32,
    /// Share of its time for which a thread that never waits holds the lock: the intended one, or
    /// what sleeps really gave.
    pub hold_share: Option<f64>,
    /// How often a thread that never waits is to take the lock, per second.
    pub locks_per_s: f64,
    /// Work per second of all threads against one thread alone without the lock: median over pairs
    /// of blocks.
    pub speedup: Option<f64>,
    /// Its 95% interval, from resampling pairs.
    pub speedup_interval95: Option<[f64; 2]>,
    /// Share of the threads' time that they waited.
    pub wait_share: Option<f64>,
    /// Threads waiting at an average moment, the holder not counted.
    pub queue_mean: Option<f64>,
    /// Threads still waiting when one had just got the lock, on average.
    pub queue_on_entry: Option<f64>,
    /// The most threads that waited at once.
    pub queue_max: Option<u32>,
    /// Jain's index of the threads' acquisitions: 1 if all got equally many, 1/threads if one got
    /// all.
    pub fairness: Option<f64>,
    /// The longest that a thread waited, in nanoseconds.
    pub starved_ns: Option<f64>,
    /// Mean time from letting go of the lock until a thread that waited has it, in nanoseconds.
    pub handoff_ns: Option<f64>,
    /// Mean time for which the lock was really held, in nanoseconds.
    pub hold_ns: Option<f64>,
    /// Mean time that a thread really spent without it, in nanoseconds.
    pub think_ns: Option<f64>,
    /// Time for all tasks, in seconds, median over blocks; null where there is no number of tasks.
    pub total_s: Option<f64>,
    /// Its 95% interval, from resampling blocks.
    pub total_s_interval95: Option<[f64; 2]>,
    /// What was foretold before the cell was measured; null where no model speaks of it.
    pub predicted: Option<CellPrediction>,
}
