//! The seam between measuring and what is measured on: the real machine, or a simulated one.
//!
//! Everything above (plan, order, folding, files, pages) is the same for both, so tests of it are
//! exact.

use threadtoll_record::{BlockCost, BlockKind, ContentionBlock, Disturbance, Machine, PlannedCell};

use crate::contention::foretell::Calibration;
use crate::mechanism::Unavailable;

/// Why measuring failed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A mechanism could not be made.
    #[error("{mechanism} cannot be measured here: {reason}")]
    Unavailable {
        /// The mechanism.
        mechanism: String,
        /// What failed.
        reason: Unavailable,
    },
    /// The plan names a mechanism that this version does not have.
    #[error("this version knows no mechanism “{0}”")]
    Unknown(String),
    /// The plan names a queue that this version does not have, or uses one as it cannot be used.
    #[error("this version knows no queue “{0}”")]
    UnknownQueue(String),
    /// The plan names a lock that this version does not have.
    #[error("this version knows no lock “{0}”")]
    UnknownLock(String),
    /// A thread could not be placed.
    #[error("cannot place a thread on CPU {cpus:?}: {reason}")]
    Place {
        /// Where it should have run.
        cpus: Vec<u32>,
        /// What the system said.
        reason: String,
    },
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Spawn(std::io::Error),
    /// A message did not come.
    #[error(
        "{mechanism} ({placement}) made no progress for {seconds} s: a message was lost or the machine is stuck"
    )]
    Stuck {
        /// The mechanism.
        mechanism: String,
        /// Its placement.
        placement: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// A message came that was not the one sent.
    #[error("{mechanism} ({placement}) delivered a wrong message")]
    WrongMessage {
        /// The mechanism.
        mechanism: String,
        /// Its placement.
        placement: String,
    },
    /// The clock failed its second look.
    #[error("{0}")]
    Clock(String),
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] threadtoll_record::file::WriteFault),
}

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Now {
    /// Nanoseconds since the Unix epoch.
    pub unix_ns: i128,
    /// Seconds since the rig was made.
    pub since_start_s: f64,
}

/// Something to measure on.
pub trait Rig {
    /// The time, by this rig's clock.
    fn now(&mut self) -> Now;

    /// Makes everything that a group needs, threads and memory included.
    ///
    /// # Errors
    ///
    /// If a mechanism or a placement cannot be had.
    fn open<'a>(
        &'a mut self,
        machine: &Machine,
        group: &[PlannedCell],
    ) -> Result<Box<dyn Stage + 'a>, LabError>;

    /// Looks at the clock again, when a group was measured and before its records are made.
    ///
    /// # Errors
    ///
    /// If it no longer agrees with the kernel's.
    fn recheck(&mut self) -> Result<(), LabError>;
}

/// A group that is ready to be measured.
pub trait Stage {
    /// The time, by the rig's clock.
    fn now(&mut self) -> Now;

    /// What was calibrated for a cell when the group was opened, in none of its blocks; nothing
    /// where no model speaks of it.
    fn calibrated(&mut self, cell: usize) -> Option<Calibration> {
        let _ = cell;
        None
    }

    /// Measures one block of a cell.
    ///
    /// # Errors
    ///
    /// If a message is wrong or does not come.
    fn block(&mut self, cell: usize, kind: BlockKind) -> Result<Measured, LabError>;
}

/// What a block gave, before it is folded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Length of each stretch in picoseconds, in order.
    pub stretches_ps: Vec<u64>,
    /// Round trips, or messages of a stream, in each stretch; 1 in a stamped block.
    pub per_stretch: u64,
    /// When the first stretch began, in seconds since the rig was made.
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
    /// CPU time and switches of both ends.
    pub cost: BlockCost,
    /// Round trips, or messages, that these are of: the block's and the few around it.
    pub accounted_round_trips: u64,
    /// What happened to the machine; its causes are not decided yet.
    pub disturbance: Disturbance,
    /// Whether the ends spin, so that a gap in their stamps is time that vanished.
    pub spins: bool,
    /// Whether what is measured takes memory as it goes, so that page faults are its own.
    pub grows: bool,
    /// Of a lock: what its threads did. There are no stretches then.
    pub contended: Option<Contended>,
}

/// What the threads of a block did at their lock.
#[derive(Clone, Debug, PartialEq)]
pub struct Contended {
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
    /// When it ended, in seconds since the rig was made.
    pub at_s: f64,
    /// The CPU on which the thread is to run.
    pub cpu: u32,
}
