//! Quantiles of distributions, with intervals by [resampling](threadtoll_stats::resample) blocks.

use threadtoll_stats::resample::Processes;

use crate::Histogram;

/// Number of neighbouring buckets in a band. The values below each band are counted in advance.
const BAND: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct QuantileEstimate {
    /// Value in nanoseconds; `None` if fewer than 20 samples lie beyond the quantile.
    pub(super) value: Option<f64>,
    /// 95% interval of `value`; `None` without a value, or with fewer than two blocks.
    pub(super) interval95: Option<[f64; 2]>,
}

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

/// Values of each wanted quantile in the resamples of `blocks`. `merged` is the sum of the blocks.
fn drawn(
    blocks: &[&Histogram],
    merged: &Histogram,
    processes: &Processes,
    wanted: &[f64],
    seed: u64,
) -> Vec<Vec<f64>> {
    // Only used buckets are counted: a few hundred instead of 37,000.
    let values: Vec<u64> = merged.buckets().map(|(value, _)| value).collect();
    // For each used bucket, the blocks that have values in it, and their counts.
    let mut counted: Vec<Vec<(usize, u64)>> = vec![Vec::new(); values.len()];
    for (block, histogram) in blocks.iter().enumerate() {
        let mut at = 0;
        for (value, count) in histogram.buckets() {
            // Both lists are sorted, and the merged buckets include those of every block, so the
            // loop ends.
            while values[at] != value {
                at += 1;
            }
            counted[at].push((block, count));
        }
    }
    // For each band, the number of values below it in each block. A draw first finds the band by
    // these numbers, and then the bucket within the band.
    let mut all = vec![0; blocks.len()];
    let below = counted.chunks(BAND).map(|band| {
        let below = all.clone();
        band.iter().flatten().for_each(|(block, count)| all[*block] += count);
        below
    });
    let below: Vec<Vec<u64>> = below.collect();
    let mut drawn = vec![Vec::new(); wanted.len()];
    processes.draws(seed, |times| {
        let weighed = |counts: &[u64]| -> u64 {
            counts.iter().zip(times).map(|(count, times)| count * u64::from(*times)).sum()
        };
        let sum = weighed(&all);
        for (drawn, quantile) in drawn.iter_mut().zip(wanted) {
            let rank = ((sum as f64 * quantile).ceil() as u64).max(1);
            let band = below.partition_point(|counts| weighed(counts) < rank).saturating_sub(1);
            let mut seen = below.get(band).map_or(0, |counts| weighed(counts));
            let found = counted.iter().zip(&values).skip(band * BAND).find(|(counted, _)| {
                let drawn = |(block, count): &(usize, u64)| count * u64::from(times[*block]);
                seen += counted.iter().map(drawn).sum::<u64>();
                seen >= rank
            });
            drawn.push(found.map_or(f64::NAN, |(_, ps)| *ps as f64 / 1000.0));
        }
    });
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Differences between blocks must show in the interval. Resampling exchanges would miss them.
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

    #[test]
    fn a_draw_has_the_quantiles_of_its_blocks_together() {
        let blocks: Vec<Histogram> = (1..=9)
            .map(|block| {
                let mut histogram = Histogram::new();
                (0..200).for_each(|nth| histogram.record_ps(100 + 37 * block * nth * nth));
                histogram
            })
            .collect();
        let blocks: Vec<&Histogram> = blocks.iter().collect();
        let mut merged = Histogram::new();
        blocks.iter().for_each(|block| merged.add(block));
        let (processes, wanted) = (Processes::of([0, 0, 0, 0, 1, 1, 1, 2, 2]), [0.01, 0.5, 0.99]);
        let found = drawn(&blocks, &merged, &processes, &wanted, 3);
        let mut nth = 0;
        processes.draws(3, |times| {
            if nth < 100 {
                let mut together = Histogram::new();
                for (block, times) in blocks.iter().zip(times) {
                    (0..*times).for_each(|_| together.add(block));
                }
                for (found, quantile) in found.iter().zip(wanted) {
                    assert_eq!(Some(found[nth]), together.quantile_ns(quantile));
                }
            }
            nth += 1;
        });
        assert_eq!(found[0].len(), nth);
    }
}
