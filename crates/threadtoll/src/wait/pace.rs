//! Letting the sender get ahead.
//!
//! A receiver that is faster than its sender looks at the very line that the sender is filling, and its CPU fetches the lines behind that
//! one unasked, so that every line goes back and forth. If it stays away for a while, the sender fills lines undisturbed, and both get more
//! done. But a message that comes alone is delayed by it. So the receiver tries now and then whether staying away brings it more than
//! one message, and goes on as long as it does: at first for a short while, then, where messages keep coming, for longer ones.

use std::time::Duration;

use super::GLANCES;
use crate::sync::{Instant, spin_loop};

/// How long the receiver stays away at first…
const SHORT: Duration = Duration::from_nanos(500);
/// …and at most: thousands of times that a line goes over are then one.
const LONG: Duration = Duration::from_micros(4);
/// What a sender may take for a message, at most, if it is in a hurry: the receiver is back before a bounded queue is full.
const HURRY: Duration = Duration::from_nanos(2);
/// Pause hints between two looks at the clock.
const HINTS: u32 = 4;
/// Messages without a wait among them that show by themselves that the sender does not wait for an answer.
const STREAM: u64 = 16;
/// Waits between two tries: where they are in vain, they cost less than a thousandth.
const TRY_EVERY: u32 = 512;

/// What the receiver knows of its sender's pace.
#[derive(Debug)]
pub(crate) struct Pace {
    /// What was taken at the last wait.
    taken: u64,
    /// Waits since the last try.
    waits: u32,
    /// How long it stays away; nothing if it does not.
    lag: Duration,
    longest: Duration,
}

impl Pace {
    /// For a queue that holds so many messages.
    pub(crate) fn new(capacity: u64) -> Self {
        let until_full = HURRY.saturating_mul(u32::try_from(capacity).unwrap_or(u32::MAX));
        Pace { taken: 0, waits: 0, lag: Duration::ZERO, longest: until_full.min(LONG) }
    }

    /// How often to look, with pauses in between, before a receiver goes to sleep that otherwise does so at once: where messages keep
    /// coming, the next one is nearer than sleep.
    pub(crate) fn glances(&self) -> u32 {
        if self.streams() { GLANCES } else { 0 }
    }

    /// Whether messages kept coming when it last stayed away.
    fn streams(&self) -> bool {
        self.lag > Duration::ZERO
    }

    /// Nothing is there, and so many messages were taken in all: stays away for a while if that has paid.
    #[inline]
    pub(crate) fn lag(&mut self, taken: u64) {
        let got = taken - self.taken;
        self.taken = taken;
        self.waits += 1;
        if self.streams() && got < 2 {
            self.lag = Duration::ZERO;
        } else if got >= STREAM || self.waits >= TRY_EVERY {
            self.lag = if got >= STREAM { (self.lag * 2).clamp(SHORT, LONG) } else { SHORT };
            self.lag = self.lag.min(self.longest);
            self.waits = 0;
        }
        if self.streams() && !cfg!(any(loom, shuttle)) {
            self.stay_away();
        }
    }

    #[cold]
    #[inline(never)]
    fn stay_away(&self) {
        let from = Instant::now();
        while Instant::now().saturating_duration_since(from) < self.lag {
            (0..HINTS).for_each(|_| spin_loop());
        }
    }
}
