//! Folds the blocks of a group into its records.
//!
//! The same code serves whoever measured and whoever reads an interrupted file, so a record never
//! depends on who made it. The rules are those of `docs/method.md`: means, medians and ratios from
//! stretches, the distribution from stamped blocks, intervals from resampling blocks, ratios only
//! between blocks of one round, and never across a move of the reference.

mod contention;

use std::collections::BTreeMap;

use crate::resample::{self, QuantileEstimate};
use crate::{
    Against, Block, BlockKind, Cause, Cell, Cost, DisturbanceSummary, Foretold, Histogram,
    Intervals, LoopKind, Machine, OneWay, OneWayMethod, Origin, Over, Plan, PlannedCell, Quantiles,
    QueueSubject, Record, RecordKind, Subject, Unit, Verdict, Wait, Warning, Work, Worst,
};

/// The reference must stay within this share of its last value for the blocks between to count as
/// undisturbed.
pub const DRIFT: f64 = 0.10;
/// How many of the longest samples a record keeps.
pub const WORST: usize = 64;
/// Machines with more CPUs than this keep no histograms of matrix cells: a matrix of them would
/// fill the disk.
pub const MATRIX_HISTOGRAM_CPUS: u32 = 64;
/// What "no worse" allows.
pub const MARGIN: f64 = 1.05;
/// How many pairs a verdict needs.
pub const PAIRS: usize = 21;
/// The clocks of two CPUs must agree within this share of the median one-way time for it to be
/// stamped directly.
pub const AGREEMENT: f64 = 0.05;
/// The share of disturbed blocks from which a record warns.
pub const DISTURBED_SHARE: f64 = 0.25;

/// What ratios of hand-offs compare. It is always taken from stretches, also where the record's
/// median is one of stamped times: a ratio to another mechanism must not carry the cost of stamps.
const COMPARED: &str = "one_way.p50";
/// What ratios of streams compare.
const COMPARED_RATE: &str = "rate_per_s";
/// The experiment whose queue cells are streams: they have a rate and no round trips.
const STREAM: &str = "queue/stream";

const WANTED: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

/// Folds the blocks of one attempt at group `group`, in the order in which they were measured, into
/// a record for each cell that has any block. `foretold` is what was said of them before.
///
/// Blocks of other groups or attempts are the caller's mistake and are not looked for. `at` is
/// written into the records as the time of folding.
pub fn fold(
    machine: &Machine,
    plan: &Plan,
    group: usize,
    attempt: u32,
    blocks: &[Block],
    foretold: &[Foretold],
    at: &str,
) -> Vec<Record> {
    let Some(cells) = plan.groups.get(group) else { return Vec::new() };
    let moved = drifted(blocks);
    // How fast a line travels is nothing to threads that sleep.
    let sleeps = |block: &Block| {
        let subject = cells.get(block.cell).and_then(|planned| planned.cell.lock());
        subject.is_some_and(|subject| subject.work == Work::Sleep)
    };
    let drifted: Vec<bool> =
        blocks.iter().zip(&moved).map(|(block, moved)| *moved && !sleeps(block)).collect();
    let all: Vec<Marked<'_>> = blocks
        .iter()
        .zip(moved.iter().zip(&drifted))
        .map(|(block, (moved, drifted))| Marked { block, moved: *moved, drifted: *drifted })
        .collect();
    let mut records = Vec::new();
    for (index, planned) in cells.iter().enumerate() {
        let own: Vec<Marked<'_>> =
            all.iter().filter(|marked| marked.block.cell == index).copied().collect();
        if own.is_empty() {
            continue;
        }
        // Each cell resamples with a seed of its own, which a resumed run finds again.
        let seed = plan.seed ^ ((group as u64) << 20) ^ ((index as u64) << 8);
        let mut record = fold_cell(machine, plan, &own, seed);
        record.run.clone_from(&plan.run);
        record.at = at.to_string();
        record.group = group;
        record.attempt = attempt;
        record.experiment.clone_from(&planned.experiment);
        record.cell = planned.cell.clone();
        record.simulated = machine.simulated;
        if is_stream(planned) {
            fold_stream(&mut record, &own, seed);
        }
        if planned.cell.lock().is_some() {
            let told = foretold.iter().find(|foretold| foretold.cell == index);
            contention::fold_lock(&mut record, cells, index, &all, told, seed);
        }
        if !keeps_histograms(machine, &planned.experiment) {
            record.histogram = None;
        }
        let rates = is_stream(planned);
        for other in compared(cells, index) {
            let figures = Figures { rates, base_rates: is_stream(&cells[other]) };
            record.against.extend(ratio(blocks, &drifted, index, other, figures, seed).map(
                |found| Against {
                    cell: cells[other].cell.clone(),
                    of: if rates { COMPARED_RATE } else { COMPARED }.into(),
                    ratio: if rates { significant(found.0) } else { round(found.0) },
                    interval95: found.1.map(if rates { significant } else { round }),
                    blocks: found.2 as u32,
                    verdict: if rates {
                        verdict_of_rates(found.1, found.2)
                    } else {
                        verdict(found.1, found.2)
                    },
                },
            ));
        }
        records.push(record);
    }
    records
}

/// Whether a cell is a stream of messages, which has a rate. The reference in its group is not.
pub fn is_stream(planned: &PlannedCell) -> bool {
    planned.experiment == STREAM && planned.cell.queue().is_some()
}

/// The cells of a group that the cell `index` is compared with, the reference first.
///
/// A form that signals after unlocking, or is kept awake, is compared with the plain one. A queue
/// of ours is compared with everything in the group that waits as it does; where it may sleep but
/// hardly gets to, also with itself spinning; and its batches also with every bare copy. Who stands
/// together in a group is the plan's business.
pub fn compared(cells: &[PlannedCell], index: usize) -> Vec<usize> {
    let Some(planned) = cells.get(index).filter(|planned| planned.cell.lock().is_none()) else {
        return Vec::new();
    };
    let cell = &planned.cell;
    let like = |other: &Cell| match &cell.subject {
        Subject::Mechanism { .. } => partner(cell).as_ref() == Some(other),
        Subject::Queue(queue) => queue.origin == Origin::Ours && rivals(planned, queue, other),
        // What a lock is compared with has another figure: see `contention`.
        Subject::Lock(_) => false,
    };
    let others = (1..cells.len()).filter(|other| like(&cells[*other].cell));
    std::iter::once(0).chain(others).filter(|other| *other != index).collect()
}

/// The cell that this one is the other form of: signalled after unlocking, or kept awake.
fn partner(cell: &Cell) -> Option<Cell> {
    match cell.mechanism()?.strip_suffix("-after") {
        Some(plain) => Some(Cell { subject: Subject::mechanism(plain), ..cell.clone() }),
        None if cell.keep_awake => Some(Cell { keep_awake: false, ..cell.clone() }),
        None => None,
    }
}

/// Whether a cell with a queue of ours is compared with another one.
fn rivals(planned: &PlannedCell, queue: &QueueSubject, other: &Cell) -> bool {
    let cell = &planned.cell;
    let alike = cell.subject.family() == other.subject.family();
    let Some(rival) = other.queue() else { return alike };
    if rival.origin == Origin::Twin {
        return *rival == QueueSubject { origin: Origin::Twin, ..queue.clone() };
    }
    // A thread that sleeps at once does so for every single message that it waits for, but not in a
    // stream.
    let hardly_sleeps =
        queue.wait == Wait::Adaptive || queue.wait == Wait::Park && is_stream(planned);
    let itself_spinning = hardly_sleeps
        && *rival == QueueSubject { wait: Wait::Spin, ..queue.clone() }
        && other.placement == cell.placement;
    alike || itself_spinning || (queue.batch > 1 && rival.origin == Origin::Raw)
}

/// Whether files keep the histograms of an experiment on this machine.
pub fn keeps_histograms(machine: &Machine, experiment: &str) -> bool {
    experiment != "matrix" || machine.cpus <= MATRIX_HISTOGRAM_CPUS
}

/// A block and whether the reference moved around it.
#[derive(Clone, Copy)]
struct Marked<'a> {
    block: &'a Block,
    moved: bool,
    /// Whether that disturbed it.
    drifted: bool,
}

impl Marked<'_> {
    fn clean(&self) -> bool {
        self.block.clean && !self.drifted
    }
}

/// The figure of one block that ratios and drift are taken from: the median over its stretches.
fn stretch_median(block: &Block) -> Option<f64> {
    match block.kind {
        BlockKind::Stretch => block.histogram.as_ref()?.quantile_ns(0.5),
        BlockKind::Stamped => None,
    }
}

/// Tells for each block whether the reference moved by more than [`DRIFT`] between its neighbours
/// in time.
///
/// The reference's own blocks are never marked: each is a sound sample of the regime in which it
/// was taken.
pub fn drifted(blocks: &[Block]) -> Vec<bool> {
    let references: Vec<(usize, f64)> = blocks
        .iter()
        .enumerate()
        .filter(|(_, block)| block.cell == 0)
        .filter_map(|(at, block)| Some((at, stretch_median(block)?)))
        .collect();
    let mut drifted = vec![false; blocks.len()];
    for pair in references.windows(2) {
        let [(from, before), (to, after)] = [pair[0], pair[1]];
        if (after / before - 1.0).abs() > DRIFT || (before / after - 1.0).abs() > DRIFT {
            for (mark, block) in drifted[from..to].iter_mut().zip(&blocks[from..to]) {
                *mark = block.cell != 0;
            }
        }
    }
    drifted
}

/// Messages per nanosecond of a block of a stream.
fn rate(block: &Block) -> Option<f64> {
    let rate = block.count as f64 / block.elapsed_ns as f64;
    (block.kind == BlockKind::Stretch && rate.is_finite()).then_some(rate)
}

/// Which figures a ratio is of.
#[derive(Clone, Copy)]
struct Figures {
    /// Rates, not times.
    rates: bool,
    /// Whether the other cell has a rate; without one, its one-way time takes part as the time of
    /// one message.
    base_rates: bool,
}

/// The paired ratio of the cells `of` and `to`: median, interval, pairs. Null with fewer than two
/// pairs.
fn ratio(
    blocks: &[Block],
    drifted: &[bool],
    of: usize,
    to: usize,
    figures: Figures,
    seed: u64,
) -> Option<(f64, [f64; 2], usize)> {
    let by_round = |cell: usize, figure: &dyn Fn(&Block) -> Option<f64>| -> BTreeMap<u32, f64> {
        blocks
            .iter()
            .zip(drifted)
            .filter(|(block, drifted)| block.cell == cell && !**drifted)
            .filter_map(|(block, _)| Some((block.seq, figure(block)?)))
            .collect()
    };
    let one_a_hand_off = |block: &Block| Some(2.0 / stretch_median(block)?);
    let base = match (figures.rates, figures.base_rates) {
        (false, _) => by_round(to, &stretch_median),
        (true, true) => by_round(to, &rate),
        (true, false) => by_round(to, &one_a_hand_off),
    };
    let own = if figures.rates { by_round(of, &rate) } else { by_round(of, &stretch_median) };
    by_rounds(own, &base, seed)
}

/// The ratio of two cells' figures by round: median, interval, pairs. Null with fewer than two
/// pairs.
fn by_rounds(
    own: BTreeMap<u32, f64>,
    base: &BTreeMap<u32, f64>,
    seed: u64,
) -> Option<(f64, [f64; 2], usize)> {
    let ratios: Vec<f64> = own
        .into_iter()
        .filter_map(|(round, value)| Some(value / base.get(&round)?))
        .filter(|ratio| ratio.is_finite())
        .collect();
    if ratios.len() < 2 {
        return None;
    }
    let (median, interval) = resample::median(&ratios, seed)?;
    Some((median, interval, ratios.len()))
}

/// What an interval of paired ratios says.
pub fn verdict([low, high]: [f64; 2], pairs: usize) -> Verdict {
    if pairs < PAIRS {
        Verdict::Open
    } else if high < 1.0 {
        Verdict::Better
    } else if low > MARGIN {
        Verdict::Worse
    } else if high <= MARGIN {
        Verdict::NoWorse
    } else {
        Verdict::Open
    }
}

/// What an interval of paired ratios of rates says: more is better.
pub fn verdict_of_rates([low, high]: [f64; 2], pairs: usize) -> Verdict {
    verdict([1.0 / high, 1.0 / low], pairs)
}

/// What a stream has instead of round trips: its rate, the median over blocks, and the messages.
fn fold_stream(record: &mut Record, blocks: &[Marked<'_>], seed: u64) {
    let stretches = || {
        blocks.iter().map(|marked| marked.block).filter(|block| block.kind == BlockKind::Stretch)
    };
    let rates: Vec<f64> = stretches().filter_map(rate).map(|rate| rate * 1e9).collect();
    let found = resample::median(&rates, seed);
    let whole = |value: f64| value.round();
    record.loop_kind = LoopKind::Streaming;
    record.kind = RecordKind::Stream;
    record.count = stretches().map(|block| block.count).sum();
    record.rate_per_s = found.map(|(rate, _)| whole(rate));
    record.interval95.rate_per_s = found.map(|(_, interval)| interval.map(whole));
    record.one_way = None;
    // A message goes one way: the cost of a stream's block is of messages, that of an exchange's of
    // there and back.
    let twice = |value: Option<f64>| value.map(|value| significant(value * 2.0));
    let cost = record.cost;
    record.cost = Cost {
        user_ns_per_op: twice(cost.user_ns_per_op),
        system_ns_per_op: twice(cost.system_ns_per_op),
        voluntary_switches_per_op: twice(cost.voluntary_switches_per_op),
        involuntary_switches_per_op: twice(cost.involuntary_switches_per_op),
    };
    if record.cell.oversubscribed() {
        record.warnings.push(Warning::new(
            "oversubscribed",
            "More threads than CPUs took part: they took turns, and the scheduler's slices are part of the figure.",
        ));
    }
}

fn fold_cell(machine: &Machine, plan: &Plan, blocks: &[Marked<'_>], seed: u64) -> Record {
    let stretches: Vec<&Block> = blocks
        .iter()
        .map(|marked| marked.block)
        .filter(|block| block.kind == BlockKind::Stretch)
        .collect();
    let stamped: Vec<&Block> = blocks
        .iter()
        .map(|marked| marked.block)
        .filter(|block| block.kind == BlockKind::Stamped)
        .collect();
    let histograms: Vec<&Histogram> =
        stamped.iter().filter_map(|block| block.histogram.as_ref()).collect();
    let clean: Vec<&Histogram> = blocks
        .iter()
        .filter(|marked| marked.clean() && marked.block.kind == BlockKind::Stamped)
        .filter_map(|marked| marked.block.histogram.as_ref())
        .collect();
    let all = resample::quantiles(&histograms, &WANTED, seed);
    let undisturbed = if clean.len() == histograms.len() {
        all.clone()
    } else {
        resample::quantiles(&clean, &WANTED, seed)
    };
    let mut merged = Histogram::new();
    histograms.iter().for_each(|histogram| merged.add(histogram));
    let count: u64 = stamped.iter().map(|block| block.count).sum();
    let over: u64 = stamped.iter().filter_map(|block| block.over).sum();
    let disturbance = summary(blocks);
    let one_way = one_way(machine, &stretches, &stamped, all[0], seed);
    let mut worst: Vec<Worst> =
        stamped.iter().flat_map(|block| block.worst.iter().copied()).collect();
    worst.sort_by(|a, b| b.ns.total_cmp(&a.ns));
    worst.truncate(WORST);
    let same_cpu: Vec<(f64, u64)> =
        stamped.iter().filter_map(|block| Some((block.same_cpu_share?, block.count))).collect();
    let exchanges: u64 = same_cpu.iter().map(|(_, count)| count).sum();
    Record {
        run: String::new(),
        at: String::new(),
        group: 0,
        attempt: 0,
        experiment: String::new(),
        cell: plan.groups[0][0].cell.clone(),
        simulated: false,
        loop_kind: LoopKind::Closed,
        kind: RecordKind::RoundTrip,
        unit: Unit::Ns,
        count,
        mean: (count > 0).then(|| {
            round(
                stamped.iter().map(|block| block.mean * block.count as f64).sum::<f64>()
                    / count as f64,
            )
        }),
        min: stamped.iter().map(|block| block.min).min_by(f64::total_cmp).map(round),
        max: stamped.iter().map(|block| block.max).max_by(f64::total_cmp).map(round),
        quantiles: quantiles(&all),
        clean_quantiles: quantiles(&undisturbed),
        interval95: intervals(&all),
        resolution_ns: round(machine.clock.step_ns + machine.clock.read_ns),
        over: Over {
            limit_ns: plan.over_ns,
            share: (count > 0).then(|| over as f64 / count as f64),
        },
        rate_per_s: None,
        histogram: (!histograms.is_empty()).then(|| merged.packed()),
        cost: cost(&stretches),
        contention: None,
        same_cpu_share: (exchanges > 0).then(|| {
            round(
                same_cpu.iter().map(|(share, count)| share * *count as f64).sum::<f64>()
                    / exchanges as f64,
            )
        }),
        warnings: warnings(&disturbance, &one_way),
        one_way: Some(one_way),
        disturbance,
        worst,
        against: Vec::new(),
    }
}

fn one_way(
    machine: &Machine,
    stretches: &[&Block],
    stamped: &[&Block],
    round_trip: QuantileEstimate,
    seed: u64,
) -> OneWay {
    let means: Vec<(f64, u64)> = stretches.iter().map(|block| (block.mean, block.count)).collect();
    let mean = resample::mean(&means, seed);
    let direct: Vec<&crate::OneWayBlock> =
        stamped.iter().filter_map(|block| block.one_way.as_ref()).collect();
    let histograms: Vec<&Histogram> =
        stretches.iter().filter_map(|block| block.histogram.as_ref()).collect();
    let from_stretches = resample::quantiles(&histograms, &[0.5], seed)[0];
    let half = |estimate: QuantileEstimate| {
        (
            estimate.value.map(|value| value / 2.0),
            estimate.interval95.map(|[low, high]| [low / 2.0, high / 2.0]),
        )
    };
    // A stamp that quantises or lengthens the median by more than 1% has no say in it.
    let stamp_ns = machine.clock.step_ns + machine.clock.read_ns;
    let coarse = |median: Option<f64>| median.is_none_or(|median| stamp_ns > 0.01 * median);
    let (p50, method) = if coarse(half(round_trip).0) {
        (half(from_stretches), OneWayMethod::HalfRoundTrip)
    } else if !agreed(&direct, half(round_trip).0) {
        (half(round_trip), OneWayMethod::HalfRoundTrip)
    } else {
        let histograms: Vec<&Histogram> = direct.iter().map(|block| &block.histogram).collect();
        let found = resample::quantiles(&histograms, &[0.5], seed)[0];
        ((found.value, found.interval95), OneWayMethod::Stamped)
    };
    OneWay {
        mean: mean.map(|(mean, _)| round(mean / 2.0)),
        p50: p50.0.map(round),
        method,
        mean_interval95: mean
            .and_then(|(_, interval)| interval)
            .map(|interval| interval.map(|value| round(value / 2.0))),
        p50_interval95: p50.1.map(|interval| interval.map(round)),
        negative: (!direct.is_empty()).then(|| direct.iter().map(|block| block.negative).sum()),
        clock_bound_ns: direct
            .iter()
            .map(|block| block.clock_bound_ns)
            .max_by(f64::total_cmp)
            .map(round),
    }
}

/// Whether directly stamped times may speak: the clocks agree within 5% of the median, as it came
/// out in the end, and a negative time, which is no time, is rarer than one in a thousand.
fn agreed(direct: &[&crate::OneWayBlock], median: Option<f64>) -> bool {
    let bound = direct.iter().map(|block| block.clock_bound_ns).fold(0.0, f64::max);
    let negative: u64 = direct.iter().map(|block| block.negative).sum();
    let times: u64 = direct.iter().map(|block| block.histogram.count()).sum();
    !direct.is_empty()
        && median.is_some_and(|median| bound <= AGREEMENT * median)
        && negative * 1000 <= times
}

fn cost(stretches: &[&Block]) -> Cost {
    let operations = 2.0 * stretches.iter().map(|block| block.cost_round_trips).sum::<u64>() as f64;
    let per_op = |of: fn(&Block) -> u64| {
        (operations > 0.0).then(|| {
            significant(stretches.iter().map(|block| of(block)).sum::<u64>() as f64 / operations)
        })
    };
    Cost {
        user_ns_per_op: per_op(|block| block.cost.user_ns),
        system_ns_per_op: per_op(|block| block.cost.system_ns),
        voluntary_switches_per_op: per_op(|block| block.cost.voluntary_switches),
        involuntary_switches_per_op: per_op(|block| block.cost.involuntary_switches),
    }
}

fn summary(blocks: &[Marked<'_>]) -> DisturbanceSummary {
    let mut causes = BTreeMap::new();
    for marked in blocks {
        for cause in &marked.block.disturbance.causes {
            *causes.entry(*cause).or_insert(0) += 1;
        }
        if marked.drifted {
            *causes.entry(Cause::ReferenceDrift).or_insert(0) += 1;
        }
    }
    DisturbanceSummary {
        blocks: blocks.len() as u32,
        disturbed: blocks.iter().filter(|marked| !marked.clean()).count() as u32,
        causes,
    }
}

fn warnings(disturbance: &DisturbanceSummary, one_way: &OneWay) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if f64::from(disturbance.disturbed) > DISTURBED_SHARE * f64::from(disturbance.blocks) {
        warnings.push(Warning::new(
            "disturbed",
            format!("{} of {} blocks were disturbed.", disturbance.disturbed, disturbance.blocks),
        ));
    }
    if one_way.negative.is_some_and(|negative| negative > 0) {
        warnings.push(Warning::new(
            "negative-one-way",
            format!(
                "{} one-way times came out negative and are not counted: the clocks of the two CPUs disagree.",
                one_way.negative.unwrap_or(0)
            ),
        ));
    }
    warnings
}

fn quantiles(found: &[QuantileEstimate]) -> Quantiles {
    let value = |index: usize| found[index].value.map(round);
    Quantiles { p50: value(0), p90: value(1), p99: value(2), p999: value(3), p9999: value(4) }
}

fn intervals(found: &[QuantileEstimate]) -> Intervals {
    let value = |index: usize| found[index].interval95.map(|interval| interval.map(round));
    Intervals {
        p50: value(0),
        p90: value(1),
        p99: value(2),
        p999: value(3),
        p9999: value(4),
        rate_per_s: None,
    }
}

/// Keeps picoseconds: more digits than a histogram holds would only pretend.
fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// Keeps four significant digits: costs per operation span nine orders of magnitude.
fn significant(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10f64.powi(3 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}
