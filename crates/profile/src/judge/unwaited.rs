//! Runs of looks that saw nobody waiting, and the share of them for which the lock was held.
//!
//! They tell of the time before a lock was known: a run of such looks, too. Of few threads looked
//! at, one look may miss all waiters, but no long run of looks does: so runs tell of one that was
//! about as long.

use std::collections::BTreeMap;

use super::interval::{Estimate, Z, student};

/// Shorter runs count as this long: a binary logarithm of seconds.
const SHORTEST: i32 = -16;

/// Fewest runs that show a variance.
const MIN_RUNS: f64 = 5.0;

/// Runs of about one length.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Runs {
    count: f64,
    seconds: f64,
    held_s: f64,
    /// Sums of the held shares, and of their squares.
    shares: f64,
    squares: f64,
}

impl Runs {
    fn add(&mut self, more: &Runs) {
        self.count += more.count;
        self.seconds += more.seconds;
        self.held_s += more.held_s;
        self.shares += more.shares;
        self.squares += more.squares;
    }

    fn variance(&self) -> f64 {
        ((self.squares - self.shares * self.shares / self.count) / (self.count - 1.0)).max(0.0)
    }
}

/// All runs of looks that saw the word of a lock, and nobody waiting for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Unwaited {
    /// By the binary logarithm of their seconds, rounded down.
    ended: BTreeMap<i32, Runs>,
    /// Seconds of the run that has not ended, and those of them for which the lock was held.
    seconds: f64,
    held_s: f64,
}

impl Unwaited {
    /// A look that stands for so many seconds: share of them held if the word was read, and
    /// threads seen waiting if any was looked at.
    pub(super) fn add(&mut self, held: Option<f64>, queue: Option<f64>, seconds: f64) {
        if queue.is_some_and(|queue| queue > 0.0) {
            self.end_run();
        } else if let Some(held) = held {
            self.seconds += seconds;
            self.held_s += held * seconds;
        }
    }

    fn end_run(&mut self) {
        if self.seconds > 0.0 {
            let share = self.held_s / self.seconds;
            let run = Runs {
                count: 1.0,
                seconds: self.seconds,
                held_s: self.held_s,
                shares: share,
                squares: share * share,
            };
            self.ended.entry(length(self.seconds)).or_default().add(&run);
        }
        (self.seconds, self.held_s) = (0.0, 0.0);
    }

    /// Share of another such run, of this length, for which the lock was held.
    pub(super) fn held(&self, seconds: f64) -> Estimate {
        let mut all = self.clone();
        all.end_run();
        let wanted = length(seconds / 2.0);
        let mut runs = Runs::default();
        for (&length, more) in all.ended.iter().rev() {
            if length < wanted && runs.count >= MIN_RUNS {
                break;
            }
            runs.add(more);
        }
        if runs.count < 1.0 {
            return Estimate { value: 0.5, low: 0.0, high: 1.0 };
        }
        let value = runs.held_s / runs.seconds;
        let half = if runs.count < MIN_RUNS {
            // Each may be held for all of it, or not at all.
            Z * (value * (1.0 - value)).sqrt()
        } else {
            student(runs.count - 1.0) * runs.variance().sqrt()
        };
        Estimate { value, low: (value - half).max(0.0), high: (value + half).min(1.0) }
    }
}

fn length(seconds: f64) -> i32 {
    seconds.log2().floor().max(f64::from(SHORTEST)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_tell_of_a_long_time() {
        let mut runs = Unwaited::default();
        for _ in 0..20 {
            // A crowd, of which few looks show a waiter; then a pause.
            for look in 0..100 {
                runs.add(Some(1.0), Some(if look % 4 == 0 { 9.0 } else { 0.0 }), 0.01);
            }
            for _ in 0..100 {
                runs.add(Some(0.0), Some(0.0), 0.01);
            }
        }
        let pause = runs.held(1.0);
        assert!(pause.value < 0.05 && pause.high < 0.1, "{pause:?}");
        let short = runs.held(0.02);
        assert!(short.value > 0.3, "{short:?}");
    }

    #[test]
    fn nothing_is_known_without_a_run() {
        let mut runs = Unwaited::default();
        runs.add(Some(1.0), Some(1.0), 0.01);
        runs.add(None, Some(0.0), 0.01);
        let nothing = runs.held(1.0);
        assert_eq!((nothing.low, nothing.high), (0.0, 1.0));
        // A single run may have been another one.
        for look in 0..10 {
            runs.add(Some(f64::from(look % 2)), None, 0.01);
        }
        let one = runs.held(1.0);
        assert!((one.value - 0.5).abs() < 1e-9 && one.low == 0.0 && one.high == 1.0, "{one:?}");
    }

    #[test]
    fn lengths_are_binary_logarithms() {
        assert_eq!(length(0.0), SHORTEST);
        assert_eq!((length(0.9), length(1.0), length(3.0)), (-1, 0, 1));
    }
}
