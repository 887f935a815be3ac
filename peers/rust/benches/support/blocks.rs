//! Blocks in shuffled order, each between two measurements of the distance between the CPUs.

use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::place::transfer_ns;

/// Largest ratio of a steady block's references before and after.
const STEADY: f64 = 1.1;
/// Smallest ratio of the distances of two regimes.
const APART: f64 = 1.4;
/// Minimum number of blocks of a regime.
const REGIME: usize = 3;

/// One row in one cell for some milliseconds.
pub(crate) struct Block {
    pub(crate) cell: usize,
    pub(crate) row: usize,
    pub(crate) round: usize,
    /// Nanoseconds of a transfer between the CPUs, before and after.
    pub(crate) reference: [f64; 2],
    /// One value per metric; `NAN` if the block has none.
    pub(crate) values: Vec<f64>,
}

impl Block {
    /// True if the distance of the CPUs did not change.
    pub(crate) fn is_steady(&self) -> bool {
        let [before, after] = self.reference;
        before.max(after) <= before.min(after) * STEADY
    }

    fn transfer_ns(&self) -> f64 {
        (self.reference[0] * self.reference[1]).sqrt()
    }
}

/// Measures blocks of all cells and wanted rows in turn, until the time is over.
///
/// `measure` gets a cell and a row, and returns `None` if the cell does not have the row.
pub(crate) fn interleave(
    cells: usize,
    wanted: &[bool],
    seconds: f64,
    seed: u64,
    cpus: [u32; 2],
    mut measure: impl FnMut(usize, usize) -> Option<Vec<f64>>,
) -> Vec<Block> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let rows = (0..wanted.len()).filter(|row| wanted[*row]);
    let mut order: Vec<(usize, usize)> =
        rows.flat_map(|row| (0..cells).map(move |cell| (cell, row))).collect();
    let mut blocks = Vec::new();
    for round in 0.. {
        order.shuffle(&mut random);
        let mut before = transfer_ns(cpus);
        for (cell, row) in &order {
            let Some(values) = measure(*cell, *row) else { continue };
            let after = transfer_ns(cpus);
            let reference = [before, after];
            blocks.push(Block { cell: *cell, row: *row, round, reference, values });
            before = after;
            if Instant::now() >= end {
                return blocks;
            }
        }
    }
    blocks
}

/// Blocks at about one distance of the CPUs.
pub(crate) struct Regime {
    /// Shortest and longest transfer in nanoseconds.
    pub(crate) transfer_ns: [f64; 2],
    pub(crate) blocks: Vec<Block>,
}

impl Regime {
    /// All blocks, at any distance of the CPUs.
    pub(crate) fn of_all(blocks: Vec<Block>) -> Regime {
        let transfers = || blocks.iter().map(Block::transfer_ns);
        let shortest = transfers().fold(f64::INFINITY, f64::min);
        let longest = transfers().fold(0.0, f64::max);
        Regime { transfer_ns: [shortest, longest], blocks }
    }
}

/// Splits blocks by their references: steady ones form the regimes, the others go to the nearest.
pub(crate) fn regimes(blocks: Vec<Block>) -> Vec<Regime> {
    let mut steady: Vec<f64> =
        blocks.iter().filter(|block| block.is_steady()).map(Block::transfer_ns).collect();
    steady.sort_by(f64::total_cmp);
    let mut found: Vec<Regime> = steady
        .chunk_by(|shorter, longer| *longer < shorter * APART)
        .filter(|transfers| transfers.len() >= REGIME)
        .map(|transfers| Regime {
            transfer_ns: [transfers[0], transfers[transfers.len() - 1]],
            blocks: Vec::new(),
        })
        .collect();
    for block in blocks {
        let here = block.transfer_ns();
        let distance = |[shortest, longest]: [f64; 2]| (here / shortest).max(longest / here);
        let distances = found.iter_mut().map(|regime| (distance(regime.transfer_ns), regime));
        let nearest = distances.min_by(|(one, _), (other, _)| one.total_cmp(other));
        if let Some((_, regime)) = nearest {
            regime.blocks.push(block);
        }
    }
    found
}
