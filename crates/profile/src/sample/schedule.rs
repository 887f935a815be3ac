//! The times at which to look.
//!
//! Gaps are exponential: the times are a Poisson process, so that within any stretch of the run
//! they are independent and uniform, whatever rhythm the program has. A look that comes late
//! answers every time that has passed meanwhile; how late it was is recorded.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Draws the times.
#[derive(Debug)]
pub struct Schedule {
    random: Xoshiro256PlusPlus,
    mean_gap_ns: f64,
    /// The next time, to the fraction of a nanosecond: rounding must not shift the rate.
    next: f64,
    start: u64,
}

/// The times that a look answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The first of them, on `CLOCK_MONOTONIC`.
    pub at: u64,
    /// Number of times that have passed.
    pub times: u32,
}

impl Schedule {
    /// Times from `start` on, `rate_per_s` of them on average.
    pub fn new(start: u64, rate_per_s: f64, seed: u64) -> Self {
        let mut schedule = Schedule {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            mean_gap_ns: 1e9 / rate_per_s,
            next: 0.0,
            start,
        };
        schedule.advance();
        schedule
    }

    fn advance(&mut self) {
        // In (0, 1], whose logarithm is finite.
        let uniform = 1.0 - self.random.random::<f64>();
        self.next -= uniform.ln() * self.mean_gap_ns;
    }

    /// The next time.
    pub fn next(&self) -> u64 {
        self.start + self.next as u64
    }

    /// Changes the rate from the next time on.
    ///
    /// The next time is drawn anew from `now`, which a process without memory allows.
    pub fn set_rate(&mut self, now: u64, rate_per_s: f64) {
        self.mean_gap_ns = 1e9 / rate_per_s;
        self.next = now.saturating_sub(self.start) as f64;
        self.advance();
    }

    /// The times up to `now`; `None` if the next one is still to come.
    pub fn take(&mut self, now: u64) -> Option<Due> {
        let at = self.next();
        let mut times = 0;
        while self.next() <= now {
            times += 1;
            self.advance();
        }
        (times > 0).then_some(Due { at, times })
    }

    /// A number below `limit`, from the source that draws the times.
    pub fn below(&mut self, limit: u32) -> u32 {
        self.random.random_range(0..limit.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_a_poisson_process() {
        let mut schedule = Schedule::new(1_000, 1_000.0, 7);
        let (mut gaps, mut last) = (Vec::new(), 1_000);
        for _ in 0..20_000 {
            let at = schedule.next();
            assert_eq!(schedule.take(at), Some(Due { at, times: 1 }));
            gaps.push((at - last) as f64);
            last = at;
        }
        let count = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / count;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
        assert!((mean / 1e6 - 1.0).abs() < 0.03, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.04, "{variance}");
    }

    #[test]
    fn a_late_look_answers_every_time_that_has_passed() {
        let mut schedule = Schedule::new(0, 1_000.0, 3);
        let at = schedule.next();
        assert_eq!(schedule.take(at - 1), None);
        let due = schedule.take(at + 1_000_000_000).unwrap();
        assert_eq!(due.at, at);
        assert!((850..1150).contains(&due.times), "{due:?}");
        assert!(schedule.next() > at + 1_000_000_000);
    }

    #[test]
    fn a_new_rate_begins_now() {
        let mut schedule = Schedule::new(0, 1.0, 3);
        schedule.set_rate(5_000_000_000, 1e6);
        let next = schedule.next();
        assert!((5_000_000_000..5_000_100_000).contains(&next), "{next}");
    }
}
