//! Intervals by resampling blocks.
//!
//! The percentile bootstrap (B. Efron, *Bootstrap methods: another look at the jackknife*, Annals
//! of Statistics 7, 1979), drawing whole blocks: exchanges within a block are correlated, so
//! drawing single exchanges would give far too narrow intervals.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{Histogram, median};

/// Number of resamples per interval.
pub const RESAMPLES: usize = 1000;

/// Minimum number of samples beyond a quantile for it to be reported.
const BEYOND: f64 = 20.0;

/// Draws `len` indices with replacement, `RESAMPLES` times, and passes each draw's multiplicities
/// to `visit`.
fn draws(len: usize, seed: u64, mut visit: impl FnMut(&[u32])) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut times = vec![0u32; len];
    for _ in 0..RESAMPLES {
        times.fill(0);
        for _ in 0..len {
            times[rng.random_range(0..len)] += 1;
        }
        visit(&times);
    }
}

/// The middle 95% of the resampled values.
fn interval95(mut values: Vec<f64>) -> Option<[f64; 2]> {
    values.retain(|value| value.is_finite());
    if values.len() < RESAMPLES / 2 {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    Some([at(0.025), at(0.975)])
}

/// The mean of block means, weighted by their counts, and its 95% interval (`None` with fewer than
/// two blocks).
pub fn mean_with_interval(blocks: &[(f64, u64)], seed: u64) -> Option<(f64, Option<[f64; 2]>)> {
    let weighted = |times: &dyn Fn(usize) -> u64| {
        let mut sum = 0.0;
        let mut count = 0.0;
        for (index, (mean, weight)) in blocks.iter().enumerate() {
            let weight = (weight * times(index)) as f64;
            sum += mean * weight;
            count += weight;
        }
        sum / count
    };
    let value = weighted(&|_| 1);
    if !value.is_finite() {
        return None;
    }
    if blocks.len() < 2 {
        return Some((value, None));
    }
    let mut values = Vec::with_capacity(RESAMPLES);
    draws(blocks.len(), seed, |times| values.push(weighted(&|index| u64::from(times[index]))));
    Some((value, interval95(values)))
}

/// Returns `true` if `count` samples leave at least 20 beyond a quantile. The tolerance of a
/// millionth is for 200,000 × (1 - 0.9999), which is a little less than 20 in binary.
pub fn enough(count: u64, quantile: f64) -> bool {
    count as f64 * (1.0 - quantile) >= BEYOND - 1e-6
}

/// One quantile of merged histograms with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileEstimate {
    /// The quantile in nanoseconds; `None` if fewer than 20 samples lie beyond it.
    pub value: Option<f64>,
    /// Its interval; `None` without a quantile, or with fewer than two blocks.
    pub interval95: Option<[f64; 2]>,
}

/// Quantiles of the merged `blocks`, each with its 95% interval.
pub fn quantiles(blocks: &[&Histogram], wanted: &[f64], seed: u64) -> Vec<QuantileEstimate> {
    // Resampling only the used buckets: a few hundred instead of 37,000.
    let mut merged = Histogram::new();
    blocks.iter().for_each(|block| merged.add(block));
    let total = merged.count();
    let mut found: Vec<QuantileEstimate> = wanted
        .iter()
        .map(|quantile| QuantileEstimate {
            value: if enough(total, *quantile) { merged.quantile_ns(*quantile) } else { None },
            interval95: None,
        })
        .collect();
    if blocks.len() < 2 || found.iter().all(|estimate| estimate.value.is_none()) {
        return found;
    }
    let values: Vec<u64> = merged.buckets().map(|(value, _)| value).collect();
    let counted: Vec<Vec<(usize, u64)>> = blocks
        .iter()
        .map(|histogram| {
            let mut at = 0;
            let place = |(value, count)| {
                // Both are sorted, and the merged buckets include those of every block.
                while values[at] != value {
                    at += 1;
                }
                (at, count)
            };
            histogram.buckets().map(place).collect()
        })
        .collect();
    let mut resampled = vec![Vec::with_capacity(RESAMPLES); wanted.len()];
    let mut cumulative = vec![0u64; values.len()];
    draws(blocks.len(), seed, |times| {
        cumulative.fill(0);
        for (buckets, times) in counted.iter().zip(times).filter(|(_, times)| **times > 0) {
            buckets.iter().for_each(|(at, count)| cumulative[*at] += count * u64::from(*times));
        }
        let mut sum = 0;
        for count in &mut cumulative {
            sum += *count;
            *count = sum;
        }
        for (index, quantile) in wanted.iter().enumerate() {
            let rank = ((sum as f64 * quantile).ceil() as u64).max(1);
            let bucket = cumulative.partition_point(|below| *below < rank);
            resampled[index].push(values.get(bucket).map_or(f64::NAN, |ps| *ps as f64 / 1000.0));
        }
    });
    for (estimate, values) in found.iter_mut().zip(resampled) {
        if estimate.value.is_some() {
            estimate.interval95 = interval95(values);
        }
    }
    found
}

/// The median of `values` and its 95% interval, or `None` without values. With fewer than six, the
/// interval is their range, because resampling so few does no better.
pub fn median_with_interval(values: &[f64], seed: u64) -> Option<(f64, [f64; 2])> {
    let value = median(values.iter().copied())?;
    if values.len() < 6 {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        return Some((value, [low, high]));
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut medians = Vec::with_capacity(RESAMPLES);
    draws(values.len(), seed, |times| {
        // Walking the sorted values with their multiplicities finds a draw's median.
        let (low, high) = ((values.len() - 1) / 2, values.len() / 2);
        let mut seen = 0;
        let mut lower = None;
        for index in &order {
            seen += times[*index] as usize;
            if seen > low && lower.is_none() {
                lower = Some(values[*index]);
            }
            if seen > high {
                medians.push(lower.map_or(f64::NAN, |lower| (lower + values[*index]) / 2.0));
                break;
            }
        }
    });
    Some((value, interval95(medians)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
        (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
    }

    #[test]
    fn the_weighted_mean_is_exact_and_lies_in_its_interval() {
        let (mean, interval) = mean_with_interval(&[(10.0, 1), (20.0, 3)], 1).unwrap();
        assert_eq!(mean, 17.5);
        let [low, high] = interval.unwrap();
        assert!(low <= mean && mean <= high);
        assert_eq!(mean_with_interval(&[], 1), None);
        assert_eq!(mean_with_interval(&[(5.0, 2)], 1), Some((5.0, None)));
    }

    #[test]
    fn few_values_are_spanned_by_the_interval_of_their_median() {
        assert_eq!(median_with_interval(&[], 1), None);
        assert_eq!(median_with_interval(&[1.0, 2.0, 9.0], 1), Some((2.0, [1.0, 9.0])));
    }

    /// The interval of a median over 21 normal values holds the true median about as often as
    /// promised.
    #[test]
    fn intervals_of_medians_cover_what_they_promise() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let covered = (0..400)
            .filter(|round| {
                let values: Vec<f64> = (0..21).map(|_| normal(&mut rng)).collect();
                let (_, [low, high]) = median_with_interval(&values, *round).unwrap();
                low <= 0.0 && 0.0 <= high
            })
            .count();
        assert!((360..=398).contains(&covered), "{covered} of 400");
    }

    /// Resampling must see differences between blocks, which resampling exchanges would miss.
    #[test]
    fn intervals_of_quantiles_carry_the_spread_between_blocks() {
        let blocks: Vec<Histogram> = (0..20)
            .map(|block| {
                let mut histogram = Histogram::new();
                (0..1000).for_each(|_| histogram.record_ps(100_000 + block * 1000));
                histogram
            })
            .collect();
        let found = quantiles(&blocks.iter().collect::<Vec<_>>(), &[0.5, 0.999, 0.9999], 7);
        let [low, high] = found[0].interval95.unwrap();
        assert!(low < 108.0 && high > 111.0, "{low} {high}");
        assert!(enough(200_000, 0.9999) && !enough(199_990, 0.9999));
        assert!(found[1].value.is_some(), "20,000 samples leave exactly 20 beyond p99.9");
        assert_eq!(found[2], QuantileEstimate { value: None, interval95: None });
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let values: Vec<f64> = (0..30).map(f64::from).collect();
        assert_eq!(median_with_interval(&values, 5), median_with_interval(&values, 5));
    }
}
