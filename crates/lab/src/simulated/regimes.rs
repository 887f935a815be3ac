//! Changes of known size in the simulated machine's speed.

use std::f64::consts::TAU;
use std::sync::LazyLock;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use threadtoll_record::Cell;

use super::{fingerprint, normal, variation};

/// Regimes of the simulated machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Regimes {
    /// The speed never changes. Blocks of a cell differ only by the noise within them.
    #[default]
    None,
    /// One regime. The speed varies from block to block, with heavy tails.
    One,
    /// Two regimes. The speed varies from block to block, with heavy tails. In the second regime,
    /// each cell has a factor of its own by which it is slower.
    Two {
        /// Mean time before the regime changes.
        stay_ns: u64,
    },
    /// One regime. The speed varies from block to block, with heavy tails. A slow wave also slows
    /// down all cells alike.
    Drifting {
        /// Length of the wave.
        wave_ns: u64,
    },
}

impl Regimes {
    /// Largest factor of the wave.
    const CREST: f64 = 1.6;

    /// Returns the regime at this time since the start: 0 for the first, 1 for the second.
    fn at(self, time_ns: u64, seed: u64) -> usize {
        let Regimes::Two { stay_ns } = self else { return 0 };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut regime = usize::from(rng.random::<bool>());
        let mut left_ns = time_ns as f64;
        loop {
            // A stay lasts at least half the mean, so that regimes can be distinguished.
            left_ns -= stay_ns.max(1) as f64 * (0.5 - 0.5 * (1.0 - rng.random::<f64>()).ln());
            if left_ns < 0.0 {
                return regime;
            }
            regime = 1 - regime;
        }
    }

    pub(super) fn factor(self, regime: usize, cell: &Cell) -> f64 {
        let unit = (fingerprint(cell) >> 11) as f64 / (1u64 << 53) as f64;
        if regime == 0 { 1.0 } else { 1.5 + 3.0 * unit }
    }

    /// Factor by which a cell is slower at this time, without noise.
    pub(super) fn slower(self, time_ns: u64, seed: u64, cell: &Cell) -> f64 {
        self.factor(self.at(time_ns, seed), cell) * self.drift(time_ns)
    }

    fn drift(self, time_ns: u64) -> f64 {
        match self {
            Regimes::Drifting { wave_ns } => {
                let phase = (TAU * time_ns as f64 / wave_ns as f64).cos();
                Self::CREST.powf((1.0 - phase) / 2.0)
            }
            Regimes::None | Regimes::One | Regimes::Two { .. } => 1.0,
        }
    }

    /// Returns the median noise of a cell's stretches over many blocks.
    pub fn median_noise(self) -> f64 {
        static ALIKE: LazyLock<f64> = LazyLock::new(|| Regimes::None.draw_median());
        static DIFFERENT: LazyLock<f64> = LazyLock::new(|| Regimes::One.draw_median());
        if self == Regimes::None { *ALIKE } else { *DIFFERENT }
    }

    fn draw_median(self) -> f64 {
        const DRAWS: usize = 100_001;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut draws: Vec<f64> =
            (0..DRAWS).map(|_| self.noise(&mut rng) * variation::noise(&mut rng)).collect();
        *draws.select_nth_unstable_by(DRAWS / 2, f64::total_cmp).1
    }

    /// Factor by which one block is slower. Its logarithm is 1% of a variable that has Student's t
    /// distribution with three degrees of freedom.
    pub(super) fn noise(self, rng: &mut Xoshiro256PlusPlus) -> f64 {
        if self == Regimes::None {
            return 1.0;
        }
        let squares: f64 = (0..3).map(|_| normal(rng).powi(2)).sum();
        (0.01 * normal(rng) / (squares / 3.0).sqrt()).clamp(-1.0, 1.0).exp()
    }
}
