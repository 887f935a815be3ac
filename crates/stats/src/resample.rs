//! Confidence intervals by resampling blocks (uninterrupted measurements).
//!
//! The method is the percentile bootstrap (B. Efron, *Bootstrap methods: another look at the
//! jackknife*, Annals of Statistics 7, 1979). It draws whole blocks: exchanges within a block are
//! correlated, so drawing individual exchanges would yield intervals that are far too narrow.
//!
//! The blocks of one process share the process's addresses and pages, so processes are drawn first,
//! and then the blocks of each (A. C. Davison and D. V. Hinkley, *Bootstrap Methods and their
//! Application*, 1997, section 3.8). A small number of blocks or processes shows too little of the
//! variance between them, so intervals are widened to those of Student's t (T. C. Hesterberg, *What
//! Teachers Should Know About the Bootstrap*, The American Statistician 69, 2015, section 4.3).

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{Z95, median, student};

const RESAMPLES: usize = 1000;

/// Minimum number of blocks for resampling. With fewer blocks, [`of_few`] gives the interval.
const FEW: usize = 6;
/// Standard errors of a mean and of a median of normally distributed values, relative to that of
/// the mean.
const MEAN: f64 = 1.0;
const MEDIAN: f64 = 1.253;

/// Largest factor between a value and a bound of its interval. For two processes that differ,
/// Student's t gives bounds beyond the range of numbers in files.
const MAX_REACH: f64 = 1e6;

/// Blocks, grouped by the process that measured them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processes(Vec<Vec<usize>>);

impl Processes {
    /// Groups blocks by process. `processes` holds each block's process.
    pub fn of(processes: impl IntoIterator<Item = u32>) -> Self {
        let mut members: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (block, process) in processes.into_iter().enumerate() {
            members.entry(process).or_default().push(block);
        }
        Processes(members.into_values().collect())
    }

    /// A single process that measured all blocks.
    pub fn one(blocks: usize) -> Self {
        Processes(vec![(0..blocks).collect()])
    }

    /// Number of processes.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Share of the variance of `values`, one per block, that lies between processes; `None` if
    /// there is only one process, or no variance.
    pub fn share_between(&self, values: &[f64]) -> Option<f64> {
        let Variance { within, between, size } = self.variance(values)?;
        let component = (between - within).max(0.0) / size;
        Some(component / (component + within)).filter(|share| share.is_finite())
    }

    /// The 95% interval of a quantile. `value` is the quantile over all blocks, `of_blocks` the
    /// quantile of each block, `drawn` the quantile of each [draw](Self::draws).
    pub fn interval95(&self, value: f64, of_blocks: &[f64], drawn: Vec<f64>) -> Option<[f64; 2]> {
        self.interval95_of(value, of_blocks, drawn, MEDIAN)
    }

    fn interval95_of(
        &self,
        value: f64,
        of_blocks: &[f64],
        drawn: Vec<f64>,
        error: f64,
    ) -> Option<[f64; 2]> {
        if of_blocks.len() < FEW {
            return of_few(value, of_blocks, self, error);
        }
        Some(widened(value, middle95(drawn)?, self.widening(of_blocks)))
    }

    /// Factor by which resampling underestimates the half-width of an interval. `values` holds one
    /// value per block.
    fn widening(&self, values: &[f64]) -> f64 {
        let of_blocks = widening_of(values.len());
        let Some(Variance { within, between, .. }) = self.variance(values) else {
            return of_blocks;
        };
        // Share of the variance of the processes' means that lies between processes. The rest comes
        // from the variance between the blocks of a process.
        let share = (1.0 - within / between).clamp(0.0, 1.0);
        let of_processes = widening_of(self.count());
        ((1.0 - share) * of_blocks.powi(2) + share * of_processes.powi(2)).sqrt()
    }

    /// Analysis of variance of the logarithms of `values`, by process. Within a process, outliers
    /// are moved to three standard deviations from the median.
    fn variance(&self, values: &[f64]) -> Option<Variance> {
        let groups: Vec<Vec<f64>> =
            self.0.iter().map(|members| without_outliers(members, values)).collect();
        let blocks: usize = groups.iter().map(Vec::len).sum();
        let freedom = blocks.checked_sub(groups.len()).filter(|freedom| *freedom > 0)? as f64;
        if groups.len() < 2 {
            return None;
        }
        let mean = |group: &[f64]| group.iter().sum::<f64>() / group.len() as f64;
        let squares =
            |group: &[f64], from: f64| group.iter().map(|log| (log - from).powi(2)).sum::<f64>();
        let all = groups.iter().flatten().sum::<f64>() / blocks as f64;
        let within = groups.iter().map(|group| squares(group, mean(group))).sum::<f64>() / freedom;
        let apart = (groups.len() - 1) as f64;
        let weighted = groups.iter().map(|group| group.len() as f64 * (mean(group) - all).powi(2));
        let sizes: f64 = groups.iter().map(|group| (group.len() as f64).powi(2)).sum();
        let variance = Variance {
            within,
            between: weighted.sum::<f64>() / apart,
            size: (blocks as f64 - sizes / blocks as f64) / apart,
        };
        (variance.between > 0.0 && variance.between.is_finite()).then_some(variance)
    }

    /// Draws processes, and then blocks of each, with replacement, a thousand times. `visit` gets
    /// the number of times that each block was drawn. With fewer than six blocks, nothing is drawn.
    pub fn draws(&self, seed: u64, mut visit: impl FnMut(&[u32])) {
        let blocks = self.0.iter().map(Vec::len).sum();
        if blocks < FEW {
            return;
        }
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut times = vec![0u32; blocks];
        for _ in 0..RESAMPLES {
            times.fill(0);
            for each in &self.0 {
                let members = match self.0.len() {
                    1 => each,
                    count => &self.0[rng.random_range(0..count)],
                };
                for _ in 0..members.len() {
                    times[members[rng.random_range(0..members.len())]] += 1;
                }
            }
            visit(&times);
        }
    }
}

/// Mean squares within and between processes.
struct Variance {
    within: f64,
    between: f64,
    /// Mean number of blocks per process, corrected for unequal numbers.
    size: f64,
}

/// Factor by which resampling `count` items underestimates the half-width of their mean's interval.
/// Resampling amounts to the normal distribution in place of Student's t, and to dividing the
/// squares by `count` in place of `count - 1`.
fn widening_of(count: usize) -> f64 {
    match count {
        0 | 1 => 1.0,
        _ => {
            let freedom = (count - 1) as f64;
            student(0.025, freedom) / Z95 * (count as f64 / freedom).sqrt()
        }
    }
}

/// Logarithms of the members' values, limited to three standard deviations from their median.
fn without_outliers(members: &[usize], values: &[f64]) -> Vec<f64> {
    let logs: Vec<f64> =
        members.iter().map(|member| values[*member].max(f64::MIN_POSITIVE).ln()).collect();
    let Some(middle) = median(logs.iter().copied()) else { return logs };
    let deviation = median(logs.iter().map(|log| (log - middle).abs())).unwrap_or(0.0);
    // The median absolute deviation of normal values is 1/1.4826 of their standard deviation.
    let reach = 3.0 * 1.4826 * deviation;
    logs.iter().map(|log| log.clamp(middle - reach, middle + reach)).collect()
}

/// Moves the bounds `factor` times as far from the value, on a logarithmic scale.
fn widened(value: f64, [low, high]: [f64; 2], factor: f64) -> [f64; 2] {
    if factor <= 1.0 || [low, value, high].iter().any(|figure| *figure <= 0.0) {
        return [low, high];
    }
    [(low / value).powf(factor), (high / value).powf(factor)].map(|off| value * reachable(off))
}

fn reachable(off: f64) -> f64 {
    off.clamp(1.0 / MAX_REACH, MAX_REACH)
}

/// Student's t interval of a value from fewer than [`FEW`] blocks. It is computed from the
/// logarithms of the blocks' values or, if there are several processes, of the processes' means.
/// `error` is the value's standard error relative to that of a mean. `None` if there are fewer than
/// two values, or if a value has no logarithm.
///
/// The range of the values is no substitute: it contains the true median in only 50% of the cases
/// with two values, and in 94% with five.
fn of_few(value: f64, values: &[f64], processes: &Processes, error: f64) -> Option<[f64; 2]> {
    if value <= 0.0 || values.iter().any(|value| *value <= 0.0) {
        return None;
    }
    let log = |block: &usize| values[*block].ln();
    let logs: Vec<f64> = match processes.0.as_slice() {
        [members] => members.iter().map(log).collect(),
        several => {
            let mean =
                |members: &Vec<usize>| members.iter().map(log).sum::<f64>() / members.len() as f64;
            several.iter().map(mean).collect()
        }
    };
    let count = logs.len();
    if count < 2 {
        return None;
    }
    let mean = logs.iter().sum::<f64>() / count as f64;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    let freedom = (count - 1) as f64;
    let deviation = (squares / freedom).sqrt();
    let reach = student(0.025, freedom) * error * deviation / (count as f64).sqrt();
    Some([-reach, reach].map(|reach| value * reachable(reach.exp())))
}

fn middle95(mut values: Vec<f64>) -> Option<[f64; 2]> {
    values.retain(|value| value.is_finite());
    if values.len() < RESAMPLES / 2 {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    Some([at(0.025), at(0.975)])
}

/// The mean of the blocks, and its 95% interval (`None` if there are fewer than two blocks).
/// `blocks` holds the mean of each block and its weight, the block's count.
pub fn mean_with_interval(
    blocks: &[(f64, u64)],
    processes: &Processes,
    seed: u64,
) -> Option<(f64, Option<[f64; 2]>)> {
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
    let means: Vec<f64> = blocks.iter().map(|(mean, _)| *mean).collect();
    let mut drawn = Vec::new();
    processes.draws(seed, |times| drawn.push(weighted(&|index| u64::from(times[index]))));
    Some((value, processes.interval95_of(value, &means, drawn, MEAN)))
}

/// The median of `values`, one per block, and its 95% interval (`None` if there is only one value).
/// `None` if there are no values.
pub fn median_with_interval(
    values: &[f64],
    processes: &Processes,
    seed: u64,
) -> Option<(f64, Option<[f64; 2]>)> {
    let value = median(values.iter().copied())?;
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut medians = Vec::new();
    processes.draws(seed, |times| {
        // Finds the median of a draw by walking through the sorted values, each of which counts as
        // often as it was drawn. Draws differ in size, because processes may have different numbers
        // of blocks.
        let drawn = times.iter().sum::<u32>() as usize;
        let (low, high) = ((drawn - 1) / 2, drawn / 2);
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
    Some((value, processes.interval95(value, values, medians)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
        (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
    }

    #[test]
    fn the_weighted_mean_is_exact_and_lies_in_its_interval() {
        let (mean, interval) =
            mean_with_interval(&[(10.0, 1), (20.0, 3)], &Processes::one(2), 1).unwrap();
        assert_eq!(mean, 17.5);
        let [low, high] = interval.unwrap();
        assert!(low <= mean && mean <= high);
        assert_eq!(mean_with_interval(&[], &Processes::one(0), 1), None);
        assert_eq!(mean_with_interval(&[(5.0, 2)], &Processes::one(1), 1), Some((5.0, None)));
    }

    #[test]
    fn no_bound_is_out_of_the_range_of_files() {
        let far_apart = |blocks: usize| {
            let values = (0..blocks).map(|block| if block % 2 == 0 { 1.0 } else { 6e10 });
            let processes = Processes::of((0..blocks).map(|block| (block % 2) as u32));
            (values.collect::<Vec<f64>>(), processes)
        };
        for blocks in [2, 4, 20] {
            let (values, processes) = far_apart(blocks);
            let (value, interval) = median_with_interval(&values, &processes, 1).unwrap();
            let [low, high] = interval.unwrap();
            assert!(0.0 < low && low <= value && value <= high && high <= 1e18, "{low} {high}");
        }
    }

    #[test]
    fn one_value_has_no_interval() {
        assert_eq!(median_with_interval(&[], &Processes::one(0), 1), None);
        assert_eq!(median_with_interval(&[2.0], &Processes::one(1), 1), Some((2.0, None)));
    }

    #[test]
    fn intervals_of_medians_cover_what_they_promise() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        for blocks in [2, 3, 4, 5, 7, 12, 21, 40] {
            let covered = (0..400)
                .filter(|round| {
                    let values: Vec<f64> =
                        (0..blocks).map(|_| (0.1 * normal(&mut rng)).exp()).collect();
                    let found = median_with_interval(&values, &Processes::one(blocks), *round);
                    let [low, high] = found.unwrap().1.unwrap();
                    low <= 1.0 && 1.0 <= high
                })
                .count();
            // Lower bound: 95% of 400, less three standard errors.
            assert!((367..=398).contains(&covered), "{blocks} blocks: {covered} of 400");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let values: Vec<f64> = (0..30).map(f64::from).collect();
        assert_eq!(
            median_with_interval(&values, &Processes::one(30), 5),
            median_with_interval(&values, &Processes::one(30), 5)
        );
    }

    /// Values of 15 blocks per process. Each process is off by a normal amount of its own.
    fn levels(rng: &mut Xoshiro256PlusPlus, processes: u32, between: f64) -> (Vec<f64>, Processes) {
        let mut values = Vec::new();
        for _ in 0..processes {
            let off = between * normal(rng);
            values.extend((0..15).map(|_| (0.01 * (off + normal(rng))).exp()));
        }
        let labels = (0..processes).flat_map(|process| std::iter::repeat_n(process, 15));
        (values, Processes::of(labels))
    }

    #[test]
    fn intervals_cover_what_they_promise_whatever_lies_between_processes() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
        for processes in [2, 3, 5] {
            for between in [0.0, 0.3, 1.0, 3.0] {
                let covered = (0..300)
                    .filter(|round| {
                        let (values, processes) = levels(&mut rng, processes, between);
                        let found = median_with_interval(&values, &processes, *round);
                        let [low, high] = found.unwrap().1.unwrap();
                        low <= 1.0 && 1.0 <= high
                    })
                    .count();
                let least = if processes == 2 { 255 } else { 273 };
                assert!(covered >= least, "{processes} processes, {between}: {covered} of 300");
            }
        }
    }

    #[test]
    fn the_share_between_processes_is_that_of_the_variance() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        for (between, expected) in [(0.0, 0.0), (1.0, 0.5), (3.0, 0.9)] {
            let shares = (0..200).map(|_| {
                let (values, processes) = levels(&mut rng, 10, between);
                processes.share_between(&values).unwrap()
            });
            let typical = median(shares).unwrap();
            assert!((typical - expected).abs() < 0.08, "{between}: {typical} is not {expected}");
        }
        assert_eq!(Processes::one(3).share_between(&[1.0, 2.0, 3.0]), None);
        assert_eq!(Processes::of([0, 1]).share_between(&[1.0, 2.0]), None);
        assert_eq!(Processes::of([0, 0, 1, 1]).share_between(&[1.0; 4]), None);
        assert_eq!(Processes::of([0, 0, 1, 1]).share_between(&[1.0, 1.0, 2.0, 2.0]), Some(1.0));
    }
}
