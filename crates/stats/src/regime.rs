//! Regimes: lasting states of the machine, detected from the blocks of the reference cell.
//!
//! A hand-off between two cores of a virtual machine may take 63 ns in one minute and 275 ns in the
//! next; a median over both minutes describes neither. [`regimes`] clusters the logarithms of the
//! reference's medians, without knowing a boundary in advance. Clusters count as regimes only if
//! they pass three tests:
//!
//! - The gap between two clusters is at least [`APART`] times as wide as the wider cluster. With a
//!   factor of at least 1, any two blocks in the same cluster are more alike than two blocks in
//!   different clusters (J. C. Dunn, *A fuzzy relative of the ISODATA process and its use in
//!   detecting compact well-separated clusters*, Journal of Cybernetics 3, 1973). The halves of a
//!   slow drift or of a long tail fail this test, because they are wider than the gap between them.
//!   A cluster's edges are its 10% and 90% quantiles, so a few outliers neither fill a gap nor
//!   widen a cluster.
//! - Each cluster lasts. Either it is one uninterrupted stay of at least [`LEAST`] blocks, or its
//!   blocks follow each other more often than in a random order (the exact test of A. Wald and J.
//!   Wolfowitz, *On a test whether two samples are from the same population*, Annals of
//!   Mathematical Statistics 11, 1940). Outliers fail this test, however large they are.
//! - The gap is wider than the drift that does not disturb a block.
//!
//! Regimes cannot be told apart if they alternate faster than the reference is measured, if they
//! overlap, or if one of them lasted for fewer than three of the reference's blocks.

/// Minimum gap between two regimes, relative to the width of the wider one.
const APART: f64 = 2.0;
/// Minimum number of reference blocks in a regime.
const LEAST: usize = 3;
/// Share of a cluster's blocks that is cut off at each end before the cluster's width is measured.
const TRIMMED: f64 = 0.1;
/// Significance level of the runs test: a regime is accepted only if blocks in random order would
/// form as few uninterrupted stays with at most this probability.
const CHANCE: f64 = 0.05;

/// The regime of each of the reference's `medians`, which must be in the order of measuring; 0 is
/// the fastest. Two regimes are at least the share `drift` apart.
pub fn regimes(medians: &[f64], drift: f64) -> Vec<usize> {
    let drift = drift.ln_1p();
    let logs: Vec<f64> = medians.iter().map(|median| median.max(f64::MIN_POSITIVE).ln()).collect();
    let mut sorted = logs.clone();
    sorted.sort_by(f64::total_cmp);
    let mut clusters = linked(&sorted, drift);
    while let Some(index) = spurious(&clusters, &sorted, &logs, drift) {
        // Without its start, the cluster is part of the previous one.
        clusters.remove(index);
    }
    let starts: Vec<f64> = clusters.iter().map(|start| sorted[*start]).collect();
    logs.iter().map(|log| starts.partition_point(|start| start <= log).max(1) - 1).collect()
}

/// Index of the first member of each cluster. A gap wider than `drift` separates two clusters.
fn linked(sorted: &[f64], drift: f64) -> Vec<usize> {
    let first = sorted.first().map(|_| 0);
    let gaps = sorted.windows(2).enumerate();
    let further = gaps.filter(|(_, pair)| pair[1] - pair[0] > drift).map(|(at, _)| at + 1);
    first.into_iter().chain(further).collect()
}

/// Index of a cluster to merge into the previous one; `None` if all clusters are regimes.
fn spurious(clusters: &[usize], sorted: &[f64], logs: &[f64], drift: f64) -> Option<usize> {
    if clusters.len() < 2 {
        return None;
    }
    let members = |index: usize| {
        let end = clusters.get(index + 1).copied().unwrap_or(sorted.len());
        &sorted[clusters[index]..end]
    };
    // The cluster's boundary with the smaller gap, as the index of the cluster above the boundary.
    let boundary = |index: usize| {
        let gap = |second: usize| sorted[clusters[second]] - sorted[clusters[second] - 1];
        if index == 0 || index + 1 < clusters.len() && gap(index + 1) < gap(index) {
            index + 1
        } else {
            index
        }
    };
    let smallest = (0..clusters.len()).min_by_key(|index| members(*index).len())?;
    if members(smallest).len() < LEAST {
        return Some(boundary(smallest));
    }
    let separations = (1..clusters.len())
        .map(|second| (second, separation(members(second - 1), members(second), drift)));
    let (closest, separation) = separations.min_by(|a, b| a.1.total_cmp(&b.1))?;
    if separation < APART {
        return Some(closest);
    }
    let by_chance = |index: usize| {
        let members = members(index);
        let range = members[0]..=members[members.len() - 1];
        chance(logs.iter().map(|log| range.contains(log)))
    };
    let (least, chance) = (0..clusters.len())
        .map(|index| (index, by_chance(index)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    (chance > CHANCE).then(|| boundary(least))
}

/// The gap between two clusters, relative to the width of the wider one; 0 if the gap is at most
/// `drift`.
fn separation(below: &[f64], above: &[f64], drift: f64) -> f64 {
    let gap = quantile(above, TRIMMED) - quantile(below, 1.0 - TRIMMED);
    let width = |cluster| quantile(cluster, 1.0 - TRIMMED) - quantile(cluster, TRIMMED);
    if gap > drift { gap / f64::max(width(below), width(above)) } else { 0.0 }
}

fn quantile(sorted: &[f64], quantile: f64) -> f64 {
    let at = quantile * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

/// The probability that `inside`, put in random order, has at most as many runs (sequences of equal
/// elements) as now; 0 if the `true` elements form a single run.
fn chance(inside: impl Iterator<Item = bool>) -> f64 {
    let inside: Vec<bool> = inside.collect();
    let changes = inside.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let stays = inside.first().map_or(0, |first| usize::from(*first))
        + inside.windows(2).filter(|pair| !pair[0] && pair[1]).count();
    if stays <= 1 {
        return 0.0;
    }
    let members = inside.iter().filter(|inside| **inside).count();
    runs_at_most(changes + 1, members, inside.len() - members)
}

/// The probability of at most `runs` runs in a random order of `a` items of one kind and `b` of
/// another.
fn runs_at_most(runs: usize, a: usize, b: usize) -> f64 {
    let mut factorials = vec![0.0f64];
    factorials.extend((1..=a + b).scan(0.0, |sum, factor| {
        *sum += (factor as f64).ln();
        Some(*sum)
    }));
    // Logarithms, because the counts themselves would overflow.
    let choose = |n: usize, k: usize| {
        if k > n { f64::NEG_INFINITY } else { factorials[n] - factorials[k] - factorials[n - k] }
    };
    let all = choose(a + b, a);
    let share =
        |of_a: usize, of_b: usize| (choose(a - 1, of_a - 1) + choose(b - 1, of_b - 1) - all).exp();
    (2..=runs)
        .map(|runs| {
            let half = runs / 2;
            if runs.is_multiple_of(2) {
                2.0 * share(half, half)
            } else {
                share(half + 1, half) + share(half, half + 1)
            }
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{PI, TAU};

    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    const LENGTHS: [usize; 6] = [3, 5, 7, 12, 21, 150];
    const SEEDS: u64 = 100;
    const DRIFT: f64 = 0.1;

    struct Noise(Xoshiro256PlusPlus);

    impl Noise {
        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.0.random::<f64>()).sum::<f64>() - 6.0
        }

        /// A variate with very heavy tails: Student's t with one degree of freedom.
        fn cauchy(&mut self) -> f64 {
            (PI * (self.0.random::<f64>() - 0.5)).tan()
        }

        fn happens(&mut self, probability: f64) -> bool {
            self.0.random::<f64>() < probability
        }
    }

    /// Percentage of the seeds for which `logs` of `length` blocks have `count` regimes.
    fn percent(length: usize, count: usize, logs: impl Fn(&mut Noise, usize) -> Vec<f64>) -> f64 {
        let found = (0..SEEDS).filter(|seed| {
            let mut noise = Noise(Xoshiro256PlusPlus::seed_from_u64(seed + 1000 * length as u64));
            let medians: Vec<f64> =
                logs(&mut noise, length).iter().map(|log| 63.0 * log.exp()).collect();
            regimes(&medians, DRIFT).iter().max().map_or(0, |last| last + 1) == count
        });
        found.count() as f64 * 100.0 / SEEDS as f64
    }

    fn each(noise: &mut Noise, length: usize, log: impl Fn(&mut Noise, usize) -> f64) -> Vec<f64> {
        (0..length).map(|at| log(noise, at)).collect()
    }

    #[test]
    fn steady_machines_have_one_regime_however_noisy() {
        for length in LENGTHS {
            for width in [0.0, 0.01, 0.1, 0.5] {
                let one = percent(length, 1, |noise, length| {
                    each(noise, length, |noise, _| width * noise.normal())
                });
                assert!(one >= 99.0, "{length} normal blocks of {width}: {one}%");
                let one = percent(length, 1, |noise, length| {
                    each(noise, length, |noise, _| {
                        (width / 3.0 * noise.cauchy()).clamp(-20.0, 20.0)
                    })
                });
                assert!(one >= 98.0, "{length} heavy-tailed blocks of {width}: {one}%");
            }
        }
    }

    #[test]
    fn outliers_are_no_regime() {
        for length in LENGTHS {
            for share in [0.05, 0.1, 0.3] {
                let one = percent(length, 1, |noise, length| {
                    each(noise, length, |noise, _| {
                        let outlier = if noise.happens(share) { 1.4 } else { 0.0 };
                        outlier + 0.02 * noise.normal()
                    })
                });
                assert!(one >= 93.0, "{length} blocks, {share} of them outliers: {one}%");
            }
        }
    }

    #[test]
    fn slow_changes_make_no_regime() {
        for length in LENGTHS {
            for size in [0.1, 0.3, 1.5] {
                let drift = percent(length, 1, |noise, length| {
                    each(noise, length, |noise, at| {
                        size * at as f64 / length as f64 + 0.02 * noise.normal()
                    })
                });
                assert!(drift >= 96.0, "{length} blocks that drift by {size}: {drift}%");
                let wave = percent(length, 1, |noise, length| {
                    let phase = TAU * noise.0.random::<f64>();
                    each(noise, length, |noise, at| {
                        size * (phase + TAU * at as f64 / length as f64).sin()
                            + 0.02 * noise.normal()
                    })
                });
                assert!(wave >= 94.0, "{length} blocks in a wave of {size}: {wave}%");
                let walk = percent(length, 1, |noise, length| {
                    let mut log = 0.0;
                    (0..length)
                        .map(|_| {
                            log += size / 3.0 * noise.normal();
                            log
                        })
                        .collect()
                });
                assert!(walk >= 93.0, "{length} blocks that wander by {size}: {walk}%");
            }
        }
    }

    /// Two regimes, of which the second begins after two fifths of the blocks.
    fn two(noise: &mut Noise, length: usize, apart: f64, width: f64, outliers: f64) -> Vec<f64> {
        each(noise, length, |noise, at| {
            let regime = if at >= length * 2 / 5 { apart } else { 0.0 };
            let outlier = if noise.happens(outliers) { 2.0 * noise.0.random::<f64>() } else { 0.0 };
            regime + outlier + width * noise.normal()
        })
    }

    #[test]
    fn regimes_that_last_are_found() {
        for length in [10, 12, 21, 150] {
            for (apart, width) in [(1.47, 0.02), (1.47, 0.1), (0.3, 0.02), (-1.47, 0.05)] {
                let found =
                    percent(length, 2, |noise, length| two(noise, length, apart, width, 0.0));
                assert!(found >= 97.0, "{length} blocks, {apart} apart, {width} wide: {found}%");
            }
        }
        let found = percent(21, 2, |noise, length| two(noise, length, 1.47, 0.02, 0.05));
        assert!(found >= 80.0, "with outliers: {found}%");
        let found = percent(60, 2, |noise, length| {
            each(noise, length, |noise, at| {
                let regime = if at / 10 % 2 == 1 { 1.47 } else { 0.0 };
                regime + 0.05 * noise.normal()
            })
        });
        assert!(found >= 97.0, "six stays: {found}%");
        let found = percent(30, 3, |noise, length| {
            each(noise, length, |noise, at| 0.8 * (at / 10) as f64 + 0.05 * noise.normal())
        });
        assert!(found >= 97.0, "three regimes: {found}%");
    }

    #[test]
    fn regimes_are_numbered_from_the_fastest() {
        let medians = [270.0, 281.0, 275.0, 63.0, 64.0, 62.0, 63.0];
        assert_eq!(regimes(&medians, DRIFT), [1, 1, 1, 0, 0, 0, 0]);
        assert_eq!(regimes(&[270.0, 281.0, 63.0, 64.0, 62.0, 63.0], DRIFT), [0; 6], "two blocks");
        assert!(regimes(&[], DRIFT).is_empty());
        assert_eq!(regimes(&[0.0, 0.0, 0.0, 1.0], DRIFT), [0; 4]);
    }

    #[test]
    fn the_chance_of_few_runs_is_that_of_counting() {
        // Of the 20 orders of three and three items, two have two runs and four have three runs.
        assert!((runs_at_most(2, 3, 3) - 0.1).abs() < 1e-12);
        assert!((runs_at_most(3, 3, 3) - 0.3).abs() < 1e-12);
        assert!((runs_at_most(10_000, 5_000, 5_000) - 1.0).abs() < 1e-6);
        assert!((runs_at_most(7, 4, 3) - 1.0).abs() < 1e-12);
    }
}
