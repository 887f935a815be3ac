use threadtoll_record::{
    BlockFigures, BurstBlock, FunnelBlock, Histogram, OpenLoopBlock, OpenLoopBlockFigures,
};

use crate::samples::{Deliveries, Waited};

use super::{Context, Summary, Values, over, rounded, worst};

pub(super) fn summary(messages: Deliveries, context: Context<'_>) -> Summary {
    let Deliveries { due_ps, ready_ps, sent_ps, after_ps, received_ps, lead, .. } = &messages;
    let times = || due_ps[*lead..].iter().zip(&received_ps[*lead..]);
    let took = || times().filter_map(|(due, received)| received.checked_sub(*due));
    let summary = Values::of(took()).summary();
    let count = summary.count;
    let all = times().count() as u64;
    let mut lateness = Histogram::new();
    for (ready, sent) in ready_ps[*lead..].iter().zip(&sent_ps[*lead..]) {
        lateness.record_ps(sent.saturating_sub(*ready));
    }
    let (begin, end) = (due_ps[*lead], due_ps[due_ps.len() - 1]);
    let within = |times: &[u64]| times.iter().filter(|time| (begin..end).contains(*time)).count();
    let waited = |(due, received): (&u64, &u64)| {
        Some(Waited {
            ps: received.checked_sub(*due)?,
            at_s: *received as f64 / 1e12,
            cpu: messages.cpu,
        })
    };
    let elapsed_ps = received_ps.iter().max().unwrap_or(&end).saturating_sub(begin).max(1000);
    Summary {
        // The count is 0 only if the clocks disagree so much that every message seems to arrive
        // before it was due.
        count: count.max(1),
        elapsed_ps,
        min_ns: if count > 0 { summary.min_ns } else { 0.0 },
        over: Some(over(took(), context.over_ps)),
        figures: BlockFigures::OpenLoop(OpenLoopBlockFigures {
            open_loop: OpenLoopBlock {
                lateness: lateness.packed(),
                window_ns: ((end - begin) / 1000).max(1).into(),
                due: (within(due_ps) as u64).max(1).into(),
                received: (within(received_ps) as u64).into(),
                busy_ns: messages.busy_ns.into(),
                busy_messages: messages.busy_messages.unwrap_or(due_ps.len() as u64).into(),
                negative: (all - count).into(),
                clock_bound_ns: messages.clock_bound_ns.map(rounded),
            },
            burst: messages
                .burst
                .and_then(|size| BurstBlock::of(size, *lead, [due_ps, after_ps, received_ps])),
            sends: messages.lost,
            funnel: messages.chatty.as_deref().map(FunnelBlock::of),
            idle: messages.idle.clone(),
        }),
        worst: worst::of_waits(
            times().filter_map(waited).collect(),
            &context.excess,
            context.longest,
        ),
        ..summary
    }
}
