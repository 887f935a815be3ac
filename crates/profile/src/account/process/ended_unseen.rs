//! Threads that had ended before a sample could examine them.
//!
//! Such a thread counts as alive in the sample, and as not waiting. About as many threads have
//! started meanwhile and may be waiting unseen. So the number of ended threads bounds the error of
//! each queue length.

use crate::account::Mean;

#[derive(Debug, Default)]
pub(crate) struct EndedUnseen {
    pub(super) mean: Mean,
    now: f64,
}

impl EndedUnseen {
    pub(crate) fn count(&mut self, threads: f64) {
        self.now += threads;
    }

    pub(super) fn end_sample(&mut self, times: u32) {
        if self.now > 0.0 {
            self.mean.add(std::mem::take(&mut self.now), times);
        }
    }
}
