//! Deliveries of an open loop: how long after they were due messages were received, how late they
//! were sent, and how many were received meanwhile.

use threadtoll_record::{
    BlockFigures, BurstBlock, FunnelBlock, Histogram, OpenLoopBlock, OpenLoopBlockFigures, median,
};

use crate::samples::{Chat, Deliveries, Waited};

use super::{Context, Summary, Values, over, rounded, worst};

pub(super) fn summary(messages: Deliveries, context: Context<'_>) -> Summary {
    let Deliveries { due_ps, ready_ps, sent_ps, received_ps, lead, .. } = &messages;
    let times = || due_ps[*lead..].iter().zip(&received_ps[*lead..]);
    let took = || times().filter_map(|(due, received)| received.checked_sub(*due));
    let values = Values::of(took());
    let count = values.histogram.count();
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
        // A clock that is that far off gives nothing.
        count: count.max(1),
        elapsed_ps,
        mean_ns: values.sum_ps as f64 / 1000.0 / count.max(1) as f64,
        min_ns: if count > 0 { values.min_ps as f64 / 1000.0 } else { 0.0 },
        max_ns: values.max_ps as f64 / 1000.0,
        histogram: Some(values.histogram.packed()),
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
            burst: messages.burst.and_then(|size| bursts(&messages, size)),
            sends: messages.lost,
            funnel: messages.chatty.as_deref().map(chatty),
            idle: messages.idle.clone(),
        }),
        worst: worst::of_waits(
            times().filter_map(waited).collect(),
            &context.excess,
            context.longest,
        ),
    }
}

fn chatty(senders: &[Chat]) -> FunnelBlock {
    let all = Values::of(senders.iter().flatten().copied());
    let mean = |own: &Chat| rounded(own.iter().sum::<u64>() as f64 / 1e3 / own.len() as f64);
    FunnelBlock {
        chatty: (all.histogram.count() > 0).then(|| all.histogram.packed()),
        means_ns: senders.iter().filter(|own| !own.is_empty()).map(mean).collect(),
    }
}

/// The bursts that count; `None` if none is complete.
fn bursts(messages: &Deliveries, size: usize) -> Option<BurstBlock> {
    let Deliveries { due_ps, after_ps, received_ps, lead, .. } = messages;
    let starts: Vec<usize> = (0..due_ps.len())
        .step_by(size.max(1))
        .filter(|start| *start >= *lead && start + size <= due_ps.len())
        .collect();
    let since = |at: u64, origin: u64| at.saturating_sub(origin) as f64 / 1000.0;
    let of_each = |time: &dyn Fn(usize) -> f64| median(starts.iter().map(|start| time(*start)));
    let last = |start: usize| start + size - 1;
    let found_empty =
        starts.iter().filter(|start| received_ps[**start - 1] <= due_ps[**start]).count();
    Some(BurstBlock {
        bursts: (starts.len() as u64).into(),
        first_ns: rounded(of_each(&|start| since(received_ps[start], due_ps[start]))?),
        last_ns: rounded(of_each(&|start| since(received_ps[last(start)], due_ps[start]))?),
        drain_ns: rounded(of_each(&|start| {
            since(received_ps[last(start)], after_ps[last(start)])
        })?),
        found_empty: (found_empty as u64).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_counted_one_by_one() {
        // Three bursts of two; the first does not count, and the third finds the queue empty.
        let messages = Deliveries {
            due_ps: [0, 0, 100, 100, 200, 200].map(|ns| ns * 1000).to_vec(),
            sent_ps: Vec::new(),
            after_ps: [1, 2, 101, 102, 201, 202].map(|ns| ns * 1000).to_vec(),
            received_ps: [60, 120, 180, 200, 260, 320].map(|ns| ns * 1000).to_vec(),
            lead: 2,
            burst: Some(2),
            ..Deliveries::default()
        };
        let block = bursts(&messages, 2).unwrap();
        assert_eq!((block.bursts.get(), block.found_empty.get()), (2, 1));
        assert_eq!(block.first_ns, 70.0);
        assert_eq!(block.last_ns, 110.0);
        assert_eq!(block.drain_ns, 108.0);
    }
}
