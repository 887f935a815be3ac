//! The distribution of a cell's stamped values.

use threadtoll_stats::resample::Processes;

use super::{Folding, Marked, processes};
use crate::limits::WORST;
use crate::quantile::{self, QuantileEstimate};
use crate::rounding::{round, rounded_ns};
use crate::{
    Block, BlockKind, ContentionBlock, Count, Fraction, Histogram, Intervals, Lateness, Ns,
    Quantiles, Worst,
};

pub(super) struct Distribution {
    pub(super) count: Count,
    pub(super) mean: Option<Ns>,
    pub(super) min: Option<Ns>,
    pub(super) max: Option<Ns>,
    /// Estimates of [`Quantiles::ALL`]: `all` over all blocks, `clean` over undisturbed blocks.
    pub(super) all: Vec<QuantileEstimate>,
    pub(super) clean: Vec<QuantileEstimate>,
    pub(super) over_share: Option<Fraction>,
    pub(super) histogram: Option<Histogram>,
    pub(super) same_cpu_share: Option<Fraction>,
}

impl Distribution {
    pub(super) fn of(folding: &Folding<'_>) -> Self {
        let stamped: Vec<&Marked<'_>> =
            folding.own().filter(|marked| marked.block.kind == BlockKind::Stamped).collect();
        let blocks = || stamped.iter().map(|marked| marked.block);
        let all = quantiles_of(blocks(), &Quantiles::ALL, folding.seed);
        let clean = if stamped.iter().all(|marked| marked.clean()) {
            all.clone()
        } else {
            let clean = stamped.iter().filter(|marked| marked.clean()).map(|marked| marked.block);
            quantiles_of(clean, &Quantiles::ALL, folding.seed)
        };
        let histograms: Vec<&Histogram> =
            blocks().filter_map(|block| block.histogram.as_ref()).collect();
        let mut merged = Histogram::new();
        histograms.iter().for_each(|histogram| merged.add(histogram));
        let count: Count = blocks().map(|block| block.count).sum();
        let over: Count = blocks().filter_map(|block| block.over).sum();
        let of_over: Count =
            blocks().filter(|block| block.over.is_some()).map(|block| block.count).sum();
        let timed = || blocks().filter(|block| has_waits(block));
        let weighted = |figure: fn(&Block) -> Option<f64>| {
            let known = || blocks().filter_map(|block| Some((figure(block)?, block.count)));
            let count: Count = known().map(|(_, count)| count).sum();
            let sum: f64 = known().map(|(value, count)| value * count.as_f64()).sum();
            (count > 0).then(|| round(sum / count.as_f64()))
        };
        Distribution {
            count,
            mean: weighted(|block| has_waits(block).then(|| block.mean.get())).map(Into::into),
            min: timed().map(|block| block.min.get()).min_by(f64::total_cmp).map(rounded_ns),
            max: timed().map(|block| block.max.get()).max_by(f64::total_cmp).map(rounded_ns),
            all,
            clean,
            over_share: (of_over > 0).then(|| (over.as_f64() / of_over.as_f64()).into()),
            histogram: (!histograms.is_empty()).then(|| merged.packed()),
            same_cpu_share: weighted(same_cpu_share).map(Into::into),
        }
    }

    pub(super) fn p50(&self) -> QuantileEstimate {
        self.all[0]
    }
}

/// Returns `false` if the block has no waiting times, because a program in another language
/// reported only the total time of its thread pool.
fn has_waits(block: &Block) -> bool {
    let told = |found: &ContentionBlock| found.queue_on_entry_mean.is_some();
    !block.figures.contention().is_some_and(told)
}

fn same_cpu_share(block: &Block) -> Option<f64> {
    block.figures.hand_offs()?.same_cpu_share.map(Fraction::get)
}

pub(super) fn quantiles_of<'a>(
    blocks: impl Iterator<Item = &'a Block>,
    wanted: &[f64],
    seed: u64,
) -> Vec<QuantileEstimate> {
    let blocks: Vec<&Block> = blocks.filter(|block| block.histogram.is_some()).collect();
    let histograms: Vec<&Histogram> =
        blocks.iter().filter_map(|block| block.histogram.as_ref()).collect();
    quantile::estimates(&histograms, &processes(blocks), wanted, seed)
}

/// Distribution of a generator's own lateness, from one histogram per block.
pub(super) fn lateness(histograms: &[&Histogram], of_process: &Processes, seed: u64) -> Lateness {
    let estimates = quantile::estimates(histograms, of_process, &Quantiles::ALL, seed);
    let mut merged = Histogram::new();
    histograms.iter().for_each(|histogram| merged.add(histogram));
    Lateness {
        quantiles: Quantiles::of(&estimates),
        histogram: (merged.count() > 0).then(|| merged.packed()),
    }
}

pub(super) fn worst<'a>(blocks: impl Iterator<Item = &'a Block>) -> Vec<Worst> {
    let mut worst: Vec<Worst> = blocks.flat_map(|block| block.worst.iter().copied()).collect();
    worst.sort_by(|a, b| b.ns.get().total_cmp(&a.ns.get()));
    worst.truncate(WORST);
    worst
}

pub(super) fn intervals(
    found: &[QuantileEstimate],
    rate: Option<(f64, Option<[f64; 2]>)>,
) -> Intervals {
    let value = |index: usize| found[index].interval95.map(|interval| interval.map(rounded_ns));
    Intervals {
        p50: value(0),
        p90: value(1),
        p99: value(2),
        p999: value(3),
        p9999: value(4),
        rate_per_s: rate
            .and_then(|(_, interval)| interval)
            .map(|interval| interval.map(Into::into)),
    }
}
