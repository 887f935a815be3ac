//! The queue of a lock or of another wait target: the threads that wait for it.

use crate::account::mean::{Mean, Stretch};

/// If more than this fraction of the samples may have missed waiting threads, the maximum number of
/// waiters is unreliable.
const IN_PART: f64 = 0.1;

/// The threads that wait for a wait target.
#[derive(Debug, Default)]
pub(in crate::account) struct Queue {
    /// Mean number of waiting threads.
    pub(in crate::account) waiters: Mean,
    /// Mean number of waiting threads that no sample saw asleep.
    pub(in crate::account) unseen: Mean,
    /// Number of samples with waiting threads, and number of those samples that missed some
    /// threads.
    samples: u64,
    in_part: u64,
}

impl Queue {
    /// Adds a sample with `waiters` waiting threads; each thread that was examined stands for
    /// `scale` threads.
    pub(super) fn sample(&mut self, waiters: f64, unseen: f64, times: u32, scale: f64) {
        self.waiters.add(waiters, times);
        self.unseen.add(unseen, times);
        self.samples += 1;
        self.in_part += u64::from(scale > 1.0);
    }

    pub(in crate::account) fn end(&mut self, stretch: &Stretch) {
        self.waiters.end_stretch(stretch);
        self.unseen.end_stretch(stretch);
    }

    /// Returns `true` if many samples missed some threads, so that more may have waited at once
    /// than any sample shows.
    pub(super) fn seen_in_part(&self) -> bool {
        self.in_part as f64 > IN_PART * self.samples as f64
    }
}
