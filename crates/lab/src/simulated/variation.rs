//! Differences of known size between runs of the simulated machine.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use threadtoll_record::Cell;

use super::{fingerprint, normal};

/// Differences between this run and other runs. By default, only calibrations differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Variation {
    /// Standard deviation of the logarithm of a cell's figure, across groups and runs.
    pub cell: f64,
    /// Standard deviation of the logarithm of the whole machine's speed, across runs.
    pub machine: f64,
    /// Standard deviation of the logarithm of a calibrated figure, across repeats.
    pub calibration: f64,
    /// Name of a mechanism, queue or lock, and the factor by which it is slower.
    pub slower: Option<(String, f64)>,
}

impl Default for Variation {
    fn default() -> Self {
        // Calibrations vary as much as the blocks of a run.
        Variation { cell: 0.0, machine: 0.0, calibration: 0.01, slower: None }
    }
}

impl Variation {
    /// Factor by which a cell is slower in this group of the run with this seed.
    pub(super) fn factor(&self, cell: &Cell, seed: u64, group: u32) -> f64 {
        let normal = |seed: u64| normal(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        let own = fingerprint(cell) ^ seed.rotate_left(32) ^ u64::from(group);
        let noise = self.cell * normal(own) + self.machine * normal(!seed);
        let slower = self.slower.iter().filter(|(name, _)| *name == cell.name());
        noise.exp() * slower.map(|(_, factor)| factor).product::<f64>()
    }
}

/// Maximum fraction by which a value within a block exceeds the minimum. The actual fraction is
/// this constant times two random numbers from 0 to 1.
const NOISE: f64 = 0.08;

pub(super) fn noise(rng: &mut Xoshiro256PlusPlus) -> f64 {
    1.0 + NOISE * rng.random::<f64>() * rng.random::<f64>()
}
