//! Share of time during which a lock is held.

use threadtoll_judge::sample::LockSample;
use threadtoll_judge::samples::LockSamples;

use crate::primitive::Hold;

#[derive(Clone, Copy, Debug)]
pub(super) struct Sampled {
    pub(super) due: u64,
    /// Whole seconds from the start of the profile to the sample's due time.
    pub(super) second: u64,
    pub(super) queue_late: bool,
    pub(super) sample: LockSample,
}

#[derive(Debug, Default)]
pub(in crate::account) struct Held {
    pub(in crate::account) samples: LockSamples,
    /// Due time of the first sample that shows the lock's state.
    pub(in crate::account) known_since: Option<u64>,
    /// Total time of the samples that saw the lock held, and the part in which readers shared the
    /// lock.
    held: f64,
    shared: f64,
}

impl Held {
    pub(super) fn add_queue(&mut self, it: &Sampled) {
        self.samples.add_with_queue(it.second, it.sample, it.queue_late);
    }

    /// In the account of the readers (`for_readers`), the lock counts as held only while a writer
    /// holds it: readers do not keep each other out.
    pub(super) fn add(&mut self, it: &Sampled, state: Option<Hold>, for_readers: bool) {
        let held = match state {
            Some(Hold::Free) => Some(false),
            Some(Hold::Held { .. }) => Some(true),
            Some(Hold::Readers(_)) => Some(!for_readers),
            Some(Hold::Unseen) | None => None,
        };
        if held.is_some() {
            self.known_since = Some(self.known_since.map_or(it.due, |since| since.min(it.due)));
        }
        if held == Some(true) {
            self.held += it.sample.time;
            self.shared +=
                if matches!(state, Some(Hold::Readers(_))) { it.sample.time } else { 0.0 };
        }
        self.add_queue(&Sampled { sample: LockSample { held, ..it.sample }, ..*it });
    }

    pub(super) fn exclusive_share(&self) -> f64 {
        if self.held > 0.0 { 1.0 - self.shared / self.held } else { 1.0 }
    }
}
