//! Crews: threads that each have a part in a block, for scenarios that are neither an exchange nor
//! a stream.
//!
//! A scenario gives the parts, compiled for each queue; what their logs mean; and the logs that a
//! simulated queue would leave. Machines, real and simulated, know nothing else of it.

use std::sync::Arc;

use threadtoll_machine::clock::Clock;
use threadtoll_record::Class;

use crate::error::Make;
use crate::error::Unavailable;
use crate::samples::Samples;

/// What all parts of a block are told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shift {
    pub(crate) length_ns: f64,
    /// Seed of everything in the block that is random.
    pub(crate) seed: u64,
}

/// A thread's part in each block.
pub(crate) trait Part: Send {
    /// Called once on the part's thread.
    fn enter(&mut self) {}

    /// Creates and touches what the next block needs, before its clock starts.
    fn prepare(&mut self, shift: Shift, clock: &Clock);

    /// Does its part of the block. All parts begin at about the same time.
    fn work(&mut self, clock: &Clock) -> Log;
}

/// Records of one part.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Stamps: those of the clock as they leave the part, in picoseconds since the backend was
    /// created when they are read.
    pub(crate) times: Vec<Vec<u64>>,
    /// Anything that is not a time.
    pub(crate) numbers: Vec<u64>,
    /// Bits in which messages differed from the expected ones; 0 if all were right.
    pub(crate) wrong: u64,
}

/// The parts of a crew, in the order of their CPUs: the last one has its CPU to itself.
pub(crate) type Crew = Vec<Box<dyn Part>>;

/// A block as its threads left it.
pub(crate) struct Worked {
    /// By part.
    pub(crate) logs: Vec<Log>,
    /// CPU time by part.
    pub(crate) cpu_ns: Vec<u64>,
    /// CPU of the last part.
    pub(crate) cpu: u32,
    /// Two-sided bound on the disagreement of the clocks, if known.
    pub(crate) clock_bound_ns: Option<f64>,
}

/// Samples of a block, and the number of operations that its cost covers.
pub(crate) type Reading = (Samples, u64);

/// A queue on the clock of a simulated machine.
pub(crate) struct VirtualQueue<'a> {
    pub(crate) shift: Shift,
    /// When the block begins, in picoseconds since the backend was created.
    pub(crate) begins_ps: u64,
    /// Most messages of a block.
    pub(crate) most: usize,
    /// Time in which the receiver takes a message, given the message's number in the block and how
    /// many there are, in picoseconds.
    pub(crate) service_ps: &'a mut dyn FnMut(usize, usize) -> u64,
    /// Time that the sender loses before a message, given as above.
    pub(crate) stall_ps: &'a dyn Fn(usize, usize) -> u64,
}

/// Leaves the logs of a block on a simulated machine.
pub(crate) type Simulate =
    Arc<dyn Fn(&mut VirtualQueue<'_>) -> Result<Vec<Log>, Unavailable> + Send + Sync>;

/// A crew before its threads exist.
pub(crate) struct CrewProgram {
    pub(crate) make: Make<Crew>,
    /// Number of parts.
    pub(crate) threads: usize,
    /// `None` if a message was lost.
    pub(crate) read: Arc<dyn Fn(Worked) -> Option<Reading> + Send + Sync>,
    pub(crate) simulate: Simulate,
    pub(crate) class: Class,
    /// True if the queue allocates memory as it fills.
    pub(crate) grows: bool,
}
