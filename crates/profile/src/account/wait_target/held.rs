//! Share of time during which a lock is held.

use threadtoll_judge::sample::LockSample;
use threadtoll_judge::samples::LockSamples;

use crate::primitive::Hold;

/// One sample of a lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampled {
    /// When it was due.
    pub(super) due: u64,
    /// When the sample was due, in whole seconds since the start of the profile.
    pub(super) second: u64,
    pub(super) queue_late: bool,
    pub(super) sample: LockSample,
}

/// Samples that showed a lock's state or its queue.
#[derive(Debug, Default)]
pub(in crate::account) struct Held {
    pub(in crate::account) samples: LockSamples,
    /// When the first sample that shows the lock's state was due.
    pub(in crate::account) known_since: Option<u64>,
    /// Total time represented by samples that saw the lock held, and the part of this time in which
    /// readers shared the lock.
    held: f64,
    shared: f64,
}

impl Held {
    /// Adds a sample that does not show the lock's state.
    pub(super) fn add_queue(&mut self, it: &Sampled) {
        self.samples.add_with_queue(it.second, it.sample, it.queue_late);
    }

    /// Adds a sample that saw the lock in `state`. In the account of the readers (`for_readers`),
    /// the lock counts as held only while a writer holds it: readers do not keep each other out.
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

    /// Fraction of the lock's hold time in which one thread kept out all others, readers included.
    pub(super) fn exclusive_share(&self) -> f64 {
        if self.held > 0.0 { 1.0 - self.shared / self.held } else { 1.0 }
    }
}
