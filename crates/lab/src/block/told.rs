//! Blocks that a program of another language measured itself.

use threadtoll_record::{
    BurstBlock, CallsBlock, ContentionBlock, FunnelBlock, Histogram, OpenLoopBlock, OwnProgram,
    SendsBlock,
};

use crate::foreign::program::{Answer, Bursts, Chatty, Deliveries, Tally};
use crate::samples::{SharedMessages, Told};

use super::{Context, Figures, rounded, shared};

pub(super) fn figures(told: Told, context: &Context<'_>) -> Figures {
    let Told { answer, warm_up_ms } = told;
    let own_program = Some(OwnProgram { warm_up_ms: warm_up_ms.map(Into::into) });
    let figures = match answer {
        // A program measures both kinds in each block; the other half is not used.
        Answer::RoundTrips { stamped, .. } if context.stamped => {
            Figures { elapsed_ps: ps(stamped.sum_ns() as f64), ..distribution(&stamped, context) }
        }
        Answer::RoundTrips { others, mean_ns, .. } => stretch(others, others as f64 * mean_ns),
        Answer::Stream { messages, rate_per_s } => {
            stretch(messages, messages as f64 / rate_per_s * 1e9)
        }
        Answer::Shared { elapsed_ns, received, bundle } => {
            let elapsed_ps = elapsed_ns.saturating_mul(1000);
            shared(SharedMessages { elapsed_ps, received, bundle }, context)
        }
        Answer::Deliveries(deliveries) => open_loop(&deliveries, context),
        Answer::Calls { count, send_ns, receive_ns, elapsed_ns, .. } => {
            calls(count, [send_ns, receive_ns], elapsed_ns)
        }
        Answer::SendCalls { calls, elapsed_ns, .. } => Figures {
            elapsed_ps: elapsed_ns.saturating_mul(1000),
            sends: Some(SendsBlock { refused: 0.into(), dropped: 0.into() }),
            ..distribution(&calls, context)
        },
        Answer::Pool { tasks, elapsed_ns, queue_on_entry_mean } => {
            pool(tasks, elapsed_ns, queue_on_entry_mean, context)
        }
    };
    Figures { own_program, ..figures }
}

fn ps(ns: f64) -> u64 {
    (ns * 1000.0).round() as u64
}

/// One stretch of this many operations.
fn stretch(count: u64, elapsed_ns: f64) -> Figures {
    let mean_ns = elapsed_ns / count.max(1) as f64;
    let mut histogram = Histogram::new();
    histogram.record_ps(ps(mean_ns));
    Figures {
        count,
        elapsed_ps: ps(elapsed_ns),
        mean_ns,
        min_ns: mean_ns,
        max_ns: mean_ns,
        histogram: Some(histogram.packed()),
        ..Figures::default()
    }
}

fn histogram(tally: &Tally) -> Histogram {
    let mut histogram = Histogram::new();
    for (ns, times) in &tally.0 {
        histogram.record_times_ps(ns.saturating_mul(1000), *times);
    }
    histogram.packed()
}

fn distribution(tally: &Tally, context: &Context<'_>) -> Figures {
    let count = tally.count();
    let over = tally.0.iter().filter(|(ns, _)| ns.saturating_mul(1000) > context.over_ps);
    Figures {
        count,
        mean_ns: tally.sum_ns() as f64 / count.max(1) as f64,
        min_ns: tally.0.first().map_or(0.0, |(ns, _)| *ns as f64),
        max_ns: tally.max_ns() as f64,
        histogram: Some(histogram(tally)),
        over: Some(over.map(|(_, times)| times).sum()),
        ..Figures::default()
    }
}

fn open_loop(deliveries: &Deliveries, context: &Context<'_>) -> Figures {
    let Deliveries { busy_ns, sent, window_ns, due, received, bursts, .. } = *deliveries;
    let block = OpenLoopBlock {
        lateness: histogram(&deliveries.late),
        window_ns: window_ns.into(),
        due: due.into(),
        received: received.into(),
        busy_ns: busy_ns.unwrap_or(0).into(),
        busy_messages: busy_ns.map_or(0, |_| sent).into(),
        // Its values have no sign, and the bound of its stamps is not known.
        negative: 0.into(),
        clock_bound_ns: None,
    };
    Figures {
        elapsed_ps: deliveries.elapsed_ns.saturating_mul(1000),
        open_loop: Some(block),
        burst: bursts.map(burst),
        funnel: deliveries.chatty.as_ref().map(chatty),
        ..distribution(&deliveries.delivered, context)
    }
}

fn chatty(chatty: &Chatty) -> FunnelBlock {
    let Chatty { delivered, means_ns } = chatty;
    FunnelBlock {
        chatty: (delivered.count() > 0).then(|| histogram(delivered)),
        means_ns: means_ns.iter().copied().map(rounded).collect(),
    }
}

/// Medians of calls. The memory of the process is its runtime's, and says nothing of the queue's.
fn calls(count: u64, [send_ns, receive_ns]: [f64; 2], elapsed_ns: u64) -> Figures {
    let mean_ns = send_ns + receive_ns;
    Figures {
        count,
        elapsed_ps: elapsed_ns.saturating_mul(1000),
        mean_ns,
        min_ns: mean_ns,
        max_ns: mean_ns,
        calls: Some(CallsBlock {
            send_ns: rounded(send_ns),
            receive_ns: rounded(receive_ns),
            resident_bytes: None,
        }),
        ..Figures::default()
    }
}

fn burst(bursts: Bursts) -> BurstBlock {
    BurstBlock {
        bursts: bursts.bursts.into(),
        first_ns: rounded(bursts.first_ns),
        last_ns: rounded(bursts.last_ns),
        drain_ns: rounded(bursts.drain_ns),
        found_empty: bursts.found_empty.into(),
    }
}

fn pool(tasks: u64, elapsed_ns: u64, queue_on_entry_mean: f64, context: &Context<'_>) -> Figures {
    let cycle_ns = context.planned.cell.lock().map_or(0, |lock| lock.cycle_ns());
    let each_ns = elapsed_ns as f64 / tasks.max(1) as f64;
    Figures {
        count: tasks,
        elapsed_ps: elapsed_ns.saturating_mul(1000),
        mean_ns: each_ns,
        min_ns: each_ns,
        max_ns: each_ns,
        contention: Some(ContentionBlock {
            work: (tasks as f64 * cycle_ns as f64).into(),
            acquisitions: Vec::new(),
            work_by_cpu: Vec::new(),
            work_together: None,
            queue_on_entry_mean: Some(queue_on_entry_mean.into()),
            seen: None,
        }),
        ..Figures::default()
    }
}
