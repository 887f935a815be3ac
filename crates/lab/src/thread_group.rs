//! Thread groups: threads that each have a role in a block, for scenarios that are neither an
//! exchange nor a stream.
//!
//! A scenario provides the roles, compiled for each queue; a function that interprets the roles'
//! logs; and the logs that a simulated queue would produce. The machines, real and simulated, know
//! nothing else about the scenario.

use std::sync::Arc;

use threadtoll_machine::clock::Clock;
use threadtoll_record::Class;

use crate::error::Make;
use crate::error::Unavailable;
use crate::samples::Samples;

/// Settings of a block, given to all roles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockSpec {
    pub(crate) length_ns: f64,
    /// Seed for all random choices in the block.
    pub(crate) seed: u64,
}

/// A thread's role in each block.
pub(crate) trait Role<B = BlockSpec, R = Log>: Send {
    /// Called once, on the role's thread.
    fn enter(&mut self) {}

    /// Creates and touches everything that the next block needs, before its clock starts.
    fn prepare(&mut self, _block: B, _clock: &Clock) {}

    /// Does this role's work in the block. All threads begin at about the same time.
    fn work(&mut self, clock: &Clock) -> R;
}

/// Log of one thread.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Stamps. A role records them in clock ticks; before they are read, they are converted to
    /// picoseconds since the backend was created.
    pub(crate) times: Vec<Vec<u64>>,
    /// Anything that is not a time.
    pub(crate) numbers: Vec<u64>,
    /// Bits in which messages differed from the expected ones; 0 if all were right.
    pub(crate) wrong: u64,
}

/// Roles in the order of their CPUs; the last one has its CPU to itself.
pub(crate) type ThreadGroup = Vec<Box<dyn Role>>;

/// Logs and CPU times that the threads have left after a block.
pub(crate) struct BlockLogs {
    /// Log of each thread.
    pub(crate) logs: Vec<Log>,
    /// CPU time of each thread.
    pub(crate) cpu_ns: Vec<u64>,
    /// CPU of the last thread.
    pub(crate) cpu: u32,
    /// Bound on the disagreement between the clocks in either direction, if known.
    pub(crate) clock_bound_ns: Option<f64>,
}

/// Samples of a block, and the number of operations that its cost covers.
pub(crate) type Reading = (Samples, u64);

/// A queue, driven by the clock of a simulated machine.
pub(crate) struct VirtualQueue<'a> {
    pub(crate) block: BlockSpec,
    /// When the block begins, in picoseconds since the backend was created.
    pub(crate) begins_ps: u64,
    /// Maximum number of messages of a block.
    pub(crate) most: usize,
    /// Time that the receiver takes for a message, in picoseconds, given the message's number in
    /// the block and the number of messages.
    pub(crate) service_ps: &'a mut dyn FnMut(usize, usize) -> u64,
    /// Time that the sender loses before a message, in picoseconds, given the same two numbers as
    /// for `service_ps`.
    pub(crate) stall_ps: &'a dyn Fn(usize, usize) -> u64,
}

/// Produces the logs of a block on a simulated machine.
pub(crate) type Simulate =
    Arc<dyn Fn(&mut VirtualQueue<'_>) -> Result<Vec<Log>, Unavailable> + Send + Sync>;

/// The program of a thread group, before its threads exist.
pub(crate) struct ThreadGroupProgram {
    pub(crate) make: Make<ThreadGroup>,
    /// Number of threads.
    pub(crate) threads: usize,
    /// Interprets the logs; `None` if a message was lost.
    pub(crate) read: Arc<dyn Fn(BlockLogs) -> Option<Reading> + Send + Sync>,
    pub(crate) simulate: Simulate,
    pub(crate) class: Class,
    /// True if the queue allocates memory as it fills.
    pub(crate) grows: bool,
}
