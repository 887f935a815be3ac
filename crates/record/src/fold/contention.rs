//! What the blocks of a lock fold into: waits instead of round trips, and the speed-up over one
//! thread alone.

use std::collections::BTreeMap;

use crate::resample;
use crate::{
    Against, Block, BlockKind, Contention, ContentionBlock, ContentionSeen, Cost, Foretold,
    LockSubject, LoopKind, PlannedCell, Record, RecordKind, Warning,
};

use super::{Marked, by_rounds, round, significant, verdict_of_rates};

/// What speed-ups compare.
const COMPARED_WORK: &str = "work_per_s";

/// Which blocks of a cell its rates come from: those without stamps where there are any.
fn rate_kind(planned: &PlannedCell) -> BlockKind {
    planned.budget.kinds().first().copied().unwrap_or(BlockKind::Stretch)
}

/// Work per nanosecond of a block.
fn work_rate(block: &Block) -> Option<f64> {
    let rate = block.contention.as_ref()?.work / block.elapsed_ns as f64;
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

/// Work per nanosecond of one thread alone on these CPUs, where it is told apart by CPU, or
/// wherever it was.
fn alone_rate(block: &Block, alone: &[u32], cpus: &[u32]) -> Option<f64> {
    let by_cpu = &block.contention.as_ref()?.work_by_cpu;
    let rates: Vec<f64> = alone
        .iter()
        .zip(by_cpu)
        .filter(|(cpu, _)| cpus.contains(cpu))
        .map(|(_, rate)| *rate)
        .collect();
    if rates.is_empty() {
        return work_rate(block);
    }
    let rate = rates.iter().sum::<f64>() / rates.len() as f64;
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

/// The cell of a group that a lock's speed-up is against.
pub(super) fn alone(cells: &[PlannedCell], subject: &LockSubject) -> Option<usize> {
    cells.iter().position(|other| other.cell.lock().is_some_and(|other| subject.is_against(other)))
}

/// Makes a record of round trips one of waits for a lock.
pub(super) fn fold_lock(
    record: &mut Record,
    cells: &[PlannedCell],
    index: usize,
    all: &[Marked<'_>],
    foretold: Option<&Foretold>,
    seed: u64,
) {
    let planned = &cells[index];
    let Some(subject) = planned.cell.lock() else { return };
    let kind = rate_kind(planned);
    let own = || all.iter().filter(|marked| marked.block.cell == index).map(|marked| marked.block);
    let of_rate = || own().filter(|block| block.kind == kind);
    let rates: Vec<f64> =
        of_rate().map(|block| block.count as f64 / block.elapsed_ns as f64 * 1e9).collect();
    let found = resample::median(&rates, seed);
    record.loop_kind = LoopKind::Closed;
    record.kind = RecordKind::Wait;
    record.one_way = None;
    record.rate_per_s = found.map(|(rate, _)| significant(rate));
    record.interval95.rate_per_s = found.map(|(_, interval)| interval.map(significant));
    record.cost = cost(of_rate());
    record.against.extend(reference(all, index, kind, &cells[0], seed));
    let paired = alone(cells, subject).and_then(|alone| {
        let of = rate_kind(&cells[alone]);
        let (here, there) = (&planned.cell.cpus, &cells[alone].cell.cpus);
        let rate_alone = |block: &Block| alone_rate(block, there, here);
        let (ratio, interval, pairs) = paired(
            all,
            |marked| !marked.drifted,
            ((index, kind), &work_rate),
            ((alone, of), &rate_alone),
            seed,
        )?;
        record.against.push(Against {
            cell: cells[alone].cell.clone(),
            of: COMPARED_WORK.into(),
            ratio: significant(ratio),
            interval95: interval.map(significant),
            blocks: pairs as u32,
            verdict: verdict_of_rates(interval, pairs),
        });
        Some((ratio, interval))
    });
    let seen = summed(own());
    let totals: Vec<f64> = match subject.tasks {
        Some(_) => of_rate().map(|block| block.elapsed_ns as f64 / 1e9).collect(),
        None => Vec::new(),
    };
    let total = resample::median(&totals, seed);
    let mut contention = Contention {
        threads: subject.threads,
        hold_share: Some(significant(subject.hold_share())),
        locks_per_s: significant(1e9 / subject.cycle_ns().max(1) as f64),
        speedup: paired.map(|(ratio, _)| significant(ratio)),
        speedup_interval95: paired.map(|(_, interval)| interval.map(significant)),
        wait_share: None,
        queue_mean: None,
        queue_on_entry: None,
        queue_max: None,
        fairness: fairness(own(), subject.threads).map(significant),
        starved_ns: None,
        handoff_ns: None,
        hold_ns: None,
        think_ns: None,
        total_s: total.map(|(total, _)| significant(total)),
        total_s_interval95: total.map(|(_, interval)| interval.map(significant)),
        predicted: foretold.cloned(),
    };
    if let Some(Seen { sum, elapsed_ns, acquisitions }) = seen {
        let each = |ns: f64| (acquisitions > 0).then(|| round(ns / acquisitions as f64));
        let threads_ns = elapsed_ns * f64::from(subject.threads);
        // What a thread does that never waits, as it really was.
        let busy_ns = sum.hold_ns + sum.think_ns;
        if subject.work == crate::Work::Sleep && busy_ns > 0.0 {
            contention.hold_share = Some(significant(sum.hold_ns / busy_ns));
        }
        contention.wait_share = Some(significant((sum.wait_ns / threads_ns).clamp(0.0, 1.0)));
        contention.queue_mean = Some(significant(sum.wait_ns / elapsed_ns));
        contention.queue_on_entry = (acquisitions > 0)
            .then(|| significant(sum.queue_on_entry as f64 / acquisitions as f64));
        contention.queue_max = Some(sum.queue_max);
        contention.starved_ns = Some(round(sum.starved_ns));
        contention.handoff_ns =
            (sum.handoffs > 0).then(|| round(sum.handoff_ns / sum.handoffs as f64));
        contention.hold_ns = each(sum.hold_ns);
        contention.think_ns = each(sum.think_ns);
    }
    record.contention = Some(contention);
    record.warnings.retain(|warning| warning.code != "negative-one-way");
    if record.cell.oversubscribed() {
        record.warnings.push(Warning::new(
            "oversubscribed",
            "More threads than CPUs took part: they took turns, and the scheduler's slices are part of the figure.",
        ));
    }
}

/// How many acquisitions go over in the time of one hand-off of the reference.
fn reference(
    all: &[Marked<'_>],
    index: usize,
    kind: BlockKind,
    reference: &PlannedCell,
    seed: u64,
) -> Option<Against> {
    let rate = |block: &Block| Some(block.count as f64 / block.elapsed_ns as f64);
    let hand_offs = |block: &Block| Some(2.0 / super::stretch_median(block)?);
    let (ratio, interval, pairs) = paired(
        all,
        |marked| !marked.moved,
        ((index, kind), &rate),
        ((0, BlockKind::Stretch), &hand_offs),
        seed,
    )?;
    Some(Against {
        cell: reference.cell.clone(),
        of: super::COMPARED_RATE.into(),
        ratio: significant(ratio),
        interval95: interval.map(significant),
        blocks: pairs as u32,
        verdict: verdict_of_rates(interval, pairs),
    })
}

type Figure<'a> = ((usize, BlockKind), &'a dyn Fn(&Block) -> Option<f64>);

/// The paired ratio of the figures of two cells, each with the kind of block that counts.
fn paired(
    all: &[Marked<'_>],
    counts: fn(&Marked<'_>) -> bool,
    of: Figure<'_>,
    to: Figure<'_>,
    seed: u64,
) -> Option<(f64, [f64; 2], usize)> {
    let by_round = |((cell, kind), figure): Figure<'_>| -> BTreeMap<u32, f64> {
        all.iter()
            .filter(|marked| {
                marked.block.cell == cell && marked.block.kind == kind && counts(marked)
            })
            .filter_map(|marked| Some((marked.block.seq, figure(marked.block)?)))
            .collect()
    };
    by_rounds(by_round(of), &by_round(to), seed)
}

/// What the stamps of all blocks showed.
struct Seen {
    sum: ContentionSeen,
    elapsed_ns: f64,
    acquisitions: u64,
}

fn summed<'a>(blocks: impl Iterator<Item = &'a Block>) -> Option<Seen> {
    let mut all: Option<Seen> = None;
    for block in blocks {
        let Some(ContentionBlock { seen: Some(seen), .. }) = &block.contention else { continue };
        let all = all.get_or_insert(Seen {
            sum: ContentionSeen::default(),
            elapsed_ns: 0.0,
            acquisitions: 0,
        });
        all.elapsed_ns += block.elapsed_ns as f64;
        all.acquisitions += block.count;
        let sum = &mut all.sum;
        sum.wait_ns += seen.wait_ns;
        sum.hold_ns += seen.hold_ns;
        sum.think_ns += seen.think_ns;
        sum.queue_on_entry += seen.queue_on_entry;
        sum.queue_max = sum.queue_max.max(seen.queue_max);
        sum.handoffs += seen.handoffs;
        sum.handoff_ns += seen.handoff_ns;
        sum.starved_ns = sum.starved_ns.max(seen.starved_ns);
    }
    all
}

/// Jain's index (R. Jain, D. Chiu and W. Hawe, DEC TR-301, 1984) of what the threads got in a
/// block, averaged over the blocks.
///
/// Of all blocks together it would be that of the long run: a lock that gives every thread its turn
/// in blocks is not fair to a thread that waits now.
fn fairness<'a>(blocks: impl Iterator<Item = &'a Block>, threads: u32) -> Option<f64> {
    let indices: Vec<f64> = blocks
        .filter_map(|block| {
            let got = &block.contention.as_ref()?.acquisitions;
            let sum: f64 = got.iter().map(|count| *count as f64).sum();
            let squares: f64 = got.iter().map(|count| (*count as f64).powi(2)).sum();
            (squares > 0.0).then(|| sum * sum / (f64::from(threads) * squares))
        })
        .collect();
    (!indices.is_empty()).then(|| indices.iter().sum::<f64>() / indices.len() as f64)
}

/// CPU time and switches per acquisition.
fn cost<'a>(blocks: impl Iterator<Item = &'a Block>) -> Cost {
    let blocks: Vec<&Block> = blocks.collect();
    let acquisitions = blocks.iter().map(|block| block.cost_round_trips).sum::<u64>() as f64;
    let per = |of: fn(&Block) -> u64| {
        (acquisitions > 0.0).then(|| {
            significant(blocks.iter().map(|block| of(block)).sum::<u64>() as f64 / acquisitions)
        })
    };
    Cost {
        user_ns_per_op: per(|block| block.cost.user_ns),
        system_ns_per_op: per(|block| block.cost.system_ns),
        voluntary_switches_per_op: per(|block| block.cost.voluntary_switches),
        involuntary_switches_per_op: per(|block| block.cost.involuntary_switches),
    }
}
