//! Open loops: the distribution of delivery times from stamped blocks, and the rate at which the
//! queue kept up.

use threadtoll_stats::resample::{self, Processes};

use crate::{
    Block, BlockKind, Burst, Count, Figures, Funnel, Histogram, Idle, Kind, Lateness, LoopKind,
    OpenLoop, OpenLoopBlock, OpenLoopFigures, RecordKind, Warning,
};

use super::{
    AGREEMENT, ComparedFigure, Distribution, FoldedCell, Folding, cost, oversubscribed, processes,
    stretch_median, warnings,
};
use super::{distribution, send_call};
use crate::rounding::{rounded_ns, significant};

/// Smallest fraction of the due messages that a queue must transfer to count as keeping up.
const KEEPS_UP: f64 = 0.95;
/// Minimum number of undisturbed blocks for ignoring the disturbed ones. While a thread has lost
/// its CPU for milliseconds, messages stay unreceived, however fast the queue is.
const ENOUGH: usize = 6;
/// The generator was the limit if the sender's lateness exceeds this fraction of the delivery time,
/// or if a stamp exceeds this fraction of the time per message.
const OWN: f64 = 0.25;

pub(super) fn fold(folding: &Folding<'_>) -> FoldedCell {
    let distribution = Distribution::of(folding);
    let (open_loop, limit) = open_loop(folding, &distribution);
    let stamped = || {
        let blocks = folding.blocks(BlockKind::Stamped);
        blocks.filter_map(|block| Some((block.process, block.figures.open_loop()?)))
    };
    let seed = folding.seed;
    let bursts = stamped().filter_map(|(process, own)| Some((process, own.burst?)));
    let funnels = stamped().filter_map(|(process, own)| Some((process, own.funnel.as_ref()?)));
    let burst = Burst::of(bursts, seed);
    let lost = send_call::lost(folding);
    let warnings = limit
        .into_iter()
        .chain(apart(&open_loop, &distribution))
        .chain(oversubscribed(folding.cell()))
        .collect();
    let compared = if burst.is_some() { until_last } else { deliveries };
    FoldedCell {
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
            funnel: Funnel::of(funnels, seed),
            idle: Idle::of(stamped().filter_map(|(_, own)| own.idle.as_ref())),
        }),
        against: folding.compared(compared),
        between_processes: None,
        warnings,
        distribution,
    }
}

/// Figure of a block for ratios: the time from when a burst was due until its last message was
/// received or, without bursts, the median delivery time.
pub(super) fn time(block: &Block) -> Option<f64> {
    match block.figures.open_loop()?.burst {
        Some(burst) => Some(burst.last_ns.get()),
        None => block.histogram.as_ref()?.quantile_ns(0.5),
    }
}

/// Figure for ratios of a cell without deliveries: half of the median round trip.
fn hand_off(block: &Block) -> Option<f64> {
    Some(stretch_median(block)? / 2.0)
}

fn deliveries(other: Kind) -> ComparedFigure {
    let base = if other == Kind::OpenLoop { time } else { hand_off };
    ComparedFigure { of: "quantiles.p50", own: time, base, more_is_better: false }
}

fn until_last(other: Kind) -> ComparedFigure {
    ComparedFigure { of: "burst.last_ns", ..deliveries(other) }
}

/// The figures, and a warning if the generator limited them.
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
    let lateness = distribution::lateness(&histograms, &of_process, folding.seed);
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

/// Fraction of the due messages that were received by the end of a block's window: the median over
/// blocks, with its interval.
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

/// Warns if stamps limit the rate. The generator of a saturated queue does nothing but make send
/// calls and take stamps.
fn stamps_limit(folding: &Folding<'_>, rate: Option<f64>) -> Option<Warning> {
    let share = folding.machine.clock.read_ns.get() * rate? / 1e9;
    let which =
        format!("Reading the clock takes {:.0}% of the time between messages", share * 100.0);
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
                "{name} left the sender {own:.0} ns or more too late, compared with a delivery \
                 time of {whole:.0} ns"
            ))
        })
}

fn apart(open_loop: &OpenLoop, distribution: &Distribution) -> Option<Warning> {
    let (bound, median) = (open_loop.clock_bound_ns?.get(), distribution.p50().value?);
    (bound > AGREEMENT * median).then(|| warnings::clocks_apart(bound, median))
}
