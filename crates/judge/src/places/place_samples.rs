//! Sequential test that decides if a place is inside the lock, from samples of the place.

use threadtoll_stats::interval::share_at;

use super::scene::{Place, WHOLE};

/// Quantile of the normal distribution that is exceeded with a probability of 1 in 2,000.
const CERTAIN: f64 = 3.29;

/// Likelihood ratio at which a place is accepted as inside, or as outside.
const LIKELIER: f64 = 2000.0;

/// Factor by which the word is more rarely seen free while a thread is at a place inside. The
/// factor is finite because threads are read some microseconds after the word.
const RARER: f64 = 10.0;

/// Upper limit for `usual`, the share of samples in which the word is free. Some places, such as a
/// loop that runs both inside and outside the lock, have threads without the lock in an eighth of
/// the samples. They must count as outside even if the word is free more often than this limit.
const MAX_USUAL: f64 = 0.3;

/// Maximum share of samples that may show two threads at a place inside: one may leave and another
/// come while the threads are read.
const MAX_CROWDED: f64 = 0.1;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PlaceSamples {
    /// Number of samples with a thread at the place.
    pub(super) all: u64,
    /// Number of samples with a thread at the place that did not hold the lock: the word was free,
    /// or the thread had not run since the word was free.
    pub(super) outside: u64,
    /// Number of scenes (samples that include every possible holder) with a possible holder at the
    /// place.
    pub(super) scenes: u64,
    /// Number of those scenes in which no other thread can hold the lock, so that this one does.
    pub(super) sole: u64,
    /// Number of samples with a second thread at the place.
    pub(super) crowded: u64,
    /// Side of the lock on which the place is, as last judged.
    pub(super) side: Side,
    /// Value of `all` at which the place is judged next.
    pub(super) next: u64,
}

/// Side of the lock on which a place is; `Open` if undecided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Side {
    Inside,
    Outside,
    #[default]
    Open,
}

impl PlaceSamples {
    /// Judges the side of a place. `usual` is the share of all samples in which the word is free.
    pub(super) fn judge(&self, place: Place, usual: f64) -> Side {
        let Some(crowded) = share_at(self.crowded, self.all, CERTAIN) else { return Side::Open };
        if crowded.low > MAX_CROWDED {
            return Side::Outside;
        }
        let usual = usual.min(MAX_USUAL);
        let held = (self.all - self.outside) as f64;
        // Being the only possible holder counts only for whole stacks. A thread in a frame of a
        // loop, or on a CPU, may be the only possible holder as often outside the lock as inside,
        // yet is hardly ever known to be outside.
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
