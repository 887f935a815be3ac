//! Weighted sums of samples, which yield means, their intervals and covariances.

use threadtoll_stats::interval::{self, Estimate};

use crate::sample::LockSample;

/// Indices of the figures in [`Moments`].
pub(super) const HELD: usize = 0;
pub(super) const QUEUE: usize = 1;
pub(super) const WAKING: usize = 2;

/// Weighted sums. Those for a pair of figures cover the samples that have both figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moments {
    /// Sum of weights.
    pub(super) weights: [f64; 3],
    /// Sum of weight × figure.
    pub(super) sums: [f64; 3],
    /// Sum of weight².
    pairs: [[f64; 3]; 3],
    /// Sum of weight² × first figure.
    firsts: [[f64; 3]; 3],
    /// Sum of weight² × first figure × second figure.
    products: [[f64; 3]; 3],
    /// Largest weight of a waiter.
    waiter: f64,
}

impl Moments {
    pub(super) fn add(&mut self, figures: [Option<f64>; 3], sample: LockSample, times: f64) {
        let weight = sample.time;
        for (i, first) in figures.iter().enumerate() {
            let Some(first) = first else { continue };
            self.weights[i] += weight * times;
            self.sums[i] += first * weight * times;
            for (j, second) in figures.iter().enumerate() {
                let Some(second) = second else { continue };
                let squared = weight * weight * times;
                self.pairs[i][j] += squared;
                self.firsts[i][j] += squared * first;
                self.products[i][j] += squared * first * second;
            }
        }
        self.waiter = self.waiter.max(sample.waiter);
    }

    pub(super) fn merged(mut self, other: &Self) -> Self {
        for i in 0..3 {
            self.weights[i] += other.weights[i];
            self.sums[i] += other.sums[i];
            for j in 0..3 {
                self.pairs[i][j] += other.pairs[i][j];
                self.firsts[i][j] += other.firsts[i][j];
                self.products[i][j] += other.products[i][j];
            }
        }
        self.waiter = self.waiter.max(other.waiter);
        self
    }

    /// Takes the weights of queue and woken threads from `all`, which includes the samples that saw
    /// no waiting threads.
    pub(super) fn take_thread_samples(&mut self, all: &Self) {
        for i in [QUEUE, WAKING] {
            self.weights[i] = all.weights[i];
            for j in [QUEUE, WAKING] {
                self.pairs[i][j] = all.pairs[i][j];
            }
        }
        self.waiter = self.waiter.max(all.waiter);
    }

    pub(super) fn mean(&self, figure: usize) -> Option<f64> {
        (self.weights[figure] > 0.0).then(|| self.sums[figure] / self.weights[figure])
    }

    pub(super) fn estimate(&self, figure: usize) -> Option<Estimate> {
        let value = self.mean(figure)?;
        let (first, product) = (self.firsts[figure][figure], self.products[figure][figure]);
        let size = match figure {
            HELD => 1.0,
            _ if first > 0.0 => product / first,
            _ => self.waiter.max(1.0),
        };
        let samples = self.weights[figure].powi(2) / self.pairs[figure][figure];
        Some(interval::mean(value, size, samples))
    }

    pub(super) fn covariance(&self) -> [[f64; 3]; 3] {
        let mut covariance = [[0.0; 3]; 3];
        for (i, row) in covariance.iter_mut().enumerate() {
            for (j, cell) in row.iter_mut().enumerate() {
                let (Some(one), Some(other)) = (self.mean(i), self.mean(j)) else { continue };
                let about = self.products[i][j] - one * self.firsts[j][i]
                    + other * (one * self.pairs[i][j] - self.firsts[i][j]);
                *cell = about / (self.weights[i] * self.weights[j]);
            }
        }
        covariance
    }
}
