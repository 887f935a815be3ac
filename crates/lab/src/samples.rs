//! What a block gave, before it is folded: an arm for each kind of cell.

use threadtoll_record::{BlockCost, ContentionBlock, Disturbance};

/// What a block gave.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockSamples {
    /// What every block has.
    pub counters: Counters,
    /// What depends on what its threads did.
    pub samples: Samples,
}

/// What the threads of a block took, and what happened to the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// CPU time and switches of all threads.
    pub cost: BlockCost,
    /// Number of round trips, messages or acquisitions that the cost is of: the block's and the few
    /// around it.
    pub operations: u64,
    /// What happened to the machine; its causes are not decided yet.
    pub disturbance: Disturbance,
    /// True if the ends spin, so that a gap in their stamps is time that vanished.
    pub spins: bool,
    /// True if what is measured takes memory as it goes, so that page faults are its own.
    pub grows: bool,
}

/// Samples by kind of cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Samples {
    /// Round trips.
    Exchange(RoundTrips),
    /// Messages in one direction.
    Stream(Stretches),
    /// Acquisitions of a lock.
    Contention(Acquisitions),
}

/// Times between stamps, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stretches {
    /// Length of each in picoseconds, in order.
    pub lengths_ps: Vec<u64>,
    /// Number of round trips, or messages, in each.
    pub operations_each: u64,
}

/// Round trips between two ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundTrips {
    /// Stretches of them; in a stamped block each is one round trip.
    pub stretches: Stretches,
    /// When the first stretch began, in seconds since the backend was made.
    pub began_s: f64,
    /// The CPU of the leading end: one for all stretches, or one for each.
    pub lead_cpus: Vec<u32>,
    /// The CPU of the following end when each message arrived; empty where it was not asked for.
    pub follow_cpus: Vec<u32>,
    /// One-way times in picoseconds, both directions, negative ones included; empty where they were
    /// not stamped.
    pub one_way_ps: Vec<i64>,
    /// Two-sided bound on the disagreement of the clocks, where one-way times were stamped.
    pub clock_bound_ns: f64,
}

/// What threads did at their lock.
#[derive(Clone, Debug, PartialEq)]
pub struct Acquisitions {
    /// What files keep of it.
    pub block: ContentionBlock,
    /// How long it was watched, in nanoseconds.
    pub elapsed_ns: u64,
    /// Each wait; none where they were not stamped.
    pub waits: Vec<Waited>,
}

/// A wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waited {
    /// How long it was, in picoseconds.
    pub ps: u64,
    /// When it ended, in seconds since the backend was made.
    pub at_s: f64,
    /// The CPU on which the thread is to run.
    pub cpu: u32,
}
