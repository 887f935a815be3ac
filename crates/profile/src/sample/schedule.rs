//! Draws the times of samples.
//!
//! Time is divided into equal spans, and one instant is drawn uniformly from each. Every instant of
//! the run is equally likely, whatever the rhythm of the program. States that last longer than a
//! span are seen more evenly than with independent times. A late sample stands for every scheduled
//! time that has passed meanwhile; its lateness is recorded.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Draws the times of samples.
#[derive(Debug)]
pub struct Schedule {
    random: Xoshiro256PlusPlus,
    span_ns: f64,
    /// End of the span from which the next time was drawn, in nanoseconds. Fractions count, so that
    /// rounding does not change the rate.
    span_end: f64,
    next: f64,
    start: u64,
}

/// The scheduled times that one sample stands for: several if the sample is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The first of these times, on `CLOCK_MONOTONIC`.
    pub at: u64,
    /// Number of scheduled times since the previous sample.
    pub times: u32,
}

impl Schedule {
    /// Creates a schedule from `start` on, with `rate_per_s` times per second.
    pub fn new(start: u64, rate_per_s: f64, seed: u64) -> Self {
        let mut schedule = Schedule {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            span_ns: 1e9 / rate_per_s,
            span_end: 0.0,
            next: 0.0,
            start,
        };
        schedule.advance();
        schedule
    }

    fn advance(&mut self) {
        self.next = self.span_end + self.random.random::<f64>() * self.span_ns;
        self.span_end += self.span_ns;
    }

    /// Next scheduled time.
    pub fn next(&self) -> u64 {
        self.start + self.next as u64
    }

    /// Changes the rate: a span of the new length begins now.
    pub fn set_rate(&mut self, now: u64, rate_per_s: f64) {
        self.span_ns = 1e9 / rate_per_s;
        self.span_end = now.saturating_sub(self.start) as f64;
        self.advance();
    }

    /// Takes the scheduled times up to `now`; `None` if the next one is still to come.
    pub fn take(&mut self, now: u64) -> Option<Due> {
        let at = self.next();
        let mut times = 0;
        while self.next() <= now {
            times += 1;
            self.advance();
        }
        (times > 0).then_some(Due { at, times })
    }

    /// A random number below `limit`, from the generator that draws the times.
    pub fn below(&mut self, limit: u32) -> u32 {
        self.random.random_range(0..limit.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_span_has_one_time_anywhere_in_it() {
        let mut schedule = Schedule::new(1_000, 1_000.0, 7);
        let mut tenths = [0; 10];
        for span in 0..20_000 {
            let at = schedule.next();
            assert_eq!(schedule.take(at), Some(Due { at, times: 1 }));
            let within = at - 1_000 - span * 1_000_000;
            tenths[(within / 100_000) as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (1_800..2_200).contains(count)), "{tenths:?}");
    }

    #[test]
    fn a_late_sample_answers_every_time_that_has_passed() {
        let mut schedule = Schedule::new(0, 1_000.0, 3);
        let at = schedule.next();
        assert_eq!(schedule.take(at - 1), None);
        let due = schedule.take(at + 1_000_000_000).unwrap();
        assert_eq!(due.at, at);
        assert!((999..=1001).contains(&due.times), "{due:?}");
        assert!(schedule.next() > at + 1_000_000_000);
    }

    #[test]
    fn a_new_rate_begins_now() {
        let mut schedule = Schedule::new(0, 1.0, 3);
        schedule.set_rate(5_000_000_000, 1e6);
        let next = schedule.next();
        assert!((5_000_000_000..5_000_001_000).contains(&next), "{next}");
    }
}
