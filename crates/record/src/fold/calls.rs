//! Queues that hold many messages: times of calls, medians over blocks.

use threadtoll_stats::{median, resample};

use crate::{
    Block, BlockKind, Calls, CallsBlock, Count, DepthFigures, Figures, Kind, LoopKind, Ns,
    RecordKind, ResidentBytes,
};

use super::{
    ComparedFigure, Distribution, FoldedCell, Folding, cost, oversubscribed, processes,
    stretch_median,
};
use crate::rounding::rounded_ns;

pub(super) fn fold(folding: &Folding<'_>) -> FoldedCell {
    let blocks: Vec<(&Block, CallsBlock)> = folding
        .blocks(BlockKind::Stretch)
        .filter_map(|block| Some((block, *block.figures.calls()?)))
        .collect();
    let of_process = processes(blocks.iter().map(|(block, _)| *block));
    let call = |of: fn(&CallsBlock) -> Ns| {
        let values: Vec<f64> = blocks.iter().map(|(_, calls)| of(calls).get()).collect();
        resample::median_with_interval(&values, &of_process, folding.seed)
    };
    let (send, receive) = (call(|calls| calls.send_ns), call(|calls| calls.receive_ns));
    let figure = |found: Option<(f64, _)>| found.map(|(ns, _)| rounded_ns(ns));
    let interval = |found: Option<(f64, Option<[f64; 2]>)>| {
        found.and_then(|(_, interval)| interval).map(|interval| interval.map(rounded_ns))
    };
    let calls = Calls {
        send_ns: figure(send),
        send_interval95: interval(send),
        receive_ns: figure(receive),
        receive_interval95: interval(receive),
    };
    FoldedCell {
        loop_kind: LoopKind::Closed,
        kind: RecordKind::Calls,
        count: blocks.iter().map(|(block, _)| block.count).sum(),
        distribution: Distribution::of(folding),
        one_way: None,
        rate: None,
        cost: cost(folding.blocks(BlockKind::Stretch), 1.0),
        figures: Figures::Depth(DepthFigures { calls, resident_bytes: resident_bytes(&blocks) }),
        against: folding.compared(|other| ComparedFigure {
            of: "calls",
            own: time,
            base: if other == Kind::Depth { time } else { stretch_median },
            more_is_better: false,
        }),
        between_processes: None,
        warnings: oversubscribed(folding.cell()).into_iter().collect(),
    }
}

/// Time of a send call plus a receive call.
pub(super) fn time(block: &Block) -> Option<f64> {
    let calls = block.figures.calls()?;
    Some(calls.send_ns.get() + calls.receive_ns.get())
}

fn resident_bytes(blocks: &[(&Block, CallsBlock)]) -> Option<ResidentBytes> {
    let known: Vec<ResidentBytes> =
        blocks.iter().filter_map(|(_, calls)| calls.resident_bytes).collect();
    let before = median(known.iter().map(|bytes| bytes.before.as_f64()))?;
    // Differences are taken within each block, because the memory of a process before the queue
    // exists varies more from block to block than the memory that the queue takes.
    let more = |of: fn(&ResidentBytes) -> Count| {
        let more = median(known.iter().map(|bytes| of(bytes).as_f64() - bytes.before.as_f64()))?;
        Some(Count::from((before + more) as u64))
    };
    Some(ResidentBytes {
        before: Count::from(before as u64),
        full: more(|bytes| bytes.full)?,
        drained: more(|bytes| bytes.drained)?,
    })
}
