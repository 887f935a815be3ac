//! The threads that wait for a lock, or for anything else.

use crate::account::mean::{Mean, Stretch};

/// Share of samples of some of the threads only that leaves nothing open: the others show as much.
const IN_PART: f64 = 0.1;

/// The threads that wait.
#[derive(Debug, Default)]
pub(in crate::account) struct Queue {
    /// Mean number of them.
    pub(in crate::account) waiters: Mean,
    /// Those of them that no sample saw asleep.
    pub(in crate::account) unseen: Mean,
    /// Samples with waiting threads, and those of them that left threads out.
    samples: u64,
    in_part: u64,
}

impl Queue {
    /// Adds a sample with this many threads, each of those looked at standing for `scale` of them.
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

    /// Many samples left threads out: more may have waited at once.
    pub(super) fn seen_in_part(&self) -> bool {
        self.in_part as f64 > IN_PART * self.samples as f64
    }
}
