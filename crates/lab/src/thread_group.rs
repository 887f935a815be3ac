//! Threads that each have a role in a block, for scenarios that are neither an exchange nor a
//! stream.
//!
//! A scenario provides the roles, compiled for each queue, a function that turns the roles' logs
//! into samples, and the logs of a simulated queue. The machines know nothing else about the
//! scenario.

use std::sync::Arc;

use threadtoll_machine::clock::Clock;
use threadtoll_record::Class;

use crate::error::Make;
use crate::error::Unavailable;
use crate::samples::Samples;

#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockSpec {
    pub(crate) length_ns: f64,
    pub(crate) seed: u64,
}

pub(crate) trait Role<B = BlockSpec, R = Log>: Send {
    /// Called once, on the role's thread.
    fn enter(&mut self) {}

    /// Called before the block's clock starts, to allocate and touch the memory that the block
    /// needs.
    fn prepare(&mut self, _block: B, _clock: &Clock) {}

    /// All threads begin at about the same time.
    fn work(&mut self, clock: &Clock) -> R;
}

#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Stamps: recorded in clock ticks, then converted to picoseconds since the backend was
    /// created.
    pub(crate) times: Vec<Vec<u64>>,
    pub(crate) numbers: Vec<u64>,
    /// Bits in which messages differed from the expected ones; 0 if all were right.
    pub(crate) wrong: u64,
}

/// Roles in the order of their CPUs. The last role has a CPU to itself.
pub(crate) type ThreadGroup = Vec<Box<dyn Role>>;

pub(crate) struct BlockLogs {
    pub(crate) logs: Vec<Log>,
    pub(crate) cpu_ns: Vec<u64>,
    /// CPU of the last thread.
    pub(crate) cpu: u32,
    /// Bound on the disagreement between the CPUs' clocks, if known.
    pub(crate) clock_bound_ns: Option<f64>,
}

/// Samples of a block, and the number of operations that its cost covers.
pub(crate) type Reading = (Samples, u64);

/// A queue, driven by the clock of a simulated machine.
pub(crate) struct VirtualQueue<'a> {
    pub(crate) block: BlockSpec,
    /// Start of the block, in picoseconds since the backend was created.
    pub(crate) begins_ps: u64,
    /// Maximum number of messages in a block.
    pub(crate) most: usize,
    /// Time that the receiver takes for a message. Arguments: index of the message, number of
    /// messages.
    pub(crate) service_ps: &'a mut dyn FnMut(usize, usize) -> u64,
    /// Time that the sender loses before a message. Arguments as for `service_ps`.
    pub(crate) stall_ps: &'a dyn Fn(usize, usize) -> u64,
}

pub(crate) type Simulate =
    Arc<dyn Fn(&mut VirtualQueue<'_>) -> Result<Vec<Log>, Unavailable> + Send + Sync>;

pub(crate) struct ThreadGroupProgram {
    pub(crate) make: Make<ThreadGroup>,
    pub(crate) threads: usize,
    /// Interprets the logs; `None` if a message was lost.
    pub(crate) read: Arc<dyn Fn(BlockLogs) -> Option<Reading> + Send + Sync>,
    pub(crate) simulate: Simulate,
    pub(crate) class: Class,
    /// True if the queue allocates memory as it fills.
    pub(crate) grows: bool,
}
