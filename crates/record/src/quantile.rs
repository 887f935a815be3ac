//! Quantiles of distributions, with intervals by [resampling](threadtoll_stats::resample) blocks.

use threadtoll_stats::resample::Processes;

use crate::Histogram;

/// One quantile of merged histograms with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct QuantileEstimate {
    /// The quantile in nanoseconds; `None` if fewer than 20 samples lie beyond it.
    pub(super) value: Option<f64>,
    /// 95% interval of the quantile; `None` if there is no quantile, or if there are fewer than two
    /// blocks.
    pub(super) interval95: Option<[f64; 2]>,
}

/// Quantiles of the merged `blocks`, each with its 95% interval.
pub(super) fn estimates(
    blocks: &[&Histogram],
    processes: &Processes,
    wanted: &[f64],
    seed: u64,
) -> Vec<QuantileEstimate> {
    let mut merged = Histogram::new();
    blocks.iter().for_each(|block| merged.add(block));
    let values: Vec<Option<f64>> = wanted
        .iter()
        .map(|quantile| merged.shows(*quantile).then(|| merged.quantile_ns(*quantile)).flatten())
        .collect();
    let drawn = if values.iter().any(Option::is_some) {
        drawn(blocks, &merged, processes, wanted, seed)
    } else {
        vec![Vec::new(); wanted.len()]
    };
    let interval95 = |value: f64, drawn: Vec<f64>, quantile: f64| {
        let of_block = |block: &&Histogram| block.quantile_ns(quantile).unwrap_or(value);
        let of_blocks: Vec<f64> = blocks.iter().map(of_block).collect();
        processes.interval95(value, &of_blocks, drawn)
    };
    values
        .into_iter()
        .zip(drawn)
        .zip(wanted)
        .map(|((value, drawn), quantile)| QuantileEstimate {
            value,
            interval95: value.and_then(|value| interval95(value, drawn, *quantile)),
        })
        .collect()
}

/// The quantiles in each resample of `blocks`; `merged` is the sum of the blocks.
fn drawn(
    blocks: &[&Histogram],
    merged: &Histogram,
    processes: &Processes,
    wanted: &[f64],
    seed: u64,
) -> Vec<Vec<f64>> {
    // Only the used buckets are resampled: a few hundred instead of 37,000.
    let values: Vec<u64> = merged.buckets().map(|(value, _)| value).collect();
    let counted: Vec<Vec<(usize, u64)>> = blocks
        .iter()
        .map(|histogram| {
            let mut at = 0;
            let place = |(value, count)| {
                // Both lists are sorted, and the merged buckets include those of every block.
                while values[at] != value {
                    at += 1;
                }
                (at, count)
            };
            histogram.buckets().map(place).collect()
        })
        .collect();
    let mut drawn = vec![Vec::new(); wanted.len()];
    let mut cumulative = vec![0u64; values.len()];
    processes.draws(seed, |times| {
        cumulative.fill(0);
        for (buckets, times) in counted.iter().zip(times).filter(|(_, times)| **times > 0) {
            buckets.iter().for_each(|(at, count)| cumulative[*at] += count * u64::from(*times));
        }
        let mut sum = 0;
        for count in &mut cumulative {
            sum += *count;
            *count = sum;
        }
        for (drawn, quantile) in drawn.iter_mut().zip(wanted) {
            let rank = ((sum as f64 * quantile).ceil() as u64).max(1);
            let bucket = cumulative.partition_point(|below| *below < rank);
            drawn.push(values.get(bucket).map_or(f64::NAN, |ps| *ps as f64 / 1000.0));
        }
    });
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let found = estimates(
            &blocks.iter().collect::<Vec<_>>(),
            &Processes::one(20),
            &[0.5, 0.999, 0.9999],
            7,
        );
        let [low, high] = found[0].interval95.unwrap();
        assert!(low < 108.0 && high > 111.0, "{low} {high}");
        assert!(found[1].value.is_some(), "20,000 samples leave exactly 20 beyond p99.9");
        assert_eq!(found[2], QuantileEstimate { value: None, interval95: None });
    }
}
