mod deliveries;
mod worst;

use threadtoll_machine::judge::{Baseline, Observed, judge};
use threadtoll_record::{
    Block, BlockFigures, BlockKind, CallsBlock, CpuNoise, HandOffBlockFigures, Histogram, Ns,
    OneWayBlock, Placement, Plan, PlannedCell, WorkersBlock, Worst,
};
use threadtoll_stats::median;

use crate::samples::{
    Acquisitions, BlockSamples, DepthCalls, RoundTrips, Samples, SendCalls, SharedMessages,
    Stretches,
};

use worst::{Excess, Longest};

#[derive(Clone, Copy)]
pub(crate) struct Position {
    pub(crate) group: usize,
    pub(crate) attempt: u32,
    pub(crate) process: u32,
    pub(crate) cell: usize,
    pub(crate) round: u32,
    pub(crate) kind: BlockKind,
}

pub(crate) struct History {
    longest: Longest,
    /// Index 0: blocks that are timed in stretches; 1: blocks that stamp every operation.
    usual: [Baseline; 2],
}

impl History {
    pub(crate) fn new(noise: &[CpuNoise], cpus: &[u32]) -> Self {
        History { longest: Longest::default(), usual: [Baseline::of(noise, cpus); 2] }
    }
}

#[derive(Default)]
struct Summary {
    count: u64,
    elapsed_ps: u64,
    mean_ns: f64,
    min_ns: f64,
    max_ns: f64,
    histogram: Option<Histogram>,
    /// Number of samples above `Plan::over_ns`.
    over: Option<u64>,
    figures: BlockFigures,
    worst: Vec<Worst>,
}

struct Context<'a> {
    planned: &'a PlannedCell,
    stamped: bool,
    over_ps: u64,
    excess: Excess<'a>,
    longest: &'a mut Longest,
}

pub(crate) fn to_block(
    plan: &Plan,
    position: Position,
    block: BlockSamples,
    at: String,
    history: &mut History,
) -> Block {
    let BlockSamples { counters, samples } = block;
    let planned = &plan.groups[position.group][position.cell];
    let stamped = position.kind == BlockKind::Stamped;
    let context = Context {
        planned,
        stamped,
        over_ps: plan.over_ns.saturating_mul(1000),
        excess: Excess {
            disturbance: &counters.disturbance,
            cost: &counters.cost,
            pinned: planned.cell.placement == Placement::Pinned,
        },
        longest: &mut history.longest,
    };
    let summary = match samples {
        Samples::Exchange(round_trips) => exchange(round_trips, context),
        Samples::Stream(stretches) => stream(&stretches, &context),
        Samples::Shared(messages) => shared(messages, &context),
        Samples::OpenLoop(messages) => deliveries::summary(messages, context),
        Samples::Depth(calls) => depth(&calls),
        Samples::SendCalls(sends) => send_calls(sends, context),
        Samples::Contention(acquisitions) => contention(acquisitions, context),
    };
    // If there are more threads than CPUs, scheduling and migration are part of what is measured,
    // not disturbances.
    let crowded = planned.cell.oversubscribed();
    let usual = &mut history.usual[usize::from(stamped)];
    let observed = Observed {
        placement: if crowded { Placement::Free } else { planned.cell.placement },
        spins: counters.spins && !crowded,
        grows: counters.grows,
        elapsed_ns: summary.elapsed_ps / 1000,
        mean_ns: summary.mean_ns,
        cpus: planned.cell.cpus.len() as u32,
        voluntary_switches: counters.cost.voluntary_switches.get(),
        involuntary_switches: counters.cost.involuntary_switches.get(),
        baseline: *usual,
        disturbance: &counters.disturbance,
    };
    let causes = judge(&observed);
    usual.learn(&observed);
    let mut disturbance = counters.disturbance;
    disturbance.causes = causes;
    Block {
        run: plan.run.clone(),
        group: position.group,
        attempt: position.attempt,
        cell: position.cell,
        process: position.process,
        seq: position.round,
        at: at.into(),
        kind: position.kind,
        count: summary.count.into(),
        elapsed_ns: (summary.elapsed_ps / 1000).into(),
        mean: ((summary.mean_ns * 1e4).round() / 1e4).into(),
        min: summary.min_ns.into(),
        max: summary.max_ns.into(),
        histogram: summary.histogram,
        over: summary.over.map(Into::into),
        figures: summary.figures,
        own_program: None,
        worst: summary.worst,
        cost: counters.cost,
        cost_round_trips: counters.operations.into(),
        clean: disturbance.causes.is_empty(),
        disturbance,
    }
}

fn stream(stretches: &Stretches, context: &Context<'_>) -> Summary {
    let each = stretches.operations_each.max(1);
    let lengths = &stretches.lengths_ps;
    let count = each * lengths.len() as u64;
    let elapsed_ps: u64 = lengths.iter().sum();
    let values = Values::of(lengths.iter().map(|length| length / each));
    Summary {
        count,
        elapsed_ps,
        mean_ns: elapsed_ps as f64 / 1000.0 / count as f64,
        over: context.stamped.then(|| over(lengths.iter().copied(), context.over_ps)),
        ..values.summary()
    }
}

fn shared(messages: SharedMessages, context: &Context<'_>) -> Summary {
    let SharedMessages { elapsed_ps, received, bundle } = messages;
    let all = received.iter().sum();
    let stretch = Stretches { lengths_ps: vec![elapsed_ps], operations_each: all };
    let messages = received.into_iter().map(Into::into).collect();
    let figures = BlockFigures::Shared { workers: WorkersBlock { bundle, messages } };
    Summary { figures, ..stream(&stretch, context) }
}

/// Takes medians, because some stretches (runs of calls between two stamps) include page faults.
fn depth(calls: &DepthCalls) -> Summary {
    let each = calls.calls_each.max(1);
    let per_call = |lengths: &[u64]| {
        let times = lengths.iter().map(|ps| *ps as f64 / 1000.0 / each as f64);
        median(times).unwrap_or(0.0)
    };
    let (send_ns, receive_ns) = (per_call(&calls.send_ps), per_call(&calls.receive_ps));
    let pairs = calls.send_ps.iter().zip(&calls.receive_ps);
    let values = Values::of(pairs.map(|(send, receive)| (send + receive) / each));
    Summary {
        count: each * calls.send_ps.len() as u64,
        // The disturbance counters cover the whole block, not only its calls.
        elapsed_ps: calls.elapsed_ps,
        mean_ns: send_ns + receive_ns,
        histogram: None,
        figures: BlockFigures::Depth {
            calls: CallsBlock {
                send_ns: rounded(send_ns),
                receive_ns: rounded(receive_ns),
                resident_bytes: calls.resident_bytes,
            },
        },
        ..values.summary()
    }
}

fn send_calls(sends: SendCalls, context: Context<'_>) -> Summary {
    let SendCalls { calls, elapsed_ps, lost } = sends;
    let values = Values::of(calls.iter().map(|call| call.ps));
    Summary {
        elapsed_ps,
        over: Some(over(calls.iter().map(|call| call.ps), context.over_ps)),
        figures: BlockFigures::SendCall { sends: lost },
        worst: worst::of_waits(calls, &context.excess, context.longest),
        ..values.summary()
    }
}

fn rounded(ns: f64) -> Ns {
    ((ns * 1000.0).round() / 1000.0).into()
}

fn exchange(samples: RoundTrips, context: Context<'_>) -> Summary {
    let summary = stream(&samples.stretches, &context);
    if !context.stamped {
        return summary;
    }
    let free = context.planned.cell.placement == Placement::Free;
    Summary {
        figures: BlockFigures::HandOffs(HandOffBlockFigures {
            one_way: one_way(&samples.one_way_ps, samples.clock_bound_ns),
            same_cpu_share: free
                .then(|| same_cpu_share(&samples.lead_cpus, &samples.follow_cpus))
                .flatten()
                .map(Into::into),
        }),
        worst: worst::of_round_trips(&samples, &context.excess, context.longest),
        ..summary
    }
}

/// The waits do not add up to the block's length, because threads work between them.
fn contention(samples: Acquisitions, context: Context<'_>) -> Summary {
    let Acquisitions { block, elapsed_ns, waits, excerpt: _ } = samples;
    // A program in another language does not report acquisitions by thread, so its tasks are
    // counted instead.
    let count = match block.acquisitions.is_empty() {
        true => context.planned.cell.lock().and_then(|lock| lock.tasks).unwrap_or(0),
        false => block.acquisitions.iter().map(|count| count.get()).sum(),
    };
    let each_ns = elapsed_ns as f64 / count.max(1) as f64;
    let stamped = !waits.is_empty();
    let values = Values::of(waits.iter().map(|wait| wait.ps));
    let summary = if stamped {
        Summary { mean_ns: values.sum_ps as f64 / 1000.0 / count as f64, ..values.summary() }
    } else {
        Summary { mean_ns: each_ns, min_ns: each_ns, max_ns: each_ns, ..Summary::default() }
    };
    Summary {
        count,
        elapsed_ps: elapsed_ns * 1000,
        over: (stamped && context.stamped)
            .then(|| over(waits.iter().map(|wait| wait.ps), context.over_ps)),
        figures: BlockFigures::Contention { contention: block },
        worst: worst::of_waits(waits, &context.excess, context.longest),
        ..summary
    }
}

struct Values {
    histogram: Histogram,
    sum_ps: u64,
    min_ps: u64,
    max_ps: u64,
}

impl Values {
    fn of(values_ps: impl Iterator<Item = u64>) -> Self {
        let mut values =
            Values { histogram: Histogram::new(), sum_ps: 0, min_ps: u64::MAX, max_ps: 0 };
        for ps in values_ps {
            values.histogram.record_ps(ps);
            values.sum_ps += ps;
            values.min_ps = values.min_ps.min(ps);
            values.max_ps = values.max_ps.max(ps);
        }
        values
    }

    fn summary(self) -> Summary {
        let count = self.histogram.count();
        Summary {
            count,
            mean_ns: self.sum_ps as f64 / 1000.0 / count.max(1) as f64,
            min_ns: self.min_ps as f64 / 1000.0,
            max_ns: self.max_ps as f64 / 1000.0,
            histogram: Some(self.histogram.packed()),
            ..Summary::default()
        }
    }
}

fn over(values_ps: impl Iterator<Item = u64>, limit_ps: u64) -> u64 {
    values_ps.filter(|ps| *ps > limit_ps).count() as u64
}

fn one_way(times: &[i64], clock_bound_ns: f64) -> Option<OneWayBlock> {
    if times.is_empty() {
        return None;
    }
    let mut histogram = Histogram::new();
    let mut negative = 0;
    for time in times {
        match u64::try_from(*time) {
            Ok(ps) => histogram.record_ps(ps),
            Err(_) => negative += 1,
        }
    }
    Some(OneWayBlock {
        histogram: histogram.packed(),
        negative: negative.into(),
        clock_bound_ns: clock_bound_ns.into(),
    })
}

fn same_cpu_share(lead: &[u32], follow: &[u32]) -> Option<f64> {
    let known: Vec<bool> = lead
        .iter()
        .zip(follow)
        .filter(|(lead, follow)| **lead != u32::MAX && **follow != u32::MAX)
        .map(|(lead, follow)| lead == follow)
        .collect();
    let same = known.iter().filter(|same| **same).count();
    (!known.is_empty()).then(|| same as f64 / known.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_samples_are_kept_whichever_block_they_came_in() {
        let mut longest = Longest::default();
        assert!((1..=64).all(|ps| longest.take(ps * 10)));
        assert!(!longest.take(10), "as short as the shortest");
        assert!(longest.take(11));
        assert!(!longest.take(11), "the shortest is 11 now, and it is no longer than that");
        assert!(longest.take(10_000));
    }

    #[test]
    fn one_way_times_that_are_negative_are_counted_and_not_clamped() {
        let block = one_way(&[1000, -5, 2000, -1], 3.0).unwrap();
        assert_eq!((block.histogram.count(), block.negative.get()), (2, 2));
        assert_eq!(one_way(&[], 3.0), None);
    }

    #[test]
    fn the_share_on_one_cpu_counts_exchanges() {
        assert_eq!(same_cpu_share(&[0, 0, 1, 1, 9], &[0, 1, 1, 0]), Some(0.5));
        assert_eq!(same_cpu_share(&[0], &[]), None);
        assert_eq!(
            same_cpu_share(&[u32::MAX, 1], &[u32::MAX, 1]),
            Some(1.0),
            "what is not known counts for nothing"
        );
    }
}
