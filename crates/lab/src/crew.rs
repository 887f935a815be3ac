//! Crews: threads that each play a part in a block, for scenarios that are neither an exchange nor
//! a stream.
//!
//! A scenario provides the parts, compiled for each queue; the interpretation of their logs; and
//! the logs that a simulated queue would produce. The machines, real and simulated, know nothing
//! else about the scenario.

use std::sync::Arc;

use threadtoll_machine::clock::Clock;
use threadtoll_record::Class;

use crate::error::Make;
use crate::error::Unavailable;
use crate::samples::Samples;

/// Settings of a block, given to all parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shift {
    pub(crate) length_ns: f64,
    /// Seed for all random choices in the block.
    pub(crate) seed: u64,
}

/// A thread's part in each block.
pub(crate) trait Part: Send {
    /// Called once, on the part's thread.
    fn enter(&mut self) {}

    /// Creates and touches everything that the next block needs, before its clock starts.
    fn prepare(&mut self, shift: Shift, clock: &Clock);

    /// Does this part's work in the block. All parts begin at about the same time.
    fn work(&mut self, clock: &Clock) -> Log;
}

/// Log of one part.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Stamps. A part leaves them in clock ticks; when they are read, they have been converted to
    /// picoseconds since the backend was created.
    pub(crate) times: Vec<Vec<u64>>,
    /// Anything that is not a time.
    pub(crate) numbers: Vec<u64>,
    /// Bits in which messages differed from the expected ones; 0 if all were right.
    pub(crate) wrong: u64,
}

/// Parts in the order of their CPUs; the last one has its CPU to itself.
pub(crate) type Crew = Vec<Box<dyn Part>>;

/// Results that the threads have left after a block.
pub(crate) struct Worked {
    /// Log of each part.
    pub(crate) logs: Vec<Log>,
    /// CPU time of each part.
    pub(crate) cpu_ns: Vec<u64>,
    /// CPU of the last part.
    pub(crate) cpu: u32,
    /// Two-sided bound on the disagreement between the clocks, if known.
    pub(crate) clock_bound_ns: Option<f64>,
}

/// Samples of a block, and the number of operations that its cost covers.
pub(crate) type Reading = (Samples, u64);

/// A queue, driven by the clock of a simulated machine.
pub(crate) struct VirtualQueue<'a> {
    pub(crate) shift: Shift,
    /// When the block begins, in picoseconds since the backend was created.
    pub(crate) begins_ps: u64,
    /// Maximum number of messages of a block.
    pub(crate) most: usize,
    /// Time that the receiver takes for a message, in picoseconds, given the message's number in
    /// the block and the number of messages.
    pub(crate) service_ps: &'a mut dyn FnMut(usize, usize) -> u64,
    /// Time that the sender loses before a message, given the same two numbers.
    pub(crate) stall_ps: &'a dyn Fn(usize, usize) -> u64,
}

/// Produces the logs of a block on a simulated machine.
pub(crate) type Simulate =
    Arc<dyn Fn(&mut VirtualQueue<'_>) -> Result<Vec<Log>, Unavailable> + Send + Sync>;

/// A crew before its threads exist.
pub(crate) struct CrewProgram {
    pub(crate) make: Make<Crew>,
    /// Number of parts.
    pub(crate) threads: usize,
    /// Interprets the logs; `None` if a message was lost.
    pub(crate) read: Arc<dyn Fn(Worked) -> Option<Reading> + Send + Sync>,
    pub(crate) simulate: Simulate,
    pub(crate) class: Class,
    /// True if the queue allocates memory as it fills.
    pub(crate) grows: bool,
}
