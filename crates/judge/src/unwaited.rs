//! Runs of samples that saw no thread waiting. They show for what share of time the lock is held
//! while nobody waits.
//!
//! The time before a lock became known is a run without waiters, too. Later runs show for what
//! share of that time the lock may have been held. Only runs of about the same length are compared:
//! if a sample reads few threads, it may miss all waiters, but a long run of samples does not.

use std::collections::BTreeMap;

use threadtoll_stats::interval::{Estimate, mean};
use threadtoll_stats::{Z95, student};

use super::sample::LockSample;

/// Binary logarithm of the shortest length of a run, in seconds; shorter runs count as this long.
const SHORTEST: i32 = -16;

/// Minimum number of runs for estimating a variance.
const MIN_RUNS: f64 = 5.0;

/// Runs of about the same length.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Runs {
    count: f64,
    seconds: f64,
    held_s: f64,
    /// Sum of the runs' held shares; `squares` is the sum of their squares.
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

/// All runs of samples that read the word of a lock and saw no thread waiting for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Unwaited {
    /// Ended runs, by the binary logarithm of their seconds, rounded down.
    ended: BTreeMap<i32, Runs>,
    /// Length in seconds of the run that has not ended yet; the lock was held for `held_s` of it.
    seconds: f64,
    held_s: f64,
    /// Total time of late samples without a waiter, in seconds; they belong to no run.
    late_s: f64,
}

impl Unwaited {
    pub(super) fn add(&mut self, sample: &LockSample, times: u64) {
        let seconds = sample.time * times as f64;
        if sample.queue.is_some_and(|queue| queue > 0.0) {
            self.end_run();
        } else if let Some(held) = sample.held {
            if sample.late {
                self.late_s += seconds;
            } else {
                self.seconds += seconds;
                self.held_s += f64::from(held) * seconds;
            }
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

    /// Share of time for which the lock would be held in another run of this length without
    /// waiters.
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
        let deviation = if runs.count < MIN_RUNS {
            // There are too few runs to estimate a variance, so the largest possible one is used:
            // the lock is held throughout each run, or not at all.
            Z95 * (value * (1.0 - value)).sqrt()
        } else {
            student(0.025, runs.count - 1.0) * runs.variance().sqrt()
        };
        let half = deviation * (1.0 + 1.0 / runs.count).sqrt();
        // Even if all runs are alike, a small number of them leaves the share uncertain.
        let few = mean(value, 1.0, runs.count);
        let (low, high) = (few.low.min(value - half), few.high.max(value + half));
        // During late samples, the lock may have been held all the time, or never.
        let sampled_s: f64 = all.ended.values().map(|runs| runs.seconds).sum();
        let on_time = sampled_s / (sampled_s + self.late_s);
        let (low, high) = (low * on_time, high * on_time + 1.0 - on_time);
        Estimate { value, low: low.max(0.0), high: high.min(1.0) }
    }
}

fn length(seconds: f64) -> i32 {
    seconds.log2().floor().max(f64::from(SHORTEST)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(held: bool, queue: f64) -> LockSample {
        let (held, queue) = (Some(held), Some(queue));
        LockSample { held, queue, waking: None, waiter: 1.0, time: 0.01, late: false }
    }

    #[test]
    fn long_runs_tell_of_a_long_time() {
        let mut runs = Unwaited::default();
        for _ in 0..20 {
            // First a crowd, in which one sample in four shows waiters, then a pause.
            for at in 0..100 {
                runs.add(&sample(true, if at % 4 == 0 { 9.0 } else { 0.0 }), 1);
            }
            runs.add(&sample(false, 0.0), 100);
        }
        let pause = runs.held(1.0);
        assert!(pause.value < 0.05 && pause.high < 0.25, "{pause:?}");
        let short = runs.held(0.02);
        assert!(short.value > 0.3, "{short:?}");
    }

    #[test]
    fn nothing_is_known_without_a_run() {
        let mut runs = Unwaited::default();
        runs.add(&sample(true, 1.0), 1);
        runs.add(&LockSample { held: None, ..sample(true, 0.0) }, 1);
        let nothing = runs.held(1.0);
        assert_eq!((nothing.low, nothing.high), (0.0, 1.0));
        // Another run might differ entirely from this single one.
        for at in 0..10 {
            runs.add(&LockSample { queue: None, ..sample(at % 2 > 0, 0.0) }, 1);
        }
        let one = runs.held(1.0);
        assert!((one.value - 0.5).abs() < 1e-9 && one.low == 0.0 && one.high == 1.0, "{one:?}");
    }

    #[test]
    fn few_runs_that_are_alike_do_not_tell_all() {
        let runs = |count: u32| {
            let mut runs = Unwaited::default();
            for _ in 0..count {
                runs.add(&sample(false, 0.0), 100);
                runs.add(&sample(true, 1.0), 1);
            }
            runs.held(1.0)
        };
        let highs = [1, 5, 100].map(|count| runs(count).high);
        assert!(highs[0] > 0.7 && (0.2..0.6).contains(&highs[1]), "{highs:?}");
        assert!((0.02..0.06).contains(&highs[2]), "{highs:?}");
    }

    /// A late sample is taken just after the holder has released the lock.
    #[test]
    fn late_samples_tell_nothing() {
        let mut runs = Unwaited::default();
        for _ in 0..50 {
            for at in 0..100 {
                let late = at % 10 == 0;
                runs.add(&LockSample { late, ..sample(!late, 0.0) }, 1);
            }
            runs.add(&LockSample { late: true, ..sample(false, 1.0) }, 1);
        }
        let held = runs.held(1.0);
        assert!(held.value == 1.0 && held.high == 1.0, "{held:?}");
        assert!((0.8..0.9).contains(&held.low), "{held:?}");
    }

    #[test]
    fn lengths_are_binary_logarithms() {
        assert_eq!(length(0.0), SHORTEST);
        assert_eq!((length(0.9), length(1.0), length(3.0)), (-1, 0, 1));
    }
}
