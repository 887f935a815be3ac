//! Looks at one place: a sequential test of whether it is inside the lock.

use threadtoll_stats::interval::share_at;

use super::scene::{Place, WHOLE};

/// Quantile of the normal distribution beyond which lies one in two thousand.
const CERTAIN: f64 = 3.29;

/// Ratio of likelihoods at which a place is taken to be inside, or outside.
const LIKELIER: f64 = 2000.0;

/// The word is free so many times more rarely at a place inside than otherwise. Not infinitely:
/// threads are looked at some microseconds after the word.
const RARER: f64 = 10.0;

/// A place at which threads do not hold the lock at an eighth of the looks, such as that of a loop
/// that they pass in and out of the lock, shall be outside even if the word is free more often than
/// at this share of looks.
const MAX_USUAL: f64 = 0.3;

/// Share of looks at a place inside that may show two threads there, because one left and one came
/// while the threads were looked at.
const MAX_CROWDED: f64 = 0.1;

/// Looks at a place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Looks {
    /// Looks at threads there.
    pub(super) all: u64,
    /// Looks at threads that did not hold the lock: the word was free, or had been since they ran.
    pub(super) outside: u64,
    /// Scenes with a thread there of whom one may hold the lock.
    pub(super) scenes: u64,
    /// Those of them in which no other can: it does.
    pub(super) sole: u64,
    /// Looks with a second thread there.
    pub(super) crowded: u64,
    /// Side of the lock, as of the last judgement.
    pub(super) side: Side,
    /// Number of looks from which it is judged again.
    pub(super) next: u64,
}

/// Side of the lock on which a thread or place is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Side {
    Inside,
    Outside,
    #[default]
    Open,
}

impl Looks {
    /// The side, where the word is free at this share of all looks.
    pub(super) fn judge(&self, place: Place, usual: f64) -> Side {
        let Some(crowded) = share_at(self.crowded, self.all, CERTAIN) else { return Side::Open };
        if crowded.low > MAX_CROWDED {
            return Side::Outside;
        }
        let usual = usual.min(MAX_USUAL);
        let held = (self.all - self.outside) as f64;
        // A frame of a loop, or a thread on a CPU, may be alone as often in and out of the lock,
        // and yet be hardly ever known to be outside.
        let alone = if place.frame == WHOLE { self.sole as f64 * RARER.ln() } else { 0.0 };
        let inside = alone + held * ((1.0 - usual / RARER) / (1.0 - usual)).ln();
        let outside = self.outside as f64 * RARER.ln();
        match inside - outside {
            likelier if likelier > LIKELIER.ln() => Side::Inside,
            likelier if likelier < -LIKELIER.ln() => Side::Outside,
            _ => Side::Open,
        }
    }
}
