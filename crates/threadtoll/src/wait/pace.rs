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
/// …and at most: hundreds of times that a line goes over are then one.
const LONG: Duration = Duration::from_micros(4);
/// What a sender takes for a message where it is in a hurry: the receiver is back before a bounded queue is full, or soon after.
const HURRY: Duration = Duration::from_nanos(2);
/// Pause hints between two looks at the clock.
const HINTS: u32 = 4;
/// Messages without a wait among them that may show that the sender does not wait for an answer: worth a try.
const STREAM: u64 = 16;
/// Waits between a try in vain and the next one. One that brought `STREAM` messages or more counts as so many.
const TRY_EVERY: u32 = 512;

/// What the receiver knows of its sender's pace.
#[derive(Debug)]
pub(crate) struct Pace {
    /// What was taken at the last wait.
    taken: u64,
    /// Waits until the next try.
    rest: u32,
    /// How long it stays away; nothing if it does not.
    lag: Duration,
    /// What a wait brought when that was decided.
    brought: u64,
    /// Whether the lag is longer than it was, to see whether it brings more.
    trying: bool,
    longest: Duration,
}

impl Pace {
    /// For a queue that holds so many messages.
    pub(crate) fn new(capacity: u64) -> Self {
        let until_full = HURRY.saturating_mul(u32::try_from(capacity).unwrap_or(u32::MAX));
        let longest = until_full.min(LONG);
        Pace { taken: 0, rest: TRY_EVERY, lag: Duration::ZERO, brought: 0, trying: false, longest }
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

    /// Nothing is there, and so many messages were taken in all: stays away for a while if that has paid, or to see whether it does.
    #[inline]
    pub(crate) fn lag(&mut self, taken: u64) {
        let got = taken - self.taken;
        self.taken = taken;
        self.decide(got);
        if self.streams() && !cfg!(any(loom, shuttle)) {
            self.stay_away();
        }
    }

    /// Decides how long to stay away, from what came since the last wait.
    ///
    /// Who asks and waits for the answer gets as many messages however long the other stays away: then it was in vain. In a stream each
    /// longer lag brings more, at least a quarter more.
    fn decide(&mut self, got: u64) {
        if self.trying {
            self.trying = false;
            if got <= self.brought + self.brought / 4 {
                self.lag = if self.lag <= SHORT { Duration::ZERO } else { self.lag / 2 };
                self.rest = TRY_EVERY;
                return;
            }
            self.rest = 0;
        } else if self.streams() && got < self.brought.min(self.lag.as_nanos() as u64) / 4 {
            // What kept coming does so no more. What came before in a long time without a wait is nothing that a lag brings.
            self.lag = Duration::ZERO;
            self.rest = TRY_EVERY;
            return;
        }
        self.rest = self.rest.saturating_sub(if got >= STREAM { STREAM as u32 } else { 1 });
        if self.rest == 0 && self.lag < self.longest {
            self.brought = got;
            self.lag = (self.lag * 2).clamp(SHORT, LONG).min(self.longest);
            self.trying = true;
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// How long the receiver stays away in so many waits, if a wait after such a lag brings so many messages.
    fn away(waits: u32, brings: impl Fn(Duration) -> u64) -> (Pace, Duration) {
        let mut pace = Pace::new(u64::MAX);
        let mut away = Duration::ZERO;
        for _ in 0..waits {
            pace.decide(brings(pace.lag));
            away += pace.lag;
        }
        (pace, away)
    }

    #[test]
    fn who_waits_for_answers_is_hardly_ever_kept_waiting() {
        for batch in [1, 2, 15, 16, 256, 100_000] {
            let (_, away) = away(100_000, |_| batch);
            let tries = if batch >= STREAM { 100_000 / 32 } else { 100_000 / TRY_EVERY };
            assert!(away <= SHORT * (tries + 1), "{batch}: {away:?}");
        }
    }

    #[test]
    fn in_a_stream_the_lag_grows_as_long_as_it_brings_more() {
        // A message in 2 ns, and seven when the receiver is right behind.
        let stream = |lag: Duration| 7 + lag.as_nanos() as u64 / 2;
        assert_eq!(away(1_000, stream).0.lag, LONG);
        // A queue that is full after a microsecond brings no more after two.
        let full = |lag: Duration| 7 + lag.min(Duration::from_micros(1)).as_nanos() as u64 / 2;
        let (pace, _) = away(1_000, full);
        assert!(pace.lag <= Duration::from_micros(2), "{:?}", pace.lag);
        assert!(pace.lag >= SHORT, "{:?}", pace.lag);
    }

    #[test]
    fn a_stream_that_ends_is_noticed_at_once() {
        let (mut pace, _) = away(1_000, |lag| 7 + lag.as_nanos() as u64 / 2);
        pace.decide(1);
        assert_eq!(pace.lag, Duration::ZERO);
    }
}
