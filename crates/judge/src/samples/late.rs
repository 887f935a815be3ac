//! Bounds on a figure, given that late samples are uncertain.

use threadtoll_stats::Z95;
use threadtoll_stats::interval::Estimate;

use super::moments::{HELD, Moments};
use super::{Figure, LockSamples};

/// Maximum distance between the bounds of a reported figure. For a queue of more than one thread,
/// the distance is relative to the queue. A wide interval says more than none; beyond this one, it
/// would say hardly anything.
pub const MAX_BIAS: f64 = 0.3;

impl LockSamples {
    pub(super) fn figure(&self, figure: usize) -> Figure {
        let all = self.on_time.merged(&self.late);
        let Some(read) = all.estimate(figure) else { return Figure::Unknown };
        let (low, high) = self.bounds(figure);
        let bias = high - low;
        let most = if figure == HELD { MAX_BIAS } else { MAX_BIAS * read.value.max(1.0) };
        if bias > most {
            return Figure::Withheld(bias);
        }
        let (below, above) = (read.value - read.low, read.high - read.value);
        Figure::Known(Estimate {
            value: (low + high) / 2.0,
            low: (low - below).max(0.0),
            high: if figure == HELD { (high + above).min(1.0) } else { high + above },
        })
    }

    /// Range within which late samples may have shifted a figure, without the sampling error.
    fn bounds(&self, figure: usize) -> (f64, f64) {
        let (on_time, late) = (self.on_time.weights[figure], self.late.weights[figure]);
        let all = on_time + late;
        let sums = self.on_time.sums[figure] + self.late.sums[figure];
        let read = sums / all;
        let Some(late_mean) = self.late.mean(figure) else { return (read, read) };
        let share = late / all;
        // The standard error is derived from the interval, because the interval has a width even if
        // all samples are equal.
        let chance = |moments: &Moments| match moments.estimate(figure) {
            Some(estimate) => (estimate.high - estimate.low) / (2.0 * Z95),
            None => f64::INFINITY,
        };
        let lean = self.on_time.mean(figure).unwrap_or(late_mean) - late_mean;
        let noise = 2.0 * chance(&self.on_time).hypot(chance(&self.late));
        let most = if figure == HELD { 1.0 } else { f64::INFINITY };
        let above = if lean > -noise { (late_mean + 1.0).min(most) } else { late_mean };
        let below = if lean < noise { (late_mean - 1.0).max(0.0) } else { late_mean };
        (read - share * (late_mean - below), read + share * (above - late_mean))
    }
}
