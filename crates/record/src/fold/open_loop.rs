//! Open loops: the distribution of delivery times from stamped blocks, and the rate that the queue
//! kept up with.

use crate::resample::Processes;
use crate::{
    Block, BlockKind, Burst, BurstBlock, Count, Figures, Histogram, Kind, Lateness, LoopKind, Ns,
    OpenLoop, OpenLoopBlock, OpenLoopFigures, RecordKind, Warning, resample,
};

use super::{
    AGREEMENT, Comparison, Distribution, Folding, Outcome, QUANTILES, cost, oversubscribed,
    processes, quantiles, rounded_ns, significant, stretch_median, warnings,
};
use super::{rare, send_call, shares};

/// Largest share of the messages that are due which a queue that keeps up may leave unreceived.
const KEEPS_UP: f64 = 0.95;
/// Undisturbed blocks that are enough to judge by, without the others: an end that loses its CPU
/// for milliseconds leaves messages unreceived, whatever the queue.
const ENOUGH: usize = 6;
/// Largest share of the delivery time that the sender's lateness may be, and of the time per
/// message that a stamp may take.
const OWN: f64 = 0.25;

pub(super) fn fold(folding: &Folding<'_>) -> Outcome {
    let distribution = Distribution::of(folding);
    let (open_loop, limit) = open_loop(folding, &distribution);
    let burst = burst(folding);
    let lost = send_call::lost(folding);
    let warnings = limit
        .into_iter()
        .chain(apart(&open_loop, &distribution))
        .chain(oversubscribed(folding.cell()))
        .collect();
    let compared = if burst.is_some() { bursts } else { deliveries };
    Outcome {
        loop_kind: LoopKind::Open,
        kind: RecordKind::Delivery,
        count: distribution.count,
        one_way: None,
        rate: None,
        cost: cost(folding.blocks(BlockKind::Stamped), 1.0),
        figures: Figures::OpenLoop(OpenLoopFigures {
            open_loop,
            burst,
            refused: lost.map(|lost| lost.refused),
            dropped: lost.map(|lost| lost.dropped),
            funnel: shares::funnel(folding),
            idle: rare::idle(folding),
        }),
        against: folding.compared(compared),
        between_processes: None,
        warnings,
        distribution,
    }
}

/// The figure of a block that ratios use: the time until the last message of a burst was received,
/// or the median delivery time.
pub(super) fn time(block: &Block) -> Option<f64> {
    match block.figures.open_loop()?.burst {
        Some(burst) => Some(burst.last_ns.get()),
        None => block.histogram.as_ref()?.quantile_ns(0.5),
    }
}

/// A cell without deliveries gives the time of its hand-offs.
fn hand_off(block: &Block) -> Option<f64> {
    Some(stretch_median(block)? / 2.0)
}

fn deliveries(other: Kind) -> Comparison {
    let base = if other == Kind::OpenLoop { time } else { hand_off };
    Comparison { of: "quantiles.p50", own: time, base, more_is_better: false }
}

fn bursts(other: Kind) -> Comparison {
    Comparison { of: "burst.last_ns", ..deliveries(other) }
}

/// The figures, and the warning that the generator was the limit.
fn open_loop(folding: &Folding<'_>, distribution: &Distribution) -> (OpenLoop, Option<Warning>) {
    let blocks: Vec<(&Block, &OpenLoopBlock)> = folding
        .blocks(BlockKind::Stamped)
        .filter_map(|block| Some((block, &block.figures.open_loop()?.open_loop)))
        .collect();
    let of_process = processes(blocks.iter().map(|(block, _)| *block));
    let sum = |of: fn(&OpenLoopBlock) -> Count| {
        blocks.iter().map(|(_, block)| of(block)).sum::<Count>().as_f64()
    };
    let median = |of: &dyn Fn(&OpenLoopBlock) -> f64| {
        let values: Vec<f64> = blocks.iter().map(|(_, block)| of(block)).collect();
        resample::median_with_interval(&values, &of_process, folding.seed)
    };
    let per_s =
        |count: Count, block: &OpenLoopBlock| count.as_f64() / block.window_ns.as_f64() * 1e9;
    let achieved = median(&|block| per_s(block.received, block));
    let saturated = kept_up(folding)
        .is_some_and(|(share, interval)| interval.map_or(share, |[_, high]| high) < KEEPS_UP);
    let histograms: Vec<&Histogram> = blocks.iter().map(|(_, block)| &block.lateness).collect();
    let lateness = resample::quantiles(&histograms, &of_process, &QUANTILES, folding.seed);
    let mut merged = Histogram::new();
    histograms.iter().for_each(|histogram| merged.add(histogram));
    let lateness = Lateness {
        quantiles: quantiles(&lateness),
        histogram: (merged.count() > 0).then(|| merged.packed()),
    };
    let cpu = cpu(&blocks, &of_process, folding.seed);
    let rate = achieved.map(|(rate, _)| significant(rate));
    let interval = achieved
        .and_then(|(_, interval)| interval)
        .map(|bounds| bounds.map(|bound| significant(bound).into()));
    let has_burst =
        |(block, _): &(&Block, _)| block.figures.open_loop().is_some_and(|own| own.burst.is_some());
    let limit = if saturated || blocks.iter().any(has_burst) {
        stamps_limit(folding, rate)
    } else {
        late(&lateness, distribution)
    };
    let window_ns = sum(|block| block.window_ns);
    let open_loop = OpenLoop {
        rate_per_s: (window_ns > 0.0)
            .then(|| significant(sum(|block| block.due) / window_ns * 1e9).into()),
        achieved_per_s: rate.map(Into::into),
        achieved_interval95: interval,
        saturated,
        saturated_at_per_s: rate.filter(|_| saturated).map(Into::into),
        saturated_at_interval95: interval.filter(|_| saturated),
        generator_was_limit: limit.is_some(),
        cpu_ns_per_message: cpu.map(|(mean, _)| significant(mean).into()),
        cpu_interval95: cpu
            .and_then(|(_, interval)| interval)
            .map(|bounds| bounds.map(|bound| significant(bound).into())),
        clock_bound_ns: blocks
            .iter()
            .filter_map(|(_, block)| Some(block.clock_bound_ns?.get()))
            .max_by(f64::total_cmp)
            .map(rounded_ns),
        lateness,
    };
    (open_loop, limit)
}

/// CPU time of a message, with its interval.
fn cpu(
    blocks: &[(&Block, &OpenLoopBlock)],
    of_process: &Processes,
    seed: u64,
) -> Option<(f64, Option<[f64; 2]>)> {
    let means: Vec<(f64, u64)> = blocks
        .iter()
        .filter(|(_, block)| block.busy_messages > 0)
        .map(|(_, block)| {
            let messages = block.busy_messages.get();
            (block.busy_ns.as_f64() / messages as f64, messages)
        })
        .collect();
    resample::mean_with_interval(&means, of_process, seed)
}

/// Share of the messages that were due which were received meanwhile, with its interval.
fn kept_up(folding: &Folding<'_>) -> Option<(f64, Option<[f64; 2]>)> {
    let (clean, disturbed): (Vec<_>, Vec<_>) = folding
        .own()
        .filter_map(|marked| Some((marked, &marked.block.figures.open_loop()?.open_loop)))
        .partition(|(marked, _)| marked.clean());
    let judged = if clean.len() < ENOUGH { [clean, disturbed].concat() } else { clean };
    let share = |block: &OpenLoopBlock| block.received.as_f64() / block.due.as_f64();
    let shares: Vec<f64> = judged.iter().map(|(_, block)| share(block)).collect();
    let of_process = processes(judged.iter().map(|(marked, _)| marked.block));
    resample::median_with_interval(&shares, &of_process, folding.seed)
}

/// Stamps are what a saturated generator does in addition to its send calls.
fn stamps_limit(folding: &Folding<'_>, rate: Option<f64>) -> Option<Warning> {
    let share = folding.machine.clock.read_ns.get() * rate? / 1e9;
    let which =
        format!("A stamp takes {:.0}% of the time from one message to the next", share * 100.0);
    (share > OWN).then(|| warnings::generator_was_limit(which))
}

fn late(lateness: &Lateness, distribution: &Distribution) -> Option<Warning> {
    let own = [lateness.quantiles.p50, lateness.quantiles.p99];
    let whole = [distribution.all[0].value, distribution.all[2].value];
    let names = ["Half of the messages", "One message in a hundred"];
    let each = names.into_iter().zip(own).zip(whole);
    each.filter_map(|((name, own), whole)| Some((name, own?.get(), whole?)))
        .find(|(_, own, whole)| *own > OWN * whole)
        .map(|(name, own, whole)| {
            warnings::generator_was_limit(format!(
                "{name} lost {own:.0} ns or more to the sender itself, of {whole:.0} ns until the \
                 receiver had it"
            ))
        })
}

fn apart(open_loop: &OpenLoop, distribution: &Distribution) -> Option<Warning> {
    let (bound, median) = (open_loop.clock_bound_ns?.get(), distribution.p50().value?);
    (bound > AGREEMENT * median).then(|| warnings::clocks_apart(bound, median))
}

fn burst(folding: &Folding<'_>) -> Option<Burst> {
    let blocks: Vec<(&Block, BurstBlock)> = folding
        .blocks(BlockKind::Stamped)
        .filter_map(|block| Some((block, block.figures.open_loop()?.burst?)))
        .collect();
    if blocks.is_empty() {
        return None;
    }
    let of_process = processes(blocks.iter().map(|(block, _)| *block));
    let median = |of: fn(&BurstBlock) -> Ns| {
        let values: Vec<f64> = blocks.iter().map(|(_, burst)| of(burst).get()).collect();
        resample::median_with_interval(&values, &of_process, folding.seed)
    };
    let figure = |of| median(of).map(|(figure, _)| rounded_ns(figure));
    let sum =
        |of: fn(&BurstBlock) -> Count| blocks.iter().map(|(_, burst)| of(burst)).sum::<Count>();
    let bursts = sum(|burst| burst.bursts).as_f64();
    Some(Burst {
        first_ns: figure(|burst| burst.first_ns),
        last_ns: figure(|burst| burst.last_ns),
        last_interval95: median(|burst| burst.last_ns)
            .and_then(|(_, interval)| interval)
            .map(|interval| interval.map(rounded_ns)),
        drain_ns: figure(|burst| burst.drain_ns),
        next_found_empty: (bursts > 0.0)
            .then(|| (sum(|burst| burst.found_empty).as_f64() / bursts).min(1.0).into()),
    })
}
