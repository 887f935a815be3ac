//! Sends into a flooded queue: the distribution of send calls, and the messages that were lost.

use crate::{Block, BlockKind, Count, Figures, Kind, LoopKind, Lost, RecordKind};

use super::{
    ComparedFigure, Distribution, FoldedCell, Folding, cost, oversubscribed, stretch_median,
};

pub(super) fn fold(folding: &Folding<'_>) -> FoldedCell {
    let distribution = Distribution::of(folding);
    FoldedCell {
        loop_kind: LoopKind::Open,
        kind: RecordKind::SendCall,
        count: distribution.count,
        one_way: None,
        rate: None,
        cost: cost(folding.blocks(BlockKind::Stamped), 1.0),
        figures: lost(folding).map_or_else(Figures::default, Figures::SendCall),
        against: folding.compared(|other| ComparedFigure {
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

/// Numbers of messages lost in all blocks; `None` if the queue is not allowed to lose any.
pub(super) fn lost(folding: &Folding<'_>) -> Option<Lost> {
    let blocks = folding.blocks(BlockKind::Stamped);
    let all: Vec<Lost> = blocks.filter_map(|block| block.figures.lost()).collect();
    let sum = |of: fn(&Lost) -> Count| -> Count { all.iter().map(of).sum() };
    let both = || Lost { refused: sum(|lost| lost.refused), dropped: sum(|lost| lost.dropped) };
    (!all.is_empty()).then(both)
}

pub(super) fn time(block: &Block) -> Option<f64> {
    block.figures.sends()?;
    block.histogram.as_ref()?.quantile_ns(0.5)
}
