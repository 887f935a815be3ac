//! Interface to the machine on which cells are measured, real or simulated.
//!
//! Plans, files and reports cannot tell the two apart, so tests on the simulated machine are exact.

use threadtoll_record::{BlockKind, Machine, OwnProgram, PlannedCell};

use crate::LabError;
use crate::contention::overload::OverloadCalibration;
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

/// Callback that receives a cell's index before any code of the cell runs, so that a crash or an
/// error can be attributed to the cell.
pub type At<'a> = dyn FnMut(usize) -> Result<(), LabError> + 'a;

/// A machine to measure on.
pub trait Backend {
    /// Returns the time on the backend's clock.
    fn now(&mut self) -> Now;

    /// Creates the threads and the memory of a group of cells, and calibrates the cells. Calls `at`
    /// with a cell's index before any code of the cell runs.
    ///
    /// # Errors
    ///
    /// If a mechanism or a placement is not available, or `at` returns an error.
    fn open(
        &mut self,
        machine: &Machine,
        cells: &[PlannedCell],
        at: &mut At<'_>,
    ) -> Result<Vec<Box<dyn OpenCell>>, LabError>;

    /// Returns `true` if a cell that hangs leaves threads behind. Such threads would disturb later
    /// measurements, so the process must not measure anything else.
    fn leaves_threads(&self) -> bool {
        true
    }

    /// Advances a simulated clock by blocks that another process has measured. Arguments: number of
    /// blocks, and their total length.
    fn elapse(&mut self, _blocks: u64, _ns: u64) {}

    /// Sleeps for this time; a simulated clock is advanced by it.
    fn wait(&mut self, ns: u64);

    /// Checks the clock again, after a group is measured and before its records are written.
    ///
    /// # Errors
    ///
    /// If the clock no longer agrees with the kernel's clock.
    fn recheck(&mut self) -> Result<(), LabError>;
}

/// A cell whose threads and memory exist, ready to be measured.
pub trait OpenCell {
    /// Inputs of the models, calibrated before the first block; `None` if no model covers the cell.
    fn calibration(&self) -> Option<Calibration> {
        None
    }

    /// Inputs of the simulation of an overloaded lock, calibrated before the first block; `None`
    /// for all other cells.
    fn overload_calibration(&self) -> Option<OverloadCalibration> {
        None
    }

    /// Replaces the cell's threads and memory, if a block's result may depend on where they happen
    /// to be placed. Called before every round except the first.
    ///
    /// Blocks that share threads and memory also share the effect of their placement. Resampling
    /// the blocks cannot reveal this effect unless each round has new threads and memory.
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

    /// Facts about the program in another language, if such a program measured the cell.
    fn own_program(&self) -> Option<OwnProgram> {
        None
    }
}
