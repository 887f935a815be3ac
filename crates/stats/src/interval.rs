//! Estimates from samples at independent, uniformly distributed times, with 95% intervals for the
//! true values in the run that was sampled. An interval says nothing about the next run.
//!
//! Shares have Wilson's score interval (E. B. Wilson, *Probable inference, the law of succession,
//! and statistical inference*, JASA 22, 1927). Means of non-negative values have the same interval,
//! with a variance derived from the squares of the values; a share is a mean of zeros and ones.

use crate::Z95;

/// A figure and its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// A figure that is known exactly.
    pub fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// Returns `true` if the interval contains `value`.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Applies a function to the figure and its interval. The function must never decrease.
    pub fn map(self, rising: impl Fn(f64) -> f64) -> Self {
        Self { value: rising(self.value), low: rising(self.low), high: rising(self.high) }
    }

    /// Applies a function to the figure and its interval. The function must never increase.
    pub fn map_falling(self, falling: impl Fn(f64) -> f64) -> Self {
        Self { value: falling(self.value), low: falling(self.high), high: falling(self.low) }
    }

    /// The estimate of a figure from 0 to `most`. An estimate beyond `most` is moved down to it and
    /// keeps the width of its lower half.
    pub fn at_most(self, most: f64) -> Self {
        let beyond = (self.value - most).max(0.0);
        Self {
            value: self.value - beyond,
            low: (self.low - beyond).max(0.0),
            high: self.high.min(most),
        }
    }
}

/// The share estimated from `count` of `of` samples; `None` if there are no samples.
///
/// ```
/// use threadtoll_stats::interval;
///
/// let never_seen = interval::share(0, 1000).unwrap();
/// assert!(never_seen.value == 0.0 && never_seen.low == 0.0);
/// assert!((0.003..0.005).contains(&never_seen.high));
/// ```
pub fn share(count: u64, of: u64) -> Option<Estimate> {
    share_at(count, of, Z95)
}

/// Like [`share`], for samples that were taken at only `times` different times. Samples taken at
/// the same time may all be alike, so they count as one.
pub fn share_of(count: u64, of: u64, times: u64) -> Option<Estimate> {
    let value = share(count, of)?.value;
    let times = times.clamp(1, of);
    Some(mean(value, 1.0, times as f64).map(|end| end.clamp(0.0, 1.0)))
}

/// Like [`share`], with an interval of `quantile` standard errors instead of [`Z95`].
pub fn share_at(count: u64, of: u64, quantile: f64) -> Option<Estimate> {
    if of == 0 {
        return None;
    }
    let value = count.min(of) as f64 / of as f64;
    Some(mean_at(value, 1.0, of as f64, quantile).map(|end| end.clamp(0.0, 1.0)))
}

/// The mean of non-negative samples.
///
/// `size` is the sum of the squares of the values, divided by the sum of the values. If all values
/// are zero, pass the smallest positive value that a sample can have; it bounds the mean. `samples`
/// is the number of values or, if they are weighted, the equivalent number of values with equal
/// weights.
pub fn mean(value: f64, size: f64, samples: f64) -> Estimate {
    mean_at(value, size, samples, Z95)
}

fn mean_at(value: f64, size: f64, samples: f64, quantile: f64) -> Estimate {
    // Wilson's method needs the variance of a sample as a function of the true mean:
    // `size × mean − mean²`.
    let spread = quantile * quantile / samples;
    let (a, half_b) = (1.0 + spread, value + spread * size / 2.0);
    let root = (half_b * half_b - a * value * value).max(0.0).sqrt();
    let low = if value > 0.0 { ((half_b - root) / a).clamp(0.0, value) } else { 0.0 };
    Estimate { value, low, high: ((half_b + root) / a).max(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_wilsons_interval() {
        // The bounds were computed by hand.
        let share = share(10, 100).unwrap();
        assert!((share.low - 0.0552).abs() < 1e-4 && (share.high - 0.1744).abs() < 1e-4);
        assert_eq!(super::share(0, 0), None);
    }

    #[test]
    fn samples_of_one_time_may_be_alike() {
        // Twenty samples of ten waiters each. All ten waiters of a sample have the same stack.
        let (alike, apart) = (share_of(100, 200, 20).unwrap(), share(100, 200).unwrap());
        assert_eq!(alike.value, 0.5);
        assert!(alike.high - alike.low > 2.5 * (apart.high - apart.low));
        assert_eq!(share_of(100, 200, 200), Some(apart));
        assert_eq!(share_of(0, 0, 0), None);
    }

    #[test]
    fn edges_stay_inside() {
        for of in [1, 2, 10, 10_000] {
            assert_eq!(share(0, of).unwrap().low, 0.0);
            assert_eq!(share(of, of).unwrap().high, 1.0);
            assert!(share(of, of).unwrap().low < 1.0);
        }
    }

    #[test]
    fn an_estimate_beyond_its_limit_is_moved_down() {
        let queue = Estimate { value: 4.0, low: 3.25, high: 4.75 };
        assert_eq!(queue.at_most(3.0), Estimate { value: 3.0, low: 2.25, high: 3.0 });
        assert_eq!(queue.at_most(4.5), Estimate { high: 4.5, ..queue });
        assert_eq!(queue.at_most(5.0), queue);
        assert_eq!(queue.at_most(0.5), Estimate { value: 0.5, low: 0.0, high: 0.5 });
    }

    #[test]
    fn a_mean_without_any_waiter_is_bounded_by_the_weight_of_one() {
        let one = mean(0.0, 1.0, 1000.0);
        let eight = mean(0.0, 8.0, 1000.0);
        assert_eq!(one.low, 0.0);
        assert!((eight.high / one.high - 8.0).abs() < 1e-9);
    }
}
