//! Locks: waiting times instead of round trips, and the speed-up over a single thread.

use std::collections::{BTreeMap, BTreeSet};

use threadtoll_stats::{mean, median, resample};

use crate::compare::{self, Paired, Round};
use crate::{
    Against, Block, BlockKind, CellPrediction, Contention, ContentionSeen, Count, Figures,
    Fraction, LockSubject, LoopKind, PlannedCell, RecordKind, Work,
};

use super::{
    Distribution, FoldedCell, Folding, Marked, RATE, by_round, cost, overload, oversubscribed,
    processes, stretch_median,
};
use crate::limits::DRIFT;
use crate::rounding::{round, significant};
use crate::sharing::{jain, mean_index};

const WORK: &str = "work_per_s";

/// Kind of the blocks for a cell's rates: blocks without stamps, if there are any.
fn rate_kind(planned: &PlannedCell) -> BlockKind {
    planned.budget.kinds().first().copied().unwrap_or(BlockKind::Stretch)
}

fn work_rate(block: &Block) -> Option<f64> {
    let rate = block.figures.contention()?.work.get() / block.elapsed_ns.as_f64();
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

/// Work per nanosecond in a block that ran on the CPUs `all`. If the work on each CPU is known, the
/// mean over `cpus`.
fn rate_on(block: &Block, all: &[u32], cpus: &[u32]) -> Option<f64> {
    let by_cpu = &block.figures.contention()?.work_by_cpu;
    let rates: Vec<f64> = all
        .iter()
        .zip(by_cpu)
        .filter(|(cpu, _)| cpus.contains(cpu))
        .map(|(_, rate)| rate.get())
        .collect();
    let Some(rate) = mean(&rates) else { return work_rate(block) };
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

pub(super) fn work_by_round(
    all: &[Marked<'_>],
    cell: usize,
    planned: &PlannedCell,
) -> BTreeMap<Round, f64> {
    let kind = rate_kind(planned);
    by_round(all, cell, |marked| marked.block.kind == kind && !marked.drifted, work_rate)
}

/// Speed-up over a single thread of independent threads that run at the same time, one on each CPU.
/// `block` must be that of a single thread.
fn without_lock(block: &Block) -> Option<f64> {
    let contention = block.figures.contention()?;
    let alone: f64 = contention.work_by_cpu.iter().map(|rate| rate.get()).sum();
    let speedup = contention.work_together?.get() / alone * contention.work_by_cpu.len() as f64;
    (speedup.is_finite() && speedup > 0.0).then_some(speedup)
}

/// For each block, `true` if several threads computed in it while the CPUs were faster or slower
/// than usual: in the same round, independent threads did over [`DRIFT`] more or less work than the
/// calibration predicts. The host may have given the CPUs another share of its cores, or the
/// frequency may have changed.
///
/// A short block with a thread on each CPU is easily disturbed, so a change counts only if the
/// median of three neighbouring blocks shows it.
pub(super) fn work_drifted(
    cells: &[PlannedCell],
    blocks: &[Block],
    predictions: &[CellPrediction],
) -> Vec<bool> {
    let subject = |cell: usize| cells.get(cell).and_then(|planned| planned.cell.lock());
    let is_alone = |cell: usize| subject(cell).is_some_and(LockSubject::is_alone);
    let Some(alone) = (0..cells.len()).find(|cell| is_alone(*cell)) else {
        return vec![false; blocks.len()];
    };
    let threads = cells[alone].cell.cpus.len() as u32;
    let expected = predictions
        .iter()
        .filter(|prediction| subject(prediction.cell).is_some_and(|own| own.threads == threads))
        .find_map(|prediction| prediction.from?.slowdown)
        .map(|slowdown| f64::from(threads) / slowdown.get());
    let kind = rate_kind(&cells[alone]);
    let measured: Vec<(Round, f64)> = blocks
        .iter()
        .filter(|block| block.cell == alone && block.kind == kind)
        .filter_map(|block| Some(((block.process, block.seq), without_lock(block)?)))
        .collect();
    let off = |speedups: &[(Round, f64)]| {
        let own = median(speedups.iter().map(|(_, speedup)| *speedup));
        let ratio = own.zip(expected).map_or(1.0, |(own, expected)| own / expected);
        ratio.max(1.0 / ratio) - 1.0
    };
    let drifted: BTreeSet<Round> = measured
        .chunk_by(|one, next| one.0.0 == next.0.0)
        .flat_map(|own| {
            let near = |at: usize| {
                let from = at.saturating_sub(1).min(own.len().saturating_sub(3));
                &own[from..own.len().min(from + 3)]
            };
            (0..own.len()).filter(move |at| off(near(*at)) > DRIFT).map(|at| own[at].0)
        })
        .collect();
    let contend =
        |cell: usize| subject(cell).is_some_and(|own| own.work == Work::Spin && own.threads > 1);
    blocks
        .iter()
        .map(|block| contend(block.cell) && drifted.contains(&(block.process, block.seq)))
        .collect()
}

fn alone(cells: &[PlannedCell], subject: &LockSubject) -> Option<usize> {
    cells.iter().position(|other| other.cell.lock().is_some_and(|other| subject.is_against(other)))
}

pub(super) fn fold(folding: &Folding<'_>, subject: &LockSubject) -> FoldedCell {
    let kind = rate_kind(folding.planned());
    let of_process = processes(folding.blocks(kind));
    let rates: Vec<f64> = folding
        .blocks(kind)
        .map(|block| block.count.as_f64() / block.elapsed_ns.as_f64() * 1e9)
        .collect();
    let rate = resample::median_with_interval(&rates, &of_process, folding.seed);
    let speedup = alone(folding.cells(), subject).and_then(|alone| work(folding, alone));
    // Callers from outside arrive at their own rate, however fast hand-offs are.
    let from_outside = subject.overload.is_some();
    let of_reference = if from_outside { None } else { hand_offs(folding, kind) };
    let of_work = speedup.map(|(other, found)| {
        let cell = &folding.cells()[other].cell;
        folding.against(cell, WORK, found, compare::verdict_of_rates)
    });
    let distribution = Distribution::of(folding);
    FoldedCell {
        loop_kind: if from_outside { LoopKind::Open } else { LoopKind::Closed },
        kind: RecordKind::Wait,
        count: distribution.count,
        one_way: None,
        rate: rate.map(|(rate, interval)| {
            (significant(rate), interval.map(|bounds| bounds.map(significant)))
        }),
        cost: cost(folding.blocks(kind), 1.0),
        figures: Figures::Contention {
            contention: contention(folding, subject, kind, speedup.map(|(_, found)| found)),
        },
        against: of_reference.into_iter().chain(of_work).collect(),
        between_processes: None,
        warnings: oversubscribed(folding.cell()).into_iter().collect(),
        distribution,
    }
}

fn contention(
    folding: &Folding<'_>,
    subject: &LockSubject,
    kind: BlockKind,
    speedup: Option<Paired>,
) -> Contention {
    let own = || folding.own().map(|marked| marked.block);
    let totals: Vec<f64> = match subject.tasks {
        Some(_) => folding.blocks(kind).map(|block| block.elapsed_ns.as_f64() / 1e9).collect(),
        None => Vec::new(),
    };
    let total =
        resample::median_with_interval(&totals, &processes(folding.blocks(kind)), folding.seed);
    let limits: Vec<f64> = folding.blocks(kind).filter_map(without_lock).collect();
    let of_limits = folding.blocks(kind).filter(|block| without_lock(block).is_some());
    let without_lock = resample::median_with_interval(&limits, &processes(of_limits), folding.seed);
    let seen = summed(own());
    let seen = seen.as_ref();
    let each = |total_ns: fn(&Seen) -> f64| {
        let seen = seen?;
        (seen.acquisitions > 0).then(|| round(total_ns(seen) / seen.acquisitions.as_f64()).into())
    };
    let stamped = || own().filter_map(|block| Some((block, of_block(block)?)));
    let within = |total_ns: fn(&ContentionSeen) -> f64| {
        let means: Vec<(f64, u64)> = stamped()
            .map(|(block, seen)| (total_ns(&seen) / block.count.as_f64(), block.count.get()))
            .collect();
        let of_process = processes(stamped().map(|(block, _)| block));
        let (_, interval) = resample::mean_with_interval(&means, &of_process, folding.seed)?;
        interval.map(|ends| ends.map(|end| round(end.max(0.0)).into()))
    };
    Contention {
        threads: subject.threads,
        hold_share: Some(significant(hold_share(subject, seen)).into()),
        locks_per_s: significant(1e9 / subject.cycle_ns().max(1) as f64).into(),
        speedup: speedup.map(|found| significant(found.ratio).into()),
        speedup_interval95: speedup
            .map(|found| found.interval95.map(|bound| significant(bound).into())),
        without_lock: without_lock.map(|(speedup, _)| significant(speedup).into()),
        without_lock_interval95: without_lock
            .and_then(|(_, interval)| interval)
            .map(|interval| interval.map(|bound| significant(bound).into())),
        wait_share: seen.map(|seen| {
            let threads_ns = seen.elapsed_ns * f64::from(subject.threads);
            significant((seen.wait_ns / threads_ns).clamp(0.0, 1.0)).into()
        }),
        queue_mean: seen.map(|seen| significant(seen.wait_ns / seen.elapsed_ns).into()),
        queue_on_entry: seen
            .filter(|seen| seen.acquisitions > 0)
            .map(|seen| seen.queue_on_entry.as_f64() / seen.acquisitions.as_f64())
            .or_else(|| told_queue(own()))
            .map(|mean| significant(mean).into()),
        queue_told: seen.and_then(|seen| {
            let mean = seen.queue_told?.as_f64() / seen.acquisitions.as_f64();
            mean.is_finite().then(|| significant(mean).into())
        }),
        queue_max: seen.map(|seen| seen.queue_max),
        fairness: fairness(own(), subject.threads),
        starved_ns: seen.map(|seen| round(seen.starved_ns).into()),
        handoff_ns: seen
            .filter(|seen| seen.handoffs > 0)
            .map(|seen| round(seen.handoff_ns / seen.handoffs.as_f64()).into()),
        hold_ns: each(|seen| seen.hold_ns),
        hold_ns_interval95: within(|seen| seen.hold_ns.get()),
        think_ns: each(|seen| seen.think_ns),
        think_ns_interval95: within(|seen| seen.think_ns.get()),
        total_s: total.map(|(total, _)| significant(total).into()),
        total_s_interval95: total
            .and_then(|(_, interval)| interval)
            .map(|interval| interval.map(|bound| significant(bound).into())),
        overload: overload::figures(folding).map(Box::new),
        predicted: folding.prediction.cloned(),
    }
}

/// From the intended times or, if threads sleep, from the measured times.
fn hold_share(subject: &LockSubject, seen: Option<&Seen>) -> f64 {
    match seen.map(|seen| (seen.hold_ns, seen.hold_ns + seen.think_ns)) {
        Some((hold_ns, busy_ns)) if subject.work == Work::Sleep && busy_ns > 0.0 => {
            hold_ns / busy_ns
        }
        _ => subject.hold_share(),
    }
}

/// Work of all threads, relative to the work of the single thread of cell `other`.
fn work(folding: &Folding<'_>, other: usize) -> Option<(usize, Paired)> {
    let (here, there) = (&folding.cell().cpus, &folding.cells()[other].cell.cpus);
    let other_kind = rate_kind(&folding.cells()[other]);
    let counts = |marked: &Marked<'_>| marked.block.kind == other_kind && !marked.drifted;
    let own = work_by_round(folding.all, folding.index, folding.planned());
    let base = by_round(folding.all, other, counts, |block| rate_on(block, there, here));
    Some((other, compare::paired(&own, &base, folding.seed)?))
}

/// Number of the cell's acquisitions in the time that the reference takes for one hand-off.
fn hand_offs(folding: &Folding<'_>, kind: BlockKind) -> Option<Against> {
    let counts = |kind| move |marked: &Marked<'_>| marked.block.kind == kind && !marked.moved;
    let own = by_round(folding.all, folding.index, counts(kind), |block| {
        Some(block.count.as_f64() / block.elapsed_ns.as_f64())
    });
    let base = by_round(folding.all, 0, counts(BlockKind::Stretch), |block| {
        Some(2.0 / stretch_median(block)?)
    });
    let found = compare::paired(&own, &base, folding.seed)?;
    let reference = &folding.cells()[0].cell;
    Some(folding.against(reference, RATE, found, compare::verdict_of_rates))
}

#[derive(Default)]
struct Seen {
    elapsed_ns: f64,
    acquisitions: Count,
    wait_ns: f64,
    hold_ns: f64,
    think_ns: f64,
    queue_on_entry: Count,
    queue_told: Option<Count>,
    queue_max: u32,
    handoffs: Count,
    handoff_ns: f64,
    starved_ns: f64,
}

/// Figures from the stamps of a block with acquisitions.
fn of_block(block: &Block) -> Option<ContentionSeen> {
    block.figures.contention()?.seen.filter(|_| block.count > 0)
}

fn summed<'a>(blocks: impl Iterator<Item = &'a Block>) -> Option<Seen> {
    let mut all: Option<Seen> = None;
    for block in blocks {
        let seen = block.figures.contention().and_then(|contention| contention.seen);
        let Some(seen) = seen else { continue };
        let all = all.get_or_insert_default();
        all.elapsed_ns += block.elapsed_ns.as_f64();
        all.acquisitions += block.count;
        all.wait_ns += seen.wait_ns.get();
        all.hold_ns += seen.hold_ns.get();
        all.think_ns += seen.think_ns.get();
        all.queue_on_entry += seen.queue_on_entry;
        if let Some(queue) = seen.queue_told {
            *all.queue_told.get_or_insert_default() += queue;
        }
        all.queue_max = all.queue_max.max(seen.queue_max);
        all.handoffs += seen.handoffs;
        all.handoff_ns += seen.handoff_ns.get();
        all.starved_ns = all.starved_ns.max(seen.starved_ns.get());
    }
    all
}

/// Mean number of threads still waiting just after an acquisition, as reported by programs in other
/// languages that report no stamps.
fn told_queue<'a>(blocks: impl Iterator<Item = &'a Block>) -> Option<f64> {
    let means = blocks.filter_map(|block| {
        let mean = block.figures.contention()?.queue_on_entry_mean?;
        Some((mean.get() * block.count.as_f64(), block.count.as_f64()))
    });
    let (sum, count) = means.fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
    (count > 0.0).then(|| sum / count)
}

/// Jain's index of the threads' acquisitions in a block, averaged over the blocks.
///
/// Over all blocks together, a lock that serves a single thread in each block, but a different one
/// each time, would look fair.
fn fairness<'a>(blocks: impl Iterator<Item = &'a Block>, threads: u32) -> Option<Fraction> {
    mean_index(blocks.filter_map(|block| {
        let got = &block.figures.contention()?.acquisitions;
        if got.is_empty() {
            return None;
        }
        jain(got.iter().map(|count| count.as_f64()), threads as usize)
    }))
}
