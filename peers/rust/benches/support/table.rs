//! Medians over blocks, and ratios of rows measured in the same round, with bootstrap intervals.

use threadtoll_stats::median;
use threadtoll_stats::resample::{Processes, median_with_interval};

use super::blocks::{Block, Regime, regimes};

/// A figure of each block.
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) digits: usize,
    /// True if only steady blocks count.
    pub(crate) steady: bool,
}

/// A row, and the peers of which the best is compared with it.
pub(crate) struct Comparison {
    pub(crate) row: usize,
    pub(crate) against: Vec<usize>,
    /// Metrics compared; less is better.
    pub(crate) metrics: Vec<usize>,
}

pub(crate) struct Tables<'a> {
    pub(crate) cells: &'a [String],
    pub(crate) rows: &'a [&'a str],
    pub(crate) metrics: &'a [Metric],
    pub(crate) comparisons: &'a [Comparison],
    /// True for a table per distance of the CPUs.
    pub(crate) by_distance: bool,
}

/// Minimum number of rounds for a ratio.
const ROUNDS: usize = 3;

impl Tables<'_> {
    /// Prints a table for each regime and cell.
    pub(crate) fn print(&self, blocks: Vec<Block>, seed: u64) {
        let all = blocks.len();
        let regimes = if self.by_distance { regimes(blocks) } else { vec![Regime::of_all(blocks)] };
        for regime in regimes {
            let [shortest, longest] = regime.transfer_ns;
            let count = regime.blocks.len();
            println!("\n# CPUs {shortest:.0} to {longest:.0} ns apart: {count} of {all} blocks");
            for (cell, name) in self.cells.iter().enumerate() {
                let own = regime.blocks.iter().filter(|block| block.cell == cell);
                let blocks: Vec<&Block> = own.collect();
                let count = |row| blocks.iter().filter(|block| block.row == row).count();
                println!("\n## {name}");
                if (0..self.rows.len()).any(|row| count(row) >= ROUNDS) {
                    self.medians(&blocks);
                    self.ratios(&blocks, seed);
                } else {
                    println!("too few blocks: {}", blocks.len());
                }
            }
        }
    }

    fn medians(&self, blocks: &[&Block]) {
        let width = self.rows.iter().map(|row| row.len()).max().unwrap_or(0);
        print!("{:width$}", "");
        self.metrics.iter().for_each(|metric| print!("  {:>12}", metric.name));
        println!("  {:>6}  {:>6}", "blocks", "steady");
        for (row, name) in self.rows.iter().enumerate() {
            let own = || blocks.iter().filter(|block| block.row == row);
            let count = own().count();
            if count == 0 {
                continue;
            }
            print!("{name:width$}");
            for (index, metric) in self.metrics.iter().enumerate() {
                let digits = metric.digits;
                match self.median(blocks, row, index) {
                    Some(value) => print!("  {value:12.digits$}"),
                    None => print!("  {:>12}", "–"),
                }
            }
            let steady = own().filter(|block| block.is_steady()).count();
            println!("  {count:6}  {:5.0}%", 100.0 * steady as f64 / count as f64);
        }
    }

    fn median(&self, blocks: &[&Block], row: usize, metric: usize) -> Option<f64> {
        let own = blocks.iter().filter(|block| block.row == row);
        median(own.filter_map(|block| self.value(block, metric)))
    }

    fn value(&self, block: &Block, metric: usize) -> Option<f64> {
        let counts = block.is_steady() || !self.metrics[metric].steady;
        Some(block.values[metric]).filter(|value| counts && value.is_finite())
    }

    /// Prints a line for each comparison with enough rounds.
    fn ratios(&self, blocks: &[&Block], seed: u64) {
        for comparison in self.comparisons {
            let found = comparison.metrics.iter().filter_map(|metric| {
                let paired = |peer: &usize| self.paired(blocks, comparison.row, *peer, *metric);
                let able = comparison.against.iter().filter(|peer| paired(peer).len() >= ROUNDS);
                let of = |peer: &usize| self.median(blocks, *peer, *metric).unwrap_or(f64::NAN);
                // The best peer of this run, which favours the peers.
                let best = able.min_by(|one, other| of(one).total_cmp(&of(other)))?;
                let (ratios, name) = (paired(best), self.metrics[*metric].name);
                let (ratio, interval) =
                    median_with_interval(&ratios, &Processes::one(ratios.len()), seed)?;
                let [low, high] = interval?;
                let (best, rounds) = (self.rows[*best], ratios.len());
                let interval = format!("{ratio:.2} ({low:.2} to {high:.2})");
                Some(format!("{name} {interval} of {best}, {rounds} rounds"))
            });
            let found: Vec<String> = found.collect();
            if !found.is_empty() {
                println!("{}: {}", self.rows[comparison.row], found.join("; "));
            }
        }
    }

    /// Ratios of a row to a peer, one per round that measured both.
    fn paired(&self, blocks: &[&Block], row: usize, peer: usize, metric: usize) -> Vec<f64> {
        let ratio = |block: &&&Block| {
            let same = |other: &&&Block| (other.row, other.round) == (peer, block.round);
            let peer = blocks.iter().find(same)?;
            Some(self.value(block, metric)? / self.value(peer, metric)?)
        };
        let own = blocks.iter().filter(|block| block.row == row);
        own.filter_map(|block| ratio(&block)).filter(|ratio| ratio.is_finite()).collect()
    }
}
