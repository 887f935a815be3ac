//! Interface between the measuring code and the machine that is measured, real or simulated.
//!
//! All code above the interface (plan, order, folding, files, pages) runs unchanged on both, so
//! tests on the simulated machine are exact.

use threadtoll_record::{BlockKind, Machine, OwnProgram, PlannedCell};

use crate::LabError;
use crate::contention::predict::Calibration;
use crate::samples::BlockSamples;

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Now {
    /// Nanoseconds since the Unix epoch.
    pub unix_ns: i128,
    /// Seconds since the backend was created.
    pub since_start_s: f64,
}

/// Notes which cell's code runs next, given its index.
pub type At<'a> = dyn FnMut(usize) -> Result<(), LabError> + 'a;

/// A machine to measure on.
pub trait Backend {
    /// Returns the time on the backend's clock.
    fn now(&mut self) -> Now;

    /// Creates everything that these cells of a group need, including threads and memory, and
    /// calibrates the cells. Calls `at` with the index of a cell before running any of its code.
    ///
    /// # Errors
    ///
    /// If a mechanism or a placement is not available, or `at` fails.
    fn open(
        &mut self,
        machine: &Machine,
        cells: &[PlannedCell],
        at: &mut At<'_>,
    ) -> Result<Vec<Box<dyn OpenCell>>, LabError>;

    /// Returns `true` if a cell that hung has left its threads behind, so that this process must
    /// not measure anything else.
    fn leaves_threads(&self) -> bool {
        true
    }

    /// Adds the number of blocks that another process measured, and the time that they took there,
    /// which a simulated clock does not see.
    fn elapse(&mut self, _blocks: u64, _ns: u64) {}

    /// Lets this time pass.
    fn wait(&mut self, ns: u64);

    /// Checks the clock again, after a group is measured and before its records are written.
    ///
    /// # Errors
    ///
    /// If the clock no longer agrees with the kernel's clock.
    fn recheck(&mut self) -> Result<(), LabError>;
}

/// A cell that is ready to measure.
pub trait OpenCell {
    /// Calibration from the opening of the group, independent of the cell's blocks; `None` if no
    /// model covers the cell.
    fn calibration(&self) -> Option<Calibration> {
        None
    }

    /// Creates new threads and memory before every round except the first, if a block's figure may
    /// depend on where they happen to be placed.
    ///
    /// Blocks of one instance share whatever makes it faster or slower than other instances, and
    /// resampling blocks cannot reveal such an effect. It can if each round has an instance of its
    /// own.
    ///
    /// # Errors
    ///
    /// If the machine refuses a resource.
    fn reopen(&mut self) -> Result<(), LabError> {
        Ok(())
    }

    /// Measures one block.
    ///
    /// # Errors
    ///
    /// If a message is wrong or does not arrive.
    fn block(&mut self, kind: BlockKind) -> Result<BlockSamples, LabError>;

    /// How the program measures the cell, if it is a program of another language that measures
    /// itself.
    fn own_program(&self) -> Option<OwnProgram> {
        None
    }
}
