//! Mean numbers of threads.

use threadtoll_record::profile::Interval;
use threadtoll_record::{Fraction, Ratio};
use threadtoll_stats::Z95;
use threadtoll_stats::interval;

use crate::account::MeanEstimate;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MeanThreads {
    pub(super) mean: f64,
    pub(super) variance: f64,
}

impl MeanThreads {
    pub(super) fn of(mean: Option<MeanEstimate>) -> MeanThreads {
        mean.map_or_else(MeanThreads::default, |estimate| MeanThreads {
            mean: estimate.mean,
            variance: estimate.error.powi(2),
        })
    }

    pub(super) fn estimate(self) -> interval::Estimate {
        let half = Z95 * self.variance.sqrt();
        let (low, high) = ((self.mean - half).max(0.0), self.mean + half);
        interval::Estimate { value: self.mean, low, high }
    }

    pub(super) fn and(self, other: MeanThreads) -> MeanThreads {
        MeanThreads { mean: self.mean + other.mean, variance: self.variance + other.variance }
    }

    pub(super) fn part(self, share: f64) -> MeanThreads {
        MeanThreads { mean: self.mean * share, variance: self.variance * share * share }
    }

    pub(super) fn share(self, all: f64) -> Fraction {
        Fraction::new((self.mean / all).clamp(0.0, 1.0))
    }

    pub(super) fn interval(self, all: f64) -> Option<Interval<Fraction>> {
        let half = Z95 * self.variance.sqrt();
        let end = |mean: f64| Fraction::new((mean / all).clamp(0.0, 1.0));
        Interval::new(end(self.mean - half), end(self.mean + half))
    }

    pub(super) fn ratio_interval(self) -> Option<Interval<Ratio>> {
        let half = Z95 * self.variance.sqrt();
        Interval::new(Ratio::new((self.mean - half).max(0.0)), Ratio::new(self.mean + half))
    }
}
