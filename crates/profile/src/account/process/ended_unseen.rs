//! Threads that had ended before a sample could examine them.
//!
//! Such threads are counted as alive in the sample, and as waiting for nothing. About as many
//! threads have started in the meantime and may be waiting, so the number of ended threads bounds
//! the error of each queue length.

use crate::account::Mean;

/// Mean number of threads that had ended before a sample could examine them.
#[derive(Debug, Default)]
pub(crate) struct EndedUnseen {
    pub(super) mean: Mean,
    now: f64,
}

impl EndedUnseen {
    /// Counts a thread that had ended; it stands for `threads` threads.
    pub(crate) fn count(&mut self, threads: f64) {
        self.now += threads;
    }

    pub(super) fn end_sample(&mut self, times: u32) {
        if self.now > 0.0 {
            self.mean.add(std::mem::take(&mut self.now), times);
        }
    }
}
