//! Distributions of round trips, in a compact form.

use serde::Serialize;
use threadtoll_record::{Histogram, resample};

pub(super) const BINS_PER_DECADE: f64 = 40.0;
const POINTS_PER_DECADE: u32 = 12;

#[derive(Serialize)]
pub(super) struct Distribution {
    /// Number of the first bin, which begins at 10^(from / per_decade) ns.
    from: i32,
    /// Share of all round trips in each bin from there on.
    shares: Vec<f64>,
    /// 1 / (1 - p) and the round trip at p, in nanoseconds.
    curve: Vec<[f64; 2]>,
}

impl Distribution {
    pub(super) fn new(histogram: &Histogram, step_ns: f64) -> Self {
        let (from, shares) = bins(histogram, step_ns);
        Distribution { from, shares, curve: curve(histogram) }
    }
}

/// A histogram in bins of equal width on a logarithmic axis: the number of the first bin, and the
/// share in each.
///
/// Each value is spread evenly over one step of the clock; otherwise the steps would shape the
/// picture.
/// the steps, and not the mechanism, would shape the picture.
fn bins(histogram: &Histogram, step_ns: f64) -> (i32, Vec<f64>) {
    // From a tenth of a nanosecond to the longest time that a histogram holds.
    const FIRST: i32 = -(BINS_PER_DECADE as i32);
    const LAST: i32 = 11 * BINS_PER_DECADE as i32;
    let bin_of =
        |ns: f64| ((ns.max(1e-3).log10() * BINS_PER_DECADE).floor() as i32).clamp(FIRST, LAST);
    let begins = |bin: i32| 10f64.powf(f64::from(bin) / BINS_PER_DECADE);
    let mut bins = vec![0.0; (LAST - FIRST + 1) as usize];
    let all = histogram.count().max(1) as f64;
    let step = if step_ns.is_finite() { step_ns.clamp(1e-3, 1e6) } else { 1e-3 };
    for (ps, count) in histogram.buckets() {
        let middle = ps as f64 / 1000.0;
        let (low, high) = ((middle - step / 2.0).max(middle * 0.5), middle + step / 2.0);
        let (from, to) = (bin_of(low), bin_of(high));
        let share = count as f64 / all;
        for bin in from..=to {
            let begin = if bin == from { low } else { begins(bin) };
            let end = if bin == to { high } else { begins(bin + 1) };
            let part =
                if from == to { 1.0 } else { ((end - begin) / (high - low)).clamp(0.0, 1.0) };
            bins[(bin - FIRST) as usize] += share * part;
        }
    }
    let first = bins.iter().position(|share| *share > 0.0).unwrap_or(0);
    let last = bins.iter().rposition(|share| *share > 0.0).unwrap_or(0);
    (FIRST + first as i32, bins[first..=last].iter().map(|share| three_digits(*share)).collect())
}

/// The percentile curve, up to where fewer than 20 samples lie beyond.
fn curve(histogram: &Histogram) -> Vec<[f64; 2]> {
    let mut curve = Vec::new();
    for point in 0..=POINTS_PER_DECADE * 9 {
        let beyond = 10f64.powf(-f64::from(point) / f64::from(POINTS_PER_DECADE));
        if !resample::enough(histogram.count(), 1.0 - beyond) {
            break;
        }
        if let Some(ns) = histogram.quantile_ns(1.0 - beyond) {
            curve.push([short(1.0 / beyond), short(ns)]);
        }
    }
    curve
}

pub(super) fn short(value: f64) -> f64 {
    significant(value, 4)
}

pub(super) fn three_digits(value: f64) -> f64 {
    significant(value, 2)
}

fn significant(value: f64, after_first: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // By way of text: arithmetic with powers of ten would leave extra digits.
    format!("{value:.*e}", after_first as usize).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_keep_all_round_trips() {
        let mut histogram = Histogram::new();
        for value in [0, 1, 10_000, 50_000, 50_000, 1_000_000_000, u64::MAX] {
            histogram.record_ps(value);
        }
        for step in [0.0, 10.0, 1e9, f64::INFINITY] {
            let (_, shares) = bins(&histogram, step);
            let sum: f64 = shares.iter().sum();
            assert!((sum - 1.0).abs() < 0.02, "{step}: {sum}");
        }
        assert_eq!(bins(&Histogram::new(), 10.0).1, [0.0]);
    }

    #[test]
    fn a_clock_in_steps_leaves_no_gaps_in_the_picture() {
        let mut histogram = Histogram::new();
        for step in 8..40 {
            histogram.record_ps(step * 10_000);
        }
        let (_, shares) = bins(&histogram, 10.0);
        assert!(shares.iter().all(|share| *share > 0.0), "{shares:?}");
    }

    #[test]
    fn a_curve_ends_where_too_few_samples_lie_beyond() {
        let mut histogram = Histogram::new();
        (1..=2000).for_each(|ns| histogram.record_ps(ns * 1000));
        let curve = curve(&histogram);
        assert!(curve.last().is_some_and(|[beyond, _]| *beyond <= 100.0));
        assert!(curve.windows(2).all(|pair| pair[0][1] <= pair[1][1]));
    }
}
