//! Divides a run into stretches, whose differences show how much a figure varies over the run.

use super::moments::{HELD, QUEUE};

/// Maximum number of stretches that are kept; if there are more, neighbours are merged.
pub(super) const MAX_STRETCHES: usize = 32;

/// Minimum number of stretches for estimating a variance.
const MIN_STRETCHES: usize = 5;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Stretch {
    pub(super) weights: [f64; 3],
    pub(super) sums: [f64; 3],
}

impl Stretch {
    pub(super) fn add(&mut self, other: &Stretch) {
        for i in 0..3 {
            self.weights[i] += other.weights[i];
            self.sums[i] += other.sums[i];
        }
    }
}

/// The stretches of a run, all equally long.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stretches {
    pub(super) all: Vec<Stretch>,
    /// Binary logarithm of the length of a stretch in seconds.
    doublings: u32,
}

impl Stretches {
    pub(super) fn at(&mut self, second: u64) -> &mut Stretch {
        while second >> self.doublings.min(63) >= MAX_STRETCHES as u64 {
            self.merge_neighbours();
        }
        self.stretch((second >> self.doublings.min(63)) as usize)
    }

    pub(super) fn extend(&mut self, more: &Stretches, add: impl Fn(&mut Stretch, &Stretch)) {
        while self.doublings < more.doublings {
            self.merge_neighbours();
        }
        for (index, stretch) in more.all.iter().enumerate() {
            add(self.stretch(index >> (self.doublings - more.doublings)), stretch);
        }
    }

    fn stretch(&mut self, index: usize) -> &mut Stretch {
        if self.all.len() <= index {
            self.all.resize(index + 1, Stretch::default());
        }
        &mut self.all[index]
    }

    fn merge_neighbours(&mut self) {
        self.doublings += 1;
        let merged = |pair: &[Stretch]| {
            let mut merged = Stretch::default();
            pair.iter().for_each(|stretch| merged.add(stretch));
            merged
        };
        self.all = self.all.chunks(2).map(merged).collect();
    }

    /// Covariance of the means, from the differences between stretches, and the number of
    /// stretches.
    pub(super) fn between(&self, means: [f64; 3]) -> Option<([[f64; 3]; 3], f64)> {
        let most = self.all.iter().map(|each| each.weights[QUEUE]).fold(0.0, f64::max);
        let full: Vec<&Stretch> = self
            .all
            .iter()
            .filter(|each| each.weights[QUEUE] > most / 2.0 && each.weights[HELD] > 0.0)
            .collect();
        if full.len() < MIN_STRETCHES {
            return None;
        }
        let total: f64 = full.iter().map(|each| each.weights[QUEUE]).sum();
        let mut covariance = [[0.0; 3]; 3];
        for stretch in &full {
            let mut off = [0.0; 3];
            for i in 0..3 {
                if stretch.weights[i] > 0.0 {
                    off[i] = stretch.sums[i] / stretch.weights[i] - means[i];
                }
            }
            let weight = stretch.weights[QUEUE] / total / (full.len() as f64 - 1.0);
            for i in 0..3 {
                for j in 0..3 {
                    covariance[i][j] += weight * off[i] * off[j];
                }
            }
        }
        Some((covariance, full.len() as f64))
    }
}
