//! What no honest line says. A file may come from anywhere, and what is let in here is summed,
//! sorted, drawn on logarithmic axes and printed without another look.

use crate::plan::{MAX_CELLS_IN_GROUP, MAX_ROUNDS};
use crate::{
    Block, Cell, CellPrediction, Contention, Cost, Machine, Plan, Quantiles, Record, RecordKind,
    Warning, fold,
};

/// Texts of ours are short; longer ones would only flood a terminal.
const MAX_TEXT: usize = 10_000;
/// Counts and nanoseconds of a block: five hours, or as many round trips. A plan's worth of blocks
/// still sums to less than 2⁶⁴.
const MAX_IN_BLOCK: u64 = 1 << 44;
/// The same of a record.
const MAX_IN_RECORD: u64 = 1 << 50;
/// Nanoseconds of a single value: longer than any run.
const MAX_NS: f64 = 1e18;

/// Messages of a batch, and words of a block that is copied.
const MAX_IN_BATCH: u64 = 1 << 32;
/// Threads that send.
const MAX_SENDERS: u32 = 1 << 16;

/// Says what is wrong with the machine, or nothing.
pub(super) fn machine_fault(machine: &Machine) -> Option<String> {
    let clock = &machine.clock;
    if ![clock.step_ns, clock.read_ns, clock.tick_ns].into_iter().all(is_time) {
        return Some("the clock of the machine is impossible".into());
    }
    if machine.cpus as usize != machine.topology.len() || machine.cpus == 0 {
        return Some("the machine's number of CPUs is not that of its topology".into());
    }
    if !machine.topology.is_sorted_by(|a, b| a.cpu < b.cpu)
        || !machine.allowed.is_sorted_by(|a, b| a < b)
    {
        return Some("the machine's CPUs are not in ascending order".into());
    }
    if !machine.noise.iter().all(|noise| is_share(noise.lost_share))
        || !machine.quota_cpus.is_none_or(is_time)
    {
        return Some("the noise or the quota of the machine is impossible".into());
    }
    let texts =
        [&machine.cpu, &machine.tool, &machine.kernel, &machine.run, &machine.at, &machine.arch];
    let more = [&machine.governor, &machine.virtualised, &machine.idle_driver];
    let mut texts = texts.into_iter().chain(more.into_iter().flatten());
    if !texts.all(|text| is_short(text)) || !warnings_are_short(&machine.warnings) {
        return Some("a text about the machine is far too long".into());
    }
    None
}

/// Says what is wrong with the texts of a plan, or nothing; see [`Plan::fault`] for its structure.
pub(super) fn plan_fault(plan: &Plan) -> Option<String> {
    let refused = plan.refused.iter().flat_map(|refused| [&refused.what, &refused.why]);
    let planned = || plan.groups.iter().flatten();
    let mut texts = plan.command.iter().chain(refused);
    if !texts.all(|text| is_short(text)) || !planned().all(|planned| texts_are_short(&planned.cell))
    {
        return Some("a text of the plan is far too long".into());
    }
    (!planned().all(|planned| is_cell(&planned.cell)))
        .then(|| "a cell of the plan is impossible".into())
}

/// Says what is wrong with a block by itself, or nothing.
pub(super) fn block_fault(block: &Block) -> Option<&'static str> {
    let one_way = block.one_way.as_ref();
    let figures =
        [block.mean, block.min, block.max, one_way.map_or(0.0, |one_way| one_way.clock_bound_ns)];
    let share = block.same_cpu_share.is_none_or(is_share);
    if block.count == 0 || !share || !figures.into_iter().all(is_time) {
        return Some("the figures of the block are impossible");
    }
    let counts = [
        block.count,
        block.cost_round_trips,
        block.elapsed_ns,
        block.cost.user_ns,
        block.cost.system_ns,
    ];
    let more =
        [block.cost.voluntary_switches, block.cost.involuntary_switches, block.over.unwrap_or(0)];
    let negative = one_way.map_or(0, |one_way| one_way.negative);
    if counts.into_iter().chain(more).chain([negative]).any(|value| value > MAX_IN_BLOCK) {
        return Some("the figures of the block are impossibly large");
    }
    if let Some(contention) = &block.contention {
        let seen = contention.seen.unwrap_or_default();
        let times = [contention.work, seen.wait_ns, seen.hold_ns, seen.think_ns, seen.starved_ns];
        // The clocks of two CPUs may disagree, and hand-offs then come out negative.
        let handed = is_time(seen.handoff_ns.abs()) && seen.handoffs <= block.count;
        let sum =
            contention.acquisitions.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
        let most = contention.acquisitions.len() as u64 * block.count;
        let queued =
            seen.queue_on_entry <= most && seen.queue_max as usize <= contention.acquisitions.len();
        if !times.into_iter().all(is_time) || !handed || sum != block.count || !queued {
            return Some("what the block says of its lock is impossible");
        }
    }
    if block.histogram.as_ref().is_some_and(|histogram| histogram.count() > block.count) {
        return Some("the histogram of the block holds more values than the block");
    }
    if block.over.is_some_and(|over| over > block.count) {
        return Some("more values of the block are over the limit than it has");
    }
    let plausible = |worst: &crate::Worst| is_time(worst.ns) && is_time(worst.at_s);
    if block.worst.len() > fold::WORST || !block.worst.iter().all(plausible) {
        return Some("the longest samples of the block are impossible");
    }
    None
}

/// Says what is wrong with a record by itself, or nothing.
pub(super) fn record_fault(record: &Record) -> Option<&'static str> {
    let warnings = record.warnings.len() <= 100 && warnings_are_short(&record.warnings);
    if record.worst.len() > fold::WORST || record.against.len() > MAX_CELLS_IN_GROUP || !warnings {
        return Some("the record is impossibly large");
    }
    if record
        .against
        .iter()
        .any(|against| !is_short(&against.of) || !texts_are_short(&against.cell))
    {
        return Some("a text of the record is far too long");
    }
    if !record.against.iter().all(|against| is_cell(&against.cell)) {
        return Some("a cell of the record is impossible");
    }
    let negative = record.one_way.as_ref().and_then(|one_way| one_way.negative).unwrap_or(0);
    if record.count > MAX_IN_RECORD || negative > MAX_IN_RECORD {
        return Some("the figures of the record are impossibly large");
    }
    let shares = [record.over.share, record.same_cpu_share];
    let times = times(record).into_iter().flatten();
    let ratios = record.against.iter().flat_map(|against| {
        let [low, high] = against.interval95;
        [against.ratio, low, high]
    });
    let worst = record.worst.iter().flat_map(|worst| [worst.ns, worst.at_s]);
    if !shares.into_iter().flatten().all(is_share) || !times.chain(ratios).chain(worst).all(is_time)
    {
        return Some("the figures of the record are impossible");
    }
    if (record.kind == RecordKind::Wait) != record.contention.is_some()
        || record.contention.as_ref().is_some_and(|contention| !is_contention(contention))
    {
        return Some("what the record says of its lock is impossible");
    }
    if record.kind == RecordKind::RoundTrip && record.one_way.is_none() {
        return Some("the figures of the record are impossible: it has no one-way times");
    }
    let disturbance = &record.disturbance;
    let counted = disturbance.causes.values().chain([&disturbance.disturbed]);
    if disturbance.blocks > 2 * MAX_ROUNDS
        || counted.into_iter().any(|count| *count > disturbance.blocks)
    {
        return Some("the record counts more disturbed blocks than there are");
    }
    None
}

/// Says what is wrong with a prediction by itself, or nothing.
pub(super) fn prediction_fault(prediction: &CellPrediction) -> Option<&'static str> {
    (!is_prediction(prediction)).then_some("the figures of the prediction are impossible")
}

fn is_prediction(prediction: &CellPrediction) -> bool {
    let from = &prediction.from;
    let times = [
        prediction.speedup,
        prediction.queue_mean,
        prediction.queue_on_entry,
        from.hold_ns,
        from.think_ns,
    ];
    let more = [from.alone_ns, from.handoff_ns, from.pair_ns];
    let maybe = [prediction.total_s, from.spin_ns, from.takeover_ns];
    times.into_iter().chain(more).chain(maybe.into_iter().flatten()).all(is_time)
        && is_share(prediction.wait_share)
        && prediction
            .speedup_interval99
            .is_none_or(|interval| interval.into_iter().all(f64::is_finite))
        && is_short(&prediction.model)
        && is_short(&prediction.why)
        && is_short(&prediction.at)
}

fn is_contention(contention: &Contention) -> bool {
    let shares = [contention.hold_share, contention.wait_share, contention.fairness];
    let times = [
        contention.speedup,
        contention.queue_mean,
        contention.queue_on_entry,
        contention.starved_ns,
    ];
    let more = [contention.hold_ns, contention.think_ns, contention.total_s];
    let intervals = [contention.speedup_interval95, contention.total_s_interval95];
    let handoff = contention.handoff_ns.is_none_or(|ns| is_time(ns.abs()));
    shares.into_iter().flatten().all(is_share)
        && times.into_iter().chain(more).flatten().all(is_time)
        && intervals.into_iter().flatten().flatten().all(is_time)
        && is_time(contention.locks_per_s)
        && (1..=MAX_SENDERS).contains(&contention.threads)
        && handoff
        && contention.predicted.as_ref().is_none_or(is_prediction)
}

/// Every figure of a record that is a time or a rate.
fn times(record: &Record) -> Vec<Option<f64>> {
    let Quantiles { p50, p90, p99, p999, p9999 } = record.quantiles;
    let clean = record.clean_quantiles;
    let Cost {
        user_ns_per_op,
        system_ns_per_op,
        voluntary_switches_per_op,
        involuntary_switches_per_op,
    } = record.cost;
    let one_way = record.one_way.as_ref();
    let spread = &record.interval95;
    let intervals =
        [spread.p50, spread.p90, spread.p99, spread.p999, spread.p9999, spread.rate_per_s];
    let one_way_intervals =
        one_way.into_iter().flat_map(|one_way| [one_way.mean_interval95, one_way.p50_interval95]);
    let intervals = intervals.into_iter().chain(one_way_intervals);
    let mut times =
        vec![record.mean, record.min, record.max, Some(record.resolution_ns), record.rate_per_s];
    if let Some(one_way) = one_way {
        times.extend([one_way.mean, one_way.p50, one_way.clock_bound_ns]);
    }
    times.extend([p50, p90, p99, p999, p9999]);
    times.extend([clean.p50, clean.p90, clean.p99, clean.p999, clean.p9999]);
    times.extend([
        user_ns_per_op,
        system_ns_per_op,
        voluntary_switches_per_op,
        involuntary_switches_per_op,
    ]);
    times.extend(intervals.flatten().flatten().map(Some));
    times
}

fn is_time(value: f64) -> bool {
    (0.0..=MAX_NS).contains(&value)
}

fn is_share(value: f64) -> bool {
    (0.0..=1.0).contains(&value)
}

fn is_short(text: &str) -> bool {
    text.len() <= MAX_TEXT
}

fn texts_are_short(cell: &Cell) -> bool {
    is_short(cell.name()) && cell.queue().is_none_or(|queue| is_short(&queue.version))
}

fn is_cell(cell: &Cell) -> bool {
    cell.queue().is_none_or(|queue| {
        (1..=MAX_IN_BATCH).contains(&queue.batch) && (1..=MAX_SENDERS).contains(&queue.senders)
    }) && cell.lock().is_none_or(|lock| {
        (1..=MAX_SENDERS).contains(&lock.threads)
            && (1..=MAX_IN_BLOCK).contains(&lock.cycle_ns())
            && lock.tasks.is_none_or(|tasks| (1..=MAX_IN_BLOCK).contains(&tasks))
    })
}

fn warnings_are_short(warnings: &[Warning]) -> bool {
    warnings.iter().all(|warning| is_short(&warning.code) && is_short(&warning.text))
}
