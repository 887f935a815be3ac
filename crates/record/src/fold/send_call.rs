//! Sends into a flooded queue: the distribution of their calls, and the messages that were lost.

use crate::{Block, BlockKind, Count, Kind, LoopKind, RecordKind, SendsBlock};

use super::{
    Comparison, Distribution, Figures, Folding, Traffic, cost, oversubscribed, stretch_median,
};

pub(super) fn fold(folding: &Folding<'_>) -> Figures {
    let distribution = Distribution::of(folding);
    Figures {
        loop_kind: LoopKind::Open,
        kind: RecordKind::SendCall,
        count: distribution.count,
        one_way: None,
        rate: None,
        cost: cost(folding.blocks(BlockKind::Stamped), 1.0),
        contention: None,
        traffic: Traffic { lost: lost(folding), ..Traffic::default() },
        against: folding.compared(|other| Comparison {
            of: "quantiles.p50",
            own: time,
            base: if other == Kind::SendCall { time } else { stretch_median },
            more_is_better: false,
        }),
        between_processes: None,
        warnings: oversubscribed(folding.cell()).into_iter().collect(),
        distribution,
    }
}

/// Messages that the queue refused, and those that it dropped later; `None` if it may not.
pub(super) fn lost(folding: &Folding<'_>) -> Option<[Count; 2]> {
    let all: Vec<SendsBlock> =
        folding.blocks(BlockKind::Stamped).filter_map(|block| block.sends).collect();
    let sum = |of: fn(&SendsBlock) -> Count| -> Count { all.iter().map(of).sum() };
    (!all.is_empty()).then(|| [sum(|sends| sends.refused), sum(|sends| sends.dropped)])
}

/// The median send call of a block.
pub(super) fn time(block: &Block) -> Option<f64> {
    block.sends?;
    block.histogram.as_ref()?.quantile_ns(0.5)
}
