//! Streams: the median rate over blocks, without round trips.

use threadtoll_stats::resample;

use crate::{Block, BlockKind, Cost, Figures, Kind, LoopKind, Ns, Ratio, RecordKind, Workers};

use super::{
    ComparedFigure, Distribution, FoldedCell, Folding, RATE, cost, oversubscribed, processes,
    stretch_median,
};
use crate::rounding::significant;

pub(super) fn fold(folding: &Folding<'_>) -> FoldedCell {
    let stretches = || folding.blocks(BlockKind::Stretch);
    let rated = || stretches().filter(|block| rate(block).is_some());
    let rates: Vec<f64> = rated().filter_map(rate).map(|rate| rate * 1e9).collect();
    let found = resample::median_with_interval(&rates, &processes(rated()), folding.seed);
    // One operation per message. The cost of half a message is rounded and then doubled, so that
    // the last digit is the same as in existing files.
    let half = cost(stretches(), 2.0);
    let shared = folding.own().filter_map(|marked| marked.block.figures.workers());
    let whole_ns = |value: Option<Ns>| value.map(|value| significant(value.get() * 2.0).into());
    let whole = |value: Option<Ratio>| value.map(|value| significant(value.get() * 2.0).into());
    FoldedCell {
        loop_kind: LoopKind::Streaming,
        kind: RecordKind::Stream,
        count: stretches().map(|block| block.count).sum(),
        distribution: Distribution::of(folding),
        one_way: None,
        rate: found
            .map(|(rate, interval)| (rate.round(), interval.map(|bounds| bounds.map(f64::round)))),
        cost: Cost {
            user_ns_per_op: whole_ns(half.user_ns_per_op),
            system_ns_per_op: whole_ns(half.system_ns_per_op),
            voluntary_switches_per_op: whole(half.voluntary_switches_per_op),
            involuntary_switches_per_op: whole(half.involuntary_switches_per_op),
        },
        figures: Workers::of(shared)
            .map_or_else(Figures::default, |workers| Figures::Shared { workers }),
        against: folding.compared(rates_of),
        between_processes: None,
        warnings: oversubscribed(folding.cell()).into_iter().collect(),
    }
}

/// Messages per nanosecond in a block.
pub(super) fn rate(block: &Block) -> Option<f64> {
    let rate = block.count.as_f64() / block.elapsed_ns.as_f64();
    (block.kind == BlockKind::Stretch && rate.is_finite()).then_some(rate)
}

/// Rate of a cell with round trips: each hand-off counts as one message.
fn hand_offs(block: &Block) -> Option<f64> {
    Some(2.0 / stretch_median(block)?)
}

pub(super) fn rates_of(other: Kind) -> ComparedFigure {
    ComparedFigure {
        of: RATE,
        own: rate,
        base: if other == Kind::Stream { rate } else { hand_offs },
        more_is_better: true,
    }
}
