//! Sums over a simulation, and estimates with confidence intervals.
//!
//! Intervals of a long run come from batch means (A. M. Law, *Simulation Modeling and Analysis*,
//! McGraw-Hill, chapter 9). Batches have equal numbers of acquisitions, and are long compared with
//! the memory of the system, so their figures are nearly independent. Intervals of quotients are
//! those of a ratio estimator. Intervals of finite runs come from repetitions of the run.

use threadtoll_stats::student;

pub(crate) const BATCHES: usize = 20;

/// A simulated figure with its 99% interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Half-width of the 99% interval; zero for a single finite run, or if nothing is random.
    pub half_width: f64,
}

impl Estimate {
    /// Returns `true` if the interval contains `value`, up to rounding.
    pub fn holds(&self, value: f64) -> bool {
        let rounding = 1e-9 * self.value.abs().max(value.abs()).max(1e-3);
        (self.value - value).abs() <= self.half_width + rounding
    }

    pub(crate) fn no_surer_than(self, half_width: f64) -> Self {
        Self { half_width: self.half_width.max(half_width), ..self }
    }

    pub(crate) fn mean(values: &[f64]) -> Self {
        let ones = vec![1.0; values.len()];
        Self::ratio(values, &ones)
    }

    /// Sum of `over` divided by the sum of `under`. Equal indices belong to the same batch or run.
    pub(crate) fn ratio(over: &[f64], under: &[f64]) -> Self {
        let n = over.len() as f64;
        let total = under.iter().sum::<f64>();
        if total == 0.0 {
            return Self { value: 0.0, half_width: 0.0 };
        }
        let value = over.iter().sum::<f64>() / total;
        if over.len() < 2 {
            return Self { value, half_width: 0.0 };
        }
        let squares: f64 = over.iter().zip(under).map(|(o, u)| (o - value * u).powi(2)).sum();
        let error = (squares / (n - 1.0) / n).sqrt() * n / total;
        Self { value, half_width: student(0.005, n - 1.0) * error }
    }
}

impl std::ops::Mul<f64> for Estimate {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self { value: self.value * factor, half_width: self.half_width * factor.abs() }
    }
}

/// Upper 99% bound on the mean number of occurrences of an event that did not occur in a run:
/// `−ln 0.01` (the rule of three, J. A. Hanley and A. Lippman-Hand, *If nothing goes wrong, is
/// everything all right?*, JAMA 249, 1983).
///
/// A saturated lock with fixed hold times may be idle only once in a million acquisitions. If no
/// batch contains that event, all batches agree to the last digit.
pub(crate) const UNSEEN: f64 = 4.605_170_185_988_091;

/// Sums over equal locks and over time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) acquisitions: u64,
    pub(crate) contended: u64,
    pub(crate) refused: u64,
    /// Number of waiting threads, summed over acquisitions.
    pub(crate) on_entry: f64,
    /// Waiting time, summed over acquisitions.
    pub(crate) waited: f64,
    /// Number of waiting threads, integrated over time.
    pub(crate) waiting: f64,
    /// Number of threads that hold a lock, integrated over time.
    pub(crate) held: f64,
    pub(crate) time: f64,
}

impl Sums {
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            acquisitions: self.acquisitions - earlier.acquisitions,
            contended: self.contended - earlier.contended,
            refused: self.refused - earlier.refused,
            on_entry: self.on_entry - earlier.on_entry,
            waited: self.waited - earlier.waited,
            waiting: self.waiting - earlier.waiting,
            held: self.held - earlier.held,
            time: self.time - earlier.time,
        }
    }

    /// Adds the sums of another lock over the same time.
    pub(crate) fn merge(self, other: Self) -> Self {
        Self {
            acquisitions: self.acquisitions + other.acquisitions,
            contended: self.contended + other.contended,
            refused: self.refused + other.refused,
            on_entry: self.on_entry + other.on_entry,
            waited: self.waited + other.waited,
            waiting: self.waiting + other.waiting,
            held: self.held + other.held,
            time: self.time.max(other.time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_of_proportional_figures_is_certain() {
        let ratio = Estimate::ratio(&[2.0, 4.0, 6.0], &[1.0, 2.0, 3.0]);
        assert_eq!(ratio, Estimate { value: 2.0, half_width: 0.0 });
    }
}
