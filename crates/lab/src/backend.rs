//! Interface between the measuring code and the machine on which it measures, real or simulated.
//!
//! All code above the interface (planning, ordering, aggregation, files, reports) runs unchanged on
//! both, so tests on the simulated machine are exact.

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

/// Called with the index of the cell whose code runs next, so that the caller can note it.
pub type At<'a> = dyn FnMut(usize) -> Result<(), LabError> + 'a;

/// A machine to measure on.
pub trait Backend {
    /// Returns the time on the backend's clock.
    fn now(&mut self) -> Now;

    /// Creates everything that these cells need (one group, whose measurements are interleaved),
    /// including threads and memory, and calibrates the cells. Calls `at` with the index of a cell
    /// before running any of its code.
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

    /// Returns `true` if a cell that hangs leaves its threads behind, so that this process must not
    /// measure anything else.
    fn leaves_threads(&self) -> bool {
        true
    }

    /// Advances a simulated clock by the blocks that another process has measured: their number,
    /// and the time that they took there.
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
    /// Calibration that was made when the group was opened, independent of what the cell's blocks
    /// measure; `None` if no model covers the cell.
    fn calibration(&self) -> Option<Calibration> {
        None
    }

    /// Creates new threads and memory before every round except the first, if a block's result may
    /// depend on where these happen to be placed.
    ///
    /// All blocks that use the same threads and memory share whatever makes these faster or slower
    /// than others, an effect that resampling the blocks cannot reveal. With new threads and memory
    /// in each round, resampling reveals it.
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

    /// How the cell was measured, if a program in another language measured it in its own process.
    fn own_program(&self) -> Option<OwnProgram> {
        None
    }
}
