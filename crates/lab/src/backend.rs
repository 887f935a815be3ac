//! The seam between measuring and what is measured on: the real machine, or a simulated one.
//!
//! Everything above (plan, order, folding, files, pages) is the same for both, so tests of it are
//! exact.

use threadtoll_record::{BlockKind, Machine, PlannedCell};

use crate::LabError;
use crate::contention::predict::Calibration;
use crate::samples::BlockSamples;

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Now {
    /// Nanoseconds since the Unix epoch.
    pub unix_ns: i128,
    /// Seconds since the backend was made.
    pub since_start_s: f64,
}

/// Something to measure on.
pub trait Backend {
    /// The time, by its clock.
    fn now(&mut self) -> Now;

    /// Makes everything that the cells of a group need, threads and memory included, and learns
    /// what their blocks must know beforehand.
    ///
    /// # Errors
    ///
    /// If a mechanism or a placement cannot be had.
    fn open(
        &mut self,
        machine: &Machine,
        group: &[PlannedCell],
    ) -> Result<Vec<Box<dyn OpenCell>>, LabError>;

    /// Checks the clock again, when a group was measured and before its records are made.
    ///
    /// # Errors
    ///
    /// If it no longer agrees with the kernel's.
    fn recheck(&mut self) -> Result<(), LabError>;
}

/// A cell that is ready to be measured.
pub trait OpenCell {
    /// What was calibrated for it when its group was opened, in none of its blocks; `None` where no
    /// model speaks of it.
    fn calibration(&self) -> Option<Calibration> {
        None
    }

    /// Measures one block.
    ///
    /// # Errors
    ///
    /// If a message is wrong or does not come.
    fn block(&mut self, kind: BlockKind) -> Result<BlockSamples, LabError>;
}
