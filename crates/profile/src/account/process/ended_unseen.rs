//! Threads that had ended before they were looked at.
//!
//! They are among the threads alive of a sample, and count as waiting for nothing. As many have
//! begun meanwhile, and may wait: that bounds each queue.

use crate::account::Mean;

/// Mean number of threads that had ended before they were looked at.
#[derive(Debug, Default)]
pub(crate) struct EndedUnseen {
    pub(super) mean: Mean,
    now: f64,
}

impl EndedUnseen {
    /// A thread had ended, which stands for so many.
    pub(crate) fn count(&mut self, threads: f64) {
        self.now += threads;
    }

    pub(super) fn end_look(&mut self, times: u32) {
        if self.now > 0.0 {
            self.mean.add(std::mem::take(&mut self.now), times);
        }
    }
}
