//! The seam between measuring and the machine that is measured, real or simulated.
//!
//! Everything above it (plan, order, folding, files, pages) runs unchanged on both, so tests on the
//! simulated machine are exact.

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

/// Takes note of the cell whose code runs next.
pub type At<'a> = dyn FnMut(usize) -> Result<(), LabError> + 'a;

/// A machine to measure on.
pub trait Backend {
    /// Returns the time on the backend's clock.
    fn now(&mut self) -> Now;

    /// Creates everything that these cells of a group need, threads and memory included, and
    /// calibrates the cells. Calls `at` with the index of a cell before it runs any of its code.
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

    /// True if a cell that hangs leaves its threads behind, so that this process must measure
    /// nothing more.
    fn leaves_threads(&self) -> bool {
        true
    }

    /// Takes note of the blocks that another process measured, and of the time that they took,
    /// which a simulated clock does not see.
    fn elapse(&mut self, _blocks: u64, _ns: u64) {}

    /// Lets this time pass.
    fn wait(&mut self, ns: u64);

    /// Checks the clock again, after a group is measured and before its records are written.
    ///
    /// # Errors
    ///
    /// If it no longer agrees with the kernel's clock.
    fn recheck(&mut self) -> Result<(), LabError>;
}

/// A cell that is ready to measure.
pub trait OpenCell {
    /// Calibration from the opening of the group, independent of the cell's blocks; `None` if no
    /// model covers the cell.
    fn calibration(&self) -> Option<Calibration> {
        None
    }

    /// Creates threads and memory anew, before each round but the first, if a block's figure may
    /// depend on where they happen to be.
    ///
    /// Blocks of one instance share whatever makes it faster or slower than another one, which
    /// resampling blocks cannot see. If each round has its own instance, it can.
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

    /// The program of another language that measures the cell itself, if one does.
    fn own_program(&self) -> Option<OwnProgram> {
        None
    }
}
