//! Overloaded locks: shares of the callers, their queue over time, and the recovery.

use threadtoll_stats::resample::{self, Processes};

use crate::{Block, BlockKind, Count, Fraction, Histogram, OverloadBlock, OverloadFigures, Ratio};

use super::distribution::lateness;
use super::{Folding, processes};
use crate::rounding::{round, rounded_ns, significant};

/// `None` if the cell has another load.
pub(super) fn figures(folding: &Folding<'_>) -> Option<OverloadFigures> {
    let blocks: Vec<(&Block, &OverloadBlock)> = folding
        .blocks(BlockKind::Stamped)
        .filter_map(|block| Some((block, block.figures.contention()?.overload.as_deref()?)))
        .collect();
    let (_, first) = *blocks.first()?;
    let of_process = processes(blocks.iter().map(|(block, _)| *block));
    let sum = |of: fn(&OverloadBlock) -> Count| {
        blocks.iter().map(|(_, block)| of(block)).sum::<Count>().as_f64()
    };
    let arrived = sum(|block| block.arrived);
    let share = |of: fn(&OverloadBlock) -> Count| -> Fraction {
        significant(sum(of) / arrived.max(1.0)).into()
    };
    let served = sum(|block| block.in_time) + sum(|block| block.late);
    let [from_ns, until_ns] = first.overload_ns;
    let lasted_s = (until_ns.as_f64() - from_ns.as_f64()) * blocks.len() as f64 / 1e9;
    let queue = mean(&blocks, &of_process, folding.seed, |block| block.queue_mean.get())?;
    let recovery = recovery(&blocks, &of_process, folding.seed);
    let late: Vec<&Histogram> = blocks.iter().map(|(_, block)| &block.lateness).collect();
    Some(OverloadFigures {
        arrived: blocks.iter().map(|(_, block)| block.arrived).sum(),
        arrived_per_s: significant(arrived / lasted_s).into(),
        in_time_share: share(|block| block.in_time),
        in_time_interval95: in_time(&blocks, &of_process, folding.seed),
        late_share: share(|block| block.late),
        refused_share: share(|block| block.refused),
        gave_up_share: share(|block| block.gave_up),
        wasted_share: (served > 0.0).then(|| significant(sum(|block| block.late) / served).into()),
        in_front_share: share(|block| block.in_front),
        queue_mean: significant(queue.0).into(),
        queue_mean_interval95: queue.1.map(|ends| ends.map(|end| significant(end).into())),
        queue_max: blocks.iter().map(|(_, block)| block.queue_max).max().unwrap_or(0),
        recovery_ns: recovery.map(|(ns, _)| rounded_ns(ns)),
        recovery_interval95: recovery
            .and_then(|(_, interval)| interval)
            .map(|ends| ends.map(rounded_ns)),
        hold_ns: rounded_ns(
            blocks.iter().map(|(_, block)| block.hold_ns.get()).sum::<f64>() / blocks.len() as f64,
        ),
        overload_ns: first.overload_ns,
        length_ns: first.length_ns,
        queue: queue_over_time(&blocks),
        lateness: lateness(&late, &of_process, folding.seed),
    })
}

type Blocks<'a> = [(&'a Block, &'a OverloadBlock)];

fn mean(
    blocks: &Blocks<'_>,
    of_process: &Processes,
    seed: u64,
    of: impl Fn(&OverloadBlock) -> f64,
) -> Option<(f64, Option<[f64; 2]>)> {
    let values: Vec<(f64, u64)> = blocks.iter().map(|(_, block)| (of(block), 1)).collect();
    resample::mean_with_interval(&values, of_process, seed)
}

fn in_time(blocks: &Blocks<'_>, of_process: &Processes, seed: u64) -> Option<[Fraction; 2]> {
    let shares: Vec<(f64, u64)> = blocks
        .iter()
        .map(|(_, block)| {
            (block.in_time.as_f64() / block.arrived.as_f64().max(1.0), block.arrived.get())
        })
        .collect();
    let (_, interval) = resample::mean_with_interval(&shares, of_process, seed)?;
    interval.map(|ends| ends.map(|end| significant(end.clamp(0.0, 1.0)).into()))
}

/// The median over blocks. A block in which somebody waited to the end counts as if the queue had
/// drained just then.
fn recovery(
    blocks: &Blocks<'_>,
    of_process: &Processes,
    seed: u64,
) -> Option<(f64, Option<[f64; 2]>)> {
    let longest = |block: &OverloadBlock| block.length_ns.as_f64() - block.overload_ns[1].as_f64();
    let values: Vec<f64> = blocks
        .iter()
        .map(|(_, block)| block.recovery_ns.map_or(longest(block), f64::from))
        .collect();
    let most = blocks.iter().map(|(_, block)| longest(block)).fold(f64::INFINITY, f64::min);
    resample::median_with_interval(&values, of_process, seed).filter(|(median, _)| *median < most)
}

fn queue_over_time(blocks: &Blocks<'_>) -> Vec<Ratio> {
    let slices = blocks.iter().map(|(_, block)| block.queue.len()).min().unwrap_or(0);
    let mean = |nth: usize| {
        let sum: f64 = blocks.iter().map(|(_, block)| block.queue[nth].get()).sum();
        round(sum / blocks.len() as f64).into()
    };
    (0..slices).map(mean).collect()
}
