//! Queue of threads that wait for a lock or for another wait target.

use crate::account::mean::{Mean, Stretch};

/// The maximum number of waiters is unreliable if more than this fraction of the samples may have
/// missed waiting threads.
const IN_PART: f64 = 0.1;

/// The queue counts as read in the lock's word if at most this fraction of the samples did not read
/// it there.
const NOT_READ: f64 = 0.1;

#[derive(Debug, Default)]
pub(in crate::account) struct Queue {
    pub(in crate::account) waiters: Mean,
    pub(in crate::account) unseen: Mean,
    /// Number of samples with waiting threads, and number of those that did not examine all
    /// threads.
    samples: u64,
    in_part: u64,
    /// Number of samples that took the number of waiters from the lock's word, and number of those
    /// that took it from the threads.
    from_word: u64,
    from_threads: u64,
}

impl Queue {
    /// Adds a sample with `waiters` waiting threads. Each examined thread stands for `scale`
    /// threads.
    pub(super) fn sample(&mut self, waiters: f64, unseen: f64, times: u32, scale: f64) {
        self.waiters.add(waiters, times);
        self.unseen.add(unseen, times);
        self.samples += 1;
        self.in_part += u64::from(scale > 1.0);
    }

    pub(super) fn note_source(&mut self, is_word: bool) {
        self.from_word += u64::from(is_word);
        self.from_threads += u64::from(!is_word);
    }

    pub(super) fn is_from_word(&self) -> bool {
        let all = self.from_word + self.from_threads;
        self.from_word > 0 && self.from_threads as f64 <= NOT_READ * all as f64
    }

    pub(in crate::account) fn end(&mut self, stretch: &Stretch) {
        self.waiters.end_stretch(stretch);
        self.unseen.end_stretch(stretch);
    }

    pub(super) fn seen_in_part(&self) -> bool {
        self.in_part as f64 > IN_PART * self.samples as f64
    }
}
