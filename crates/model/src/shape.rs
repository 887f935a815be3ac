//! Distributions of hold and think times.
//!
//! A shape has a mean, a variation and a Laplace transform for the closed forms, and draws samples
//! for the simulator. Measured times are either single values or the counted buckets of a
//! histogram.

use std::sync::Arc;

use rand::Rng;

use crate::ModelError;
use crate::error::{MAX_NS, time};
use crate::random::{below, exponential, unit};

/// A distribution of times in nanoseconds.
///
/// ```
/// use threadtoll_model::Shape;
///
/// let measured = Shape::sampled(&[90.0, 110.0, 400.0])?;
/// assert_eq!(measured.mean_ns(), 200.0);
/// assert_eq!(measured.with_mean(100.0)?.mean_ns(), 100.0);
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    mean_ns: f64,
    family: Family,
}

#[derive(Clone, Debug, PartialEq)]
enum Family {
    Fixed,
    Exponential,
    Uniform {
        low: f64,
        high: f64,
    },
    /// Two exponential branches; `first` is the probability of the first one.
    Hyperexponential {
        first: f64,
        first_mean: f64,
        second_mean: f64,
    },
    Sampled(Arc<[f64]>),
    /// Values, each with the share of all values up to and including it.
    Counted {
        values: Arc<[f64]>,
        cumulative: Arc<[f64]>,
    },
}

/// The Laplace transform at one point. Its difference from 1 is stored separately, because a
/// subtraction would lose digits for small arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transform {
    pub(crate) value: f64,
    pub(crate) short_of_one: f64,
}

impl Shape {
    /// A fixed time, in nanoseconds.
    ///
    /// # Errors
    ///
    /// If the time is negative, NaN or out of range.
    pub fn fixed(ns: f64) -> Result<Self, ModelError> {
        Ok(Self { mean_ns: time("fixed time", ns)?, family: Family::Fixed })
    }

    /// Exponentially distributed times with this mean, in nanoseconds.
    ///
    /// # Errors
    ///
    /// If the mean is negative, NaN or out of range.
    pub fn exponential(mean_ns: f64) -> Result<Self, ModelError> {
        Ok(Self { mean_ns: time("mean time", mean_ns)?, family: Family::Exponential })
    }

    /// Uniformly distributed between two times, in nanoseconds.
    ///
    /// # Errors
    ///
    /// If a time is negative, NaN or out of range, or if `high_ns` is below `low_ns`.
    pub fn uniform(low_ns: f64, high_ns: f64) -> Result<Self, ModelError> {
        let (low, high) = (time("shortest time", low_ns)?, time("longest time", high_ns)?);
        if high < low {
            return Err(ModelError::Figure {
                what: "longest time",
                value: high,
                range: "no shorter than the shortest",
            });
        }
        Ok(Self { mean_ns: low + (high - low) / 2.0, family: Family::Uniform { low, high } })
    }

    /// More variable than exponential times: two exponential branches that contribute equally to
    /// the mean. `variation` is the squared coefficient of variation, at least 1.
    ///
    /// # Errors
    ///
    /// If the mean is not a valid time, or the variation is below 1 or not finite.
    pub fn hyperexponential(mean_ns: f64, variation: f64) -> Result<Self, ModelError> {
        let mean_ns = time("mean time", mean_ns)?;
        if !(1.0..=1e9).contains(&variation) {
            return Err(ModelError::Figure {
                what: "squared coefficient of variation",
                value: variation,
                range: "from 1 to 1e9",
            });
        }
        let first = f64::midpoint(1.0, ((variation - 1.0) / (variation + 1.0)).sqrt());
        let family = Family::Hyperexponential {
            first,
            first_mean: mean_ns / (2.0 * first),
            second_mean: mean_ns / (2.0 * (1.0 - first)),
        };
        Ok(Self { mean_ns, family })
    }

    /// Measured times in nanoseconds, all equally likely.
    ///
    /// # Errors
    ///
    /// If there are no times, or if one is not valid.
    pub fn sampled(values_ns: &[f64]) -> Result<Self, ModelError> {
        if values_ns.is_empty() {
            return Err(ModelError::TooFew { what: "measured times", least: 1, given: 0 });
        }
        let values = values_ns
            .iter()
            .map(|&value| time("measured time", value))
            .collect::<Result<Arc<[_]>, _>>()?;
        let mean_ns = values.iter().sum::<f64>() / values.len() as f64;
        Ok(Self { mean_ns, family: Family::Sampled(values) })
    }

    /// Measured times in nanoseconds with their counts: the buckets of a histogram.
    ///
    /// # Errors
    ///
    /// If all counts are zero, or a value is not a valid time.
    pub fn counted(buckets: &[(f64, u64)]) -> Result<Self, ModelError> {
        let total = buckets.iter().map(|&(_, count)| count as f64).sum::<f64>();
        if total == 0.0 {
            return Err(ModelError::TooFew { what: "measured times", least: 1, given: 0 });
        }
        let mut below = 0.0;
        let mut mean_ns = 0.0;
        let mut values = Vec::with_capacity(buckets.len());
        let mut cumulative = Vec::with_capacity(buckets.len());
        for &(value, count) in buckets.iter().filter(|&&(_, count)| count > 0) {
            let value = time("measured time", value)?;
            mean_ns += value * (count as f64 / total);
            below += count as f64;
            values.push(value);
            cumulative.push(below / total);
        }
        Ok(Self {
            mean_ns,
            family: Family::Counted { values: values.into(), cumulative: cumulative.into() },
        })
    }

    /// This shape, scaled to another mean in nanoseconds.
    ///
    /// # Errors
    ///
    /// If the new mean is not a valid time, if the old mean is zero but the new one is not, or if a
    /// time would leave the valid range.
    pub fn with_mean(&self, mean_ns: f64) -> Result<Self, ModelError> {
        let mean_ns = time("mean time", mean_ns)?;
        let factor = if mean_ns == self.mean_ns { 1.0 } else { mean_ns / self.mean_ns };
        if !factor.is_finite() {
            return Err(ModelError::Time {
                what: "mean of the shape to be stretched",
                value: self.mean_ns,
            });
        }
        let stretched = |values: &Arc<[f64]>| {
            values
                .iter()
                .map(|value| match value * factor {
                    // A value below the valid range counts as zero.
                    tiny if tiny < crate::MIN_NS => Ok(0.0),
                    value if value <= MAX_NS => Ok(value),
                    value => Err(ModelError::Time { what: "stretched time", value }),
                })
                .collect::<Result<Arc<[_]>, _>>()
        };
        let family = match &self.family {
            Family::Fixed => Family::Fixed,
            Family::Exponential => Family::Exponential,
            Family::Uniform { low, high } => {
                Family::Uniform { low: low * factor, high: high * factor }
            }
            Family::Hyperexponential { first, first_mean, second_mean } => {
                Family::Hyperexponential {
                    first: *first,
                    first_mean: first_mean * factor,
                    second_mean: second_mean * factor,
                }
            }
            Family::Sampled(values) => Family::Sampled(stretched(values)?),
            Family::Counted { values, cumulative } => {
                Family::Counted { values: stretched(values)?, cumulative: Arc::clone(cumulative) }
            }
        };
        Ok(Self { mean_ns, family })
    }

    /// Mean, in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        self.mean_ns
    }

    /// Squared coefficient of variation: 0 for fixed times, 1 for exponential ones.
    pub fn variation(&self) -> f64 {
        let m = self.mean_ns;
        if m == 0.0 {
            return 0.0;
        }
        let spread = |value: f64| ((value - m) / m).powi(2);
        match &self.family {
            Family::Fixed => 0.0,
            Family::Exponential => 1.0,
            Family::Uniform { low, high } => ((high - low) / m).powi(2) / 12.0,
            Family::Hyperexponential { first, first_mean, second_mean } => {
                2.0 * (first * (first_mean / m).powi(2) + (1.0 - first) * (second_mean / m).powi(2))
                    - 1.0
            }
            Family::Sampled(values) => {
                values.iter().map(|&value| spread(value)).sum::<f64>() / values.len() as f64
            }
            Family::Counted { values, cumulative } => weights(cumulative)
                .zip(&**values)
                .map(|(weight, &value)| weight * spread(value))
                .sum(),
        }
    }

    /// Returns `true` if all times are equal.
    pub fn is_fixed(&self) -> bool {
        match &self.family {
            Family::Fixed => true,
            Family::Exponential | Family::Hyperexponential { .. } => self.mean_ns == 0.0,
            Family::Uniform { low, high } => low == high,
            Family::Sampled(values) | Family::Counted { values, .. } => {
                values.iter().all(|value| *value == values[0])
            }
        }
    }

    /// Returns `true` if the times are exponential.
    pub fn is_exponential(&self) -> bool {
        match self.family {
            Family::Exponential => true,
            Family::Hyperexponential { first, .. } => first == 0.5,
            _ => false,
        }
    }

    /// Number of values over which the shape's transform has to sum.
    pub(crate) fn values(&self) -> usize {
        match &self.family {
            Family::Sampled(values) | Family::Counted { values, .. } => values.len(),
            _ => 1,
        }
    }

    /// Laplace transform `E[exp(−s T)]` at `s = rate`, per nanosecond.
    pub(crate) fn transform(&self, rate: f64) -> Transform {
        let m = self.mean_ns;
        match &self.family {
            Family::Fixed => Transform::of(rate * m),
            Family::Exponential => Transform::exponential(rate * m),
            Family::Uniform { low, high } => {
                let start = Transform::of(rate * low);
                let width = rate * (high - low);
                // 1 − (1 − e⁻ˣ)/x. For small x, a series, because the difference would lose its
                // digits.
                let short = if width < 1e-2 {
                    width
                        * (0.5
                            - width
                                * (1.0 / 6.0
                                    - width * (1.0 / 24.0 - width * (1.0 / 120.0 - width / 720.0))))
                } else {
                    1.0 + (-width).exp_m1() / width
                };
                Transform {
                    value: start.value * (1.0 - short),
                    short_of_one: start.short_of_one + start.value * short,
                }
            }
            Family::Hyperexponential { first, first_mean, second_mean } => {
                Transform::exponential(rate * first_mean)
                    .times(*first)
                    .plus(Transform::exponential(rate * second_mean).times(1.0 - first))
            }
            Family::Sampled(values) => values
                .iter()
                .map(|value| Transform::of(rate * value))
                .fold(Transform::NONE, Transform::plus)
                .times(1.0 / values.len() as f64),
            Family::Counted { values, cumulative } => weights(cumulative)
                .zip(&**values)
                .map(|(weight, value)| Transform::of(rate * value).times(weight))
                .fold(Transform::NONE, Transform::plus),
        }
    }

    #[inline]
    pub(crate) fn draw(&self, rng: &mut impl Rng) -> f64 {
        match &self.family {
            Family::Fixed => self.mean_ns,
            Family::Exponential => self.mean_ns * exponential(rng),
            Family::Uniform { low, high } => low + (high - low) * unit(rng),
            Family::Hyperexponential { first, first_mean, second_mean } => {
                let mean = if unit(rng) < *first { first_mean } else { second_mean };
                mean * exponential(rng)
            }
            Family::Sampled(values) => values[below(rng, values.len() as u64) as usize],
            Family::Counted { values, cumulative } => {
                let at = unit(rng);
                let index = cumulative.partition_point(|&share| share <= at);
                values[index.min(values.len() - 1)]
            }
        }
    }
}

impl Transform {
    const NONE: Self = Self { value: 0.0, short_of_one: 0.0 };

    fn of(rate_times_value: f64) -> Self {
        Self { value: (-rate_times_value).exp(), short_of_one: -(-rate_times_value).exp_m1() }
    }

    fn exponential(rate_times_mean: f64) -> Self {
        Self {
            value: 1.0 / (1.0 + rate_times_mean),
            short_of_one: rate_times_mean / (1.0 + rate_times_mean),
        }
    }

    fn times(self, weight: f64) -> Self {
        Self { value: self.value * weight, short_of_one: self.short_of_one * weight }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            value: self.value + other.value,
            short_of_one: self.short_of_one + other.short_of_one,
        }
    }
}

fn weights(cumulative: &[f64]) -> impl Iterator<Item = f64> {
    std::iter::once(&0.0).chain(cumulative).zip(cumulative).map(|(before, at)| at - before)
}
