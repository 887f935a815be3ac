//! Samples of one place: a sequential test of whether it is inside the lock.

use threadtoll_stats::interval::share_at;

use super::scene::{Place, WHOLE};

/// Quantile of the normal distribution that is exceeded with a probability of 1 in 2,000.
const CERTAIN: f64 = 3.29;

/// Likelihood ratio at which a place is taken to be inside, or outside.
const LIKELIER: f64 = 2000.0;

/// While a thread is at a place inside, the word is this many times less likely to be seen free
/// than otherwise. The factor is finite because threads are read some microseconds after the word.
const RARER: f64 = 10.0;

/// Upper limit for `usual`, the share of samples in which the word is free. A place where threads
/// do not hold the lock in an eighth of the samples, such as a loop that they pass both inside and
/// outside the lock, must be judged outside even if the word is free more often than this.
const MAX_USUAL: f64 = 0.3;

/// Maximum share of samples of a place inside that may show two threads there, because one left and
/// another came while the threads were read.
const MAX_CROWDED: f64 = 0.1;

/// Samples of a place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PlaceSamples {
    /// Number of samples in which a thread was there.
    pub(super) all: u64,
    /// Number of samples in which a thread was there that did not hold the lock: the word was free,
    /// or the thread had not run since it was free.
    pub(super) outside: u64,
    /// Number of scenes (samples that include every thread that may hold the lock) in which such a
    /// thread was there.
    pub(super) scenes: u64,
    /// Number of those scenes in which no other thread can hold the lock, so that this thread does.
    pub(super) sole: u64,
    /// Number of samples with a second thread there.
    pub(super) crowded: u64,
    /// Side of the lock on which the place is, according to the last judgement.
    pub(super) side: Side,
    /// Value of `all` at which the place is judged next.
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

impl PlaceSamples {
    /// The side of a place, given that the word is free in the share `usual` of all samples.
    pub(super) fn judge(&self, place: Place, usual: f64) -> Side {
        let Some(crowded) = share_at(self.crowded, self.all, CERTAIN) else { return Side::Open };
        if crowded.low > MAX_CROWDED {
            return Side::Outside;
        }
        let usual = usual.min(MAX_USUAL);
        let held = (self.all - self.outside) as f64;
        // Being the only possible holder counts for whole stacks only. A thread in a frame of a
        // loop, or on a CPU, may be the only possible holder as often outside the lock as inside,
        // and is hardly ever known to be outside.
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
