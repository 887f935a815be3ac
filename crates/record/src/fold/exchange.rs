//! Round trips: the distribution from stamped blocks, means and medians from stretches.

use threadtoll_stats::resample;

use crate::{
    Block, BlockKind, Count, Figures, HandOffFigures, Histogram, LoopKind, OneWay, OneWayBlock,
    OneWayMethod, RecordKind, Warning,
};

use super::{
    AGREEMENT, Distribution, FoldedCell, Folding, cost, processes, quantiles_of, times, warnings,
};
use crate::limits::DRIFT;
use crate::quantile::{self, QuantileEstimate};
use crate::rounding::{round, rounded_ns};

pub(super) fn fold(folding: &Folding<'_>) -> FoldedCell {
    let distribution = Distribution::of(folding);
    let stretches = match folding.own_program() {
        Some(_) => median_of_blocks(folding),
        None => quantiles_of(folding.blocks(BlockKind::Stretch), &[0.5], folding.seed)[0],
    };
    let one_way = one_way(folding, distribution.p50(), stretches);
    let negative =
        one_way.negative.filter(|negative| *negative > 0).map(warnings::negative_one_way);
    let warnings =
        negative.into_iter().chain(disagreement(folding, stretches, &distribution)).collect();
    FoldedCell {
        loop_kind: LoopKind::Closed,
        kind: RecordKind::RoundTrip,
        count: distribution.count,
        one_way: Some(one_way),
        rate: None,
        cost: cost(folding.blocks(BlockKind::Stretch), 2.0),
        figures: Figures::HandOffs(HandOffFigures { same_cpu_share: distribution.same_cpu_share }),
        against: folding.compared(times),
        between_processes: None,
        warnings,
        distribution,
    }
}

/// Median of the blocks' means, for a program in another language. Such a program measures only one
/// stretch per block, too few for a quantile of stretches.
fn median_of_blocks(folding: &Folding<'_>) -> QuantileEstimate {
    let blocks = || folding.blocks(BlockKind::Stretch);
    let means: Vec<f64> = blocks().map(|block| block.mean.get()).collect();
    let median = resample::median_with_interval(&means, &processes(blocks()), folding.seed);
    QuantileEstimate {
        value: median.map(|(value, _)| value),
        interval95: median.and_then(|(_, interval)| interval),
    }
}

/// Warns if stretches and stamped blocks differ by more than is possible within one regime of the
/// machine. Both measure the same round trips in turn, so the cell has changed between these
/// blocks, although the reference has not.
fn disagreement(
    folding: &Folding<'_>,
    stretches: QuantileEstimate,
    stamped: &Distribution,
) -> Option<Warning> {
    let (median, mean) = (stamped.p50().value?, stamped.mean?.get());
    let [low, high] = stretches.interval95?;
    // The mean round trip of a stretch lies between the median and the mean of single round trips.
    // A stamp lengthens each single round trip by its own cost and by the stall of its fences.
    let shortest = (median.min(mean) - 4.0 * stamp_ns(folding)) / (1.0 + DRIFT);
    let longest = median.max(mean) * (1.0 + DRIFT);
    (high < shortest || low > longest)
        .then(|| warnings::stretches_disagree(stretches.value.unwrap_or(low), median))
}

fn stamp_ns(folding: &Folding<'_>) -> f64 {
    let clock = &folding.machine.clock;
    clock.step_ns.get() + clock.read_ns.get()
}

fn one_way(
    folding: &Folding<'_>,
    round_trip: QuantileEstimate,
    from_stretches: QuantileEstimate,
) -> OneWay {
    let seed = folding.seed;
    let stretches: Vec<&Block> = folding.blocks(BlockKind::Stretch).collect();
    let means: Vec<(f64, u64)> =
        stretches.iter().map(|block| (block.mean.get(), block.count.get())).collect();
    let mean = resample::mean_with_interval(&means, &processes(stretches.iter().copied()), seed);
    let direct: Vec<&OneWayBlock> =
        folding.blocks(BlockKind::Stamped).filter_map(directly).collect();
    let half = |estimate: QuantileEstimate| {
        (
            estimate.value.map(|value| value / 2.0),
            estimate.interval95.map(|[low, high]| [low / 2.0, high / 2.0]),
        )
    };
    // Stamps are too coarse if the step of the clock and the cost of a stamp together exceed 1% of
    // the median.
    let stamp_ns = stamp_ns(folding);
    let coarse = |median: Option<f64>| median.is_none_or(|median| stamp_ns > 0.01 * median);
    let (p50, method) = if coarse(half(round_trip).0) {
        (half(from_stretches), OneWayMethod::HalfRoundTrip)
    } else if !agreed(&direct, half(round_trip).0) {
        (half(round_trip), OneWayMethod::HalfRoundTrip)
    } else {
        let histograms: Vec<&Histogram> = direct.iter().map(|block| &block.histogram).collect();
        let direct = folding.blocks(BlockKind::Stamped).filter(|block| directly(block).is_some());
        let found = quantile::estimates(&histograms, &processes(direct), &[0.5], seed)[0];
        ((found.value, found.interval95), OneWayMethod::Stamped)
    };
    OneWay {
        mean: mean.map(|(mean, _)| round(mean / 2.0).into()),
        p50: p50.0.map(rounded_ns),
        method,
        mean_interval95: mean
            .and_then(|(_, interval)| interval)
            .map(|interval| interval.map(|value| round(value / 2.0).into())),
        p50_interval95: p50.1.map(|interval| interval.map(rounded_ns)),
        negative: (!direct.is_empty()).then(|| direct.iter().map(|block| block.negative).sum()),
        clock_bound_ns: direct
            .iter()
            .map(|block| block.clock_bound_ns.get())
            .max_by(f64::total_cmp)
            .map(rounded_ns),
    }
}

fn directly(block: &Block) -> Option<&OneWayBlock> {
    block.figures.hand_offs()?.one_way.as_ref()
}

/// Returns `true` if directly stamped times may be used: the clocks agree to within 5% of the
/// median, and at most one in a thousand times is negative.
fn agreed(direct: &[&OneWayBlock], median: Option<f64>) -> bool {
    let bound = direct.iter().map(|block| block.clock_bound_ns.get()).fold(0.0, f64::max);
    let negative: Count = direct.iter().map(|block| block.negative).sum();
    let times: u64 = direct.iter().map(|block| block.histogram.count()).sum();
    !direct.is_empty()
        && median.is_some_and(|median| bound <= AGREEMENT * median)
        && negative.get().saturating_mul(1000) <= times
}
