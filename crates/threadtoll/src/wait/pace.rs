//! Letting the sender get ahead.
//!
//! A receiver that is faster than its sender looks at the very line that the sender is filling, and its CPU fetches the lines behind that
//! one unasked, so that every line goes back and forth. If it stays away for a while, the sender fills lines undisturbed, and both get more
//! done. But a message that comes alone is delayed by it. So the receiver tries now and then whether staying away brings it more than
//! one message, and goes on as long as it does: at first for a short while, then, where messages keep coming, for longer ones.

use std::time::Duration;

use super::{GLANCES, Wait};
use crate::sync::{Instant, spin_loop};

/// How long the receiver stays away at first…
const SHORT: Duration = Duration::from_nanos(500);
/// …and at most: hundreds of times that a line goes over are then one.
const LONG: Duration = Duration::from_micros(4);
/// What a sender takes for a message where it is in a hurry: the receiver is back before a bounded queue is full, or soon after.
const HURRY: Duration = Duration::from_nanos(2);
/// Pause hints between two looks at the clock.
const HINTS: u32 = 4;
/// Messages that a wait brings where a lag is worth a try; who asks and waits for the answer gets fewer.
const STREAM: u64 = 16;
/// Waits that are judged together: one alone brings more or less by chance.
const SPAN: u32 = 8;
/// Waits between a try in vain and the next one, at first. One that brought `STREAM` messages or more counts as so many.
const TRY_EVERY: u32 = 512;
/// Tries in vain make the next ones rarer, up to so many times.
const MOST_PATIENT: u32 = 8;
/// Waits, counted likewise, after which it is seen again whether the lag still pays.
const CHECK_EVERY: u32 = 8192;

/// What the receiver knows of its sender's pace.
#[derive(Debug)]
pub(crate) struct Pace {
    /// What was taken at the last wait.
    taken: u64,
    /// How long it stays away; nothing if it does not.
    lag: Duration,
    longest: Duration,
    /// Whether it would sleep where it does not stay away.
    sleeps: bool,
    phase: Phase,
    /// Waits of this span, and what they brought.
    waits: u32,
    sum: u64,
    /// What a span brought with the lag that is kept.
    kept: u64,
    /// Waits until the next try, or check.
    rest: u32,
    patience: u32,
}

/// What a span is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// There is no lag.
    Resting,
    /// The lag is longer than it was before, to see whether it brings more.
    Trying { without: u64, before: Duration },
    /// The lag has paid.
    Keeping,
    /// There is none for a while, to see whether it brings less.
    Checking { lag: Duration },
}

impl Pace {
    /// For a queue that holds so many messages.
    pub(crate) fn new<W: Wait>(capacity: u64) -> Self {
        let until_full = HURRY.saturating_mul(u32::try_from(capacity).unwrap_or(u32::MAX));
        Pace {
            taken: 0,
            lag: Duration::ZERO,
            longest: until_full.min(LONG),
            sleeps: W::SLEEPS_AT_ONCE,
            phase: Phase::Resting,
            waits: 0,
            sum: 0,
            kept: 0,
            rest: TRY_EVERY,
            patience: 1,
        }
    }

    /// How often to look, with pauses in between, before a receiver goes to sleep that otherwise does so at once: where messages keep
    /// coming, the next one is nearer than sleep.
    pub(crate) fn glances(&self) -> u32 {
        if self.phase == Phase::Resting { 0 } else { GLANCES }
    }

    /// Nothing is there, and so many messages were taken in all: stays away for a while if that has paid, or to see whether it does.
    #[inline]
    pub(crate) fn lag(&mut self, taken: u64) {
        let got = taken - self.taken;
        self.taken = taken;
        self.decide(got);
        if self.lag > Duration::ZERO && !cfg!(any(loom, shuttle)) {
            self.stay_away();
        }
    }

    /// Decides how long to stay away, from what came since the last wait.
    ///
    /// Who asks and waits for the answer gets as many messages however long the other stays away: then it was in vain. In a stream a lag
    /// brings twice as many at least, and each longer one a quarter more.
    fn decide(&mut self, got: u64) {
        if self.is_in_vain(got) {
            return self.stop();
        }
        self.sum += got;
        self.waits += 1;
        self.rest = self.rest.saturating_sub(if got >= STREAM { STREAM as u32 } else { 1 });
        if self.waits < SPAN {
            return;
        }
        let brought = self.end_span();
        match self.phase {
            Phase::Resting if self.rest == 0 => self.try_longer(brought),
            Phase::Resting => {}
            Phase::Trying { without, before } => {
                let enough = match before {
                    // While it sleeps, much comes as well, but sleep costs both more than to stay away.
                    Duration::ZERO if self.sleeps => 0,
                    Duration::ZERO => 2 * without,
                    _ => without + without / 4,
                };
                if brought > enough {
                    self.kept = brought;
                    self.patience = 1;
                    self.try_longer(brought);
                } else if before.is_zero() {
                    self.stop();
                } else {
                    self.keep(before);
                }
            }
            Phase::Keeping => {
                self.kept = brought;
                // Who would sleep does not see by a check what sleep costs.
                if self.rest == 0 && !self.sleeps {
                    self.phase = Phase::Checking { lag: self.lag };
                    self.lag = Duration::ZERO;
                }
            }
            Phase::Checking { lag } if brought <= self.kept / 2 => self.keep(lag),
            Phase::Checking { .. } => self.stop(),
        }
    }

    /// Whether a wait with a lag brought so little that none of it is due to the lag.
    fn is_in_vain(&self, got: u64) -> bool {
        match self.phase {
            Phase::Resting | Phase::Checking { .. } => false,
            Phase::Trying { before: Duration::ZERO, .. } => got < STREAM,
            _ if self.sleeps => got < STREAM,
            // What kept coming does so no more.
            Phase::Trying { .. } | Phase::Keeping => got < self.kept / u64::from(4 * SPAN),
        }
    }

    /// What the span brought; the next one begins.
    fn end_span(&mut self) -> u64 {
        self.waits = 0;
        std::mem::take(&mut self.sum)
    }

    fn try_longer(&mut self, without: u64) {
        if self.lag >= self.longest {
            return self.keep(self.lag);
        }
        self.phase = Phase::Trying { without, before: self.lag };
        self.lag = (self.lag * 2).clamp(SHORT, LONG).min(self.longest);
    }

    fn keep(&mut self, lag: Duration) {
        self.lag = lag;
        self.phase = Phase::Keeping;
        self.rest = CHECK_EVERY;
    }

    fn stop(&mut self) {
        self.end_span();
        self.lag = Duration::ZERO;
        self.phase = Phase::Resting;
        self.rest = TRY_EVERY * self.patience;
        self.patience = (2 * self.patience).min(MOST_PATIENT);
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
    use super::super::{Park, Spin};
    use super::*;

    /// How long the receiver stays away in so many waits, if a wait after such a lag brings so many messages.
    fn away(waits: u32, mut brings: impl FnMut(Duration) -> u64) -> (Pace, Duration) {
        let mut pace = Pace::new::<Spin>(u64::MAX);
        let mut away = Duration::ZERO;
        for _ in 0..waits {
            pace.decide(brings(pace.lag));
            away += pace.lag;
        }
        (pace, away)
    }

    /// Numbers that look random.
    fn random() -> impl FnMut(u64) -> u64 {
        let mut state = 1u64;
        move |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        }
    }

    #[test]
    fn who_waits_for_answers_is_hardly_ever_kept_waiting() {
        for batch in [1, 2, 15, 16, 256, 100_000] {
            let (_, away) = away(100_000, |_| batch);
            let tries =
                100_000 / if batch >= STREAM { TRY_EVERY / STREAM as u32 } else { TRY_EVERY } / MOST_PATIENT
                    + 4;
            let waits = if batch >= STREAM { SPAN } else { 1 };
            assert!(away <= SHORT * waits * tries, "{batch}: {away:?}");
        }
    }

    #[test]
    fn chance_keeps_nobody_waiting() {
        // An answer now and then is there before it is looked for, so that a wait brings two, or three.
        let mut below = random();
        let (_, long) = away(1_000_000, |_| 1 + u64::from(below(20) == 0) + u64::from(below(400) == 0));
        assert!(long <= SHORT * 1_000_000 / TRY_EVERY, "{long:?}");
        // Answers to batches of 256 come in pieces.
        let mut below = random();
        let mut left = 256;
        let (_, long) = away(1_000_000, |_| {
            let piece = 1 + below(left);
            left = if piece == left { 256 } else { left - piece };
            piece
        });
        assert!(long <= SHORT * 1_000_000 / 20, "{long:?}");
    }

    #[test]
    fn a_lag_that_pays_no_more_is_given_up() {
        let (mut pace, _) = away(10_000, |lag| 7 + lag.as_nanos() as u64 / 2);
        assert_eq!(pace.lag, LONG);
        // As much comes now without a lag: batches of somebody who waits for their answers.
        let mut lagged = 0;
        for _ in 0..100_000 {
            pace.decide(2_000);
            lagged += u32::from(pace.lag > Duration::ZERO);
        }
        assert!(lagged < 100_000 / 10, "{lagged}");
    }

    #[test]
    fn in_a_stream_the_lag_grows_as_long_as_it_brings_more() {
        // A message in 2 ns, and seven when the receiver is right behind.
        let stream = |lag: Duration| 7 + lag.as_nanos() as u64 / 2;
        let (pace, long) = away(100_000, stream);
        assert_eq!(pace.lag, LONG);
        assert!(long > LONG * 95_000, "{long:?}");
        // A queue that is full after a microsecond brings no more after two.
        let full = |lag: Duration| 7 + lag.min(Duration::from_micros(1)).as_nanos() as u64 / 2;
        let (pace, _) = away(1_000, full);
        assert!(pace.lag <= Duration::from_micros(2), "{:?}", pace.lag);
        assert!(pace.lag >= SHORT, "{:?}", pace.lag);
    }

    #[test]
    fn who_would_sleep_stays_away_where_messages_keep_coming() {
        // Sleep brings thousands, a lag hundreds.
        let mut pace = Pace::new::<Park>(u64::MAX);
        for _ in 0..1_000 {
            pace.decide(if pace.lag.is_zero() { 5_000 } else { pace.lag.as_nanos() as u64 / 2 });
        }
        assert_eq!(pace.lag, LONG);
    }

    #[test]
    fn a_stream_that_ends_is_noticed_at_once() {
        let (mut pace, _) = away(1_000, |lag| 7 + lag.as_nanos() as u64 / 2);
        assert!(pace.lag > Duration::ZERO);
        pace.decide(1);
        assert_eq!(pace.lag, Duration::ZERO);
    }
}
