//! The verdict on a lock.
//!
//! A lock that `U` threads use is *comfortable* if at most a twentieth of them wait, *saturated* if
//! it is held or handed over at least nine tenths of the time, and otherwise *crowded*. If an
//! interval spans a threshold, the verdict consists of all words that the interval allows.

use threadtoll_stats::interval::Estimate;

/// Share of a lock's users that may wait while the verdict is still comfortable.
pub const COMFORTABLE_WAITING: f64 = 0.05;

/// Share of time held, hand-offs included, at which a lock counts as saturated.
pub const SATURATED_BUSY: f64 = 0.9;

/// A verdict: one word, or several if the samples cannot decide between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// True if the lock may be comfortable.
    pub comfortable: bool,
    /// True if the lock may be crowded.
    pub crowded: bool,
    /// True if the lock may be saturated.
    pub saturated: bool,
}

impl Verdict {
    /// Verdict on a lock with the mean queue `queue`, which is held or handed over for the share
    /// `busy` of the time.
    pub fn new(queue: Estimate, busy: Estimate, users: u32) -> Self {
        let waiting = queue.map(|queue| queue / f64::from(users.max(1)));
        let not_comfortable = waiting.high > COMFORTABLE_WAITING;
        Self {
            comfortable: waiting.low <= COMFORTABLE_WAITING,
            crowded: not_comfortable && busy.low < SATURATED_BUSY,
            saturated: not_comfortable && busy.high >= SATURATED_BUSY,
        }
    }

    #[cfg(test)]
    pub(crate) fn words(self) -> Vec<&'static str> {
        let words = [
            (self.comfortable, "comfortable"),
            (self.crowded, "crowded"),
            (self.saturated, "saturated"),
        ];
        words.into_iter().filter_map(|(may_be, word)| may_be.then_some(word)).collect()
    }

    /// Returns `true` if the lock is certainly not comfortable.
    pub fn is_trouble(self) -> bool {
        !self.comfortable
    }
}

/// Share of a lock's users that do not wait for it: `1 − queue/users`.
pub fn efficiency(queue: Estimate, users: u32) -> Estimate {
    queue.map_falling(|queue| (1.0 - queue / f64::from(users.max(1))).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(value: f64, half_width: f64) -> Estimate {
        Estimate { value, low: value - half_width, high: value + half_width }
    }

    #[test]
    fn verdicts_follow_the_contract() {
        let words = |queue, busy, users| Verdict::new(queue, busy, users).words();
        assert_eq!(words(around(0.001, 0.001), around(0.02, 0.002), 3), ["comfortable"]);
        assert_eq!(words(around(0.8, 0.1), around(0.6, 0.02), 8), ["crowded"]);
        assert_eq!(words(around(5.0, 0.1), around(0.97, 0.01), 8), ["saturated"]);
        let either = words(around(0.4, 0.05), around(0.5, 0.02), 8);
        assert_eq!(either, ["comfortable", "crowded"]);
        let either = words(around(4.0, 0.2), around(0.9, 0.02), 8);
        assert_eq!(either, ["crowded", "saturated"]);
        // One thread that always holds its lock waits for nobody.
        assert_eq!(words(Estimate::exact(0.0), around(0.99, 0.01), 1), ["comfortable"]);
    }

    #[test]
    fn efficiency_falls_with_the_queue() {
        let efficiency = efficiency(around(0.8, 0.4), 8);
        assert!((efficiency.value - 0.9).abs() < 1e-12);
        assert!((efficiency.low - 0.85).abs() < 1e-12 && (efficiency.high - 0.95).abs() < 1e-12);
    }
}
