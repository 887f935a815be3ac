//! Measures a plan: group by group, round by round, in random order, every block on disk as soon as
//! it has ended.

use std::sync::atomic::{AtomicBool, Ordering};

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use threadtoll_machine::judge::{Observed, Usual, judge};
use threadtoll_record::file::{Appender, Results};
use threadtoll_record::{
    Block, BlockKind, Cause, CpuNoise, Histogram, Line, OneWayBlock, Placement, PlannedCell,
    Record, Worst, fold, timestamp,
};

use crate::contention::foretell;
use crate::gap;
use crate::plan::estimate_ns;
use crate::rig::{Contended, LabError, Measured, Now, Rig, Stage};

/// A sample that is longer than the median by less than this needs no cause outside the mechanism.
const SHORTEST_CAUSE_PS: u64 = 1_000_000;
/// How many of the longest samples of a cell its blocks carry on.
const WORST_PER_CELL: usize = fold::WORST;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was measured.
    Complete,
    /// It was told to stop; what was measured is kept.
    Interrupted,
}

/// Who watches a run.
pub trait Observer {
    /// A group begins; `remaining_ns` is the forecast for all that is left, this group included.
    fn group(&mut self, index: usize, of: usize, cells: &[PlannedCell], remaining_ns: u64);
    /// A block ended; `done` of the group's `of` blocks are there.
    fn block(&mut self, cell: &PlannedCell, done: u64, of: u64);
    /// A record is complete.
    fn record(&mut self, record: &Record);
}

/// Measures every group of `results` that is not complete, and completes it.
///
/// Blocks and records are appended to `file` as they come. `stop` is looked at after each block.
///
/// # Errors
///
/// If a group cannot be made, a message is wrong or does not come, the clock fails its second look,
/// or the file cannot be written. All blocks that had ended are in `results` and in the file.
pub fn run(
    rig: &mut dyn Rig,
    results: &mut Results,
    file: &mut Option<Appender>,
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    let count = results.plan.groups.len();
    for index in 0..count {
        if results.groups[index].records.is_some() {
            continue;
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(Outcome::Interrupted);
        }
        let unfinished = (index..count).filter(|index| results.groups[*index].records.is_none());
        let remaining = estimate_ns(unfinished.map(|index| results.plan.groups[index].as_slice()));
        observer.group(index, count, &results.plan.groups[index], remaining);
        if measure_group(rig, results, index, file, observer, stop)? == Outcome::Interrupted {
            return Ok(Outcome::Interrupted);
        }
    }
    if let Some(file) = file {
        file.sync()?;
    }
    Ok(Outcome::Complete)
}

fn measure_group(
    rig: &mut dyn Rig,
    results: &mut Results,
    index: usize,
    file: &mut Option<Appender>,
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    let cells = results.plan.groups[index].clone();
    let attempt = results.groups[index].attempts + 1;
    results.groups[index].attempts = attempt;
    results.groups[index].blocks.clear();
    results.groups[index].foretold.clear();
    let seed = results.plan.seed ^ ((index as u64) << 32) ^ (u64::from(attempt) << 56);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let noise = &results.machine.noise;
    let mut so_far: Vec<SoFar> =
        cells.iter().map(|planned| SoFar::new(noise, &planned.cell.cpus)).collect();
    let rounds = cells[0].budget.rounds;
    let blocks: usize = cells.iter().map(|planned| planned.budget.kinds().len()).sum();
    let all = u64::from(rounds) * blocks as u64;
    let mut done = 0;
    {
        let mut stage = rig.open(&results.machine, &cells)?;
        if foretell_group(&mut *stage, results, (index, attempt), file, stop)?
            == Outcome::Interrupted
        {
            return Ok(Outcome::Interrupted);
        }
        let mut order: Vec<usize> = (0..cells.len()).collect();
        for round in 0..rounds {
            order.shuffle(&mut rng);
            for cell in order.iter().copied() {
                let mut kinds = cells[cell].budget.kinds().to_vec();
                if rng.random::<bool>() {
                    kinds.reverse();
                }
                for kind in kinds {
                    let measured = stage.block(cell, kind)?;
                    let now = stage.now();
                    let place = Place { group: index, attempt, cell, round, kind };
                    let block =
                        to_block(results, &cells[cell], place, measured, now, &mut so_far[cell]);
                    if let Some(file) = file {
                        let mut kept = block.clone();
                        if !cells[cell].experiment.keeps_histograms(&results.machine) {
                            kept.histogram = None;
                            kept.one_way = None;
                        }
                        file.append(&[Line::Block(Box::new(kept))])?;
                    }
                    results.groups[index].blocks.push(block);
                    done += 1;
                    observer.block(&cells[cell], done, all);
                    if stop.load(Ordering::Relaxed) {
                        return Ok(Outcome::Interrupted);
                    }
                }
            }
        }
    }
    rig.recheck()?;
    let at = timestamp(rig.now().unix_ns);
    let state = &mut results.groups[index];
    let records =
        fold(&results.machine, &results.plan, index, attempt, &state.blocks, &state.foretold, &at);
    if let Some(file) = file {
        let lines: Vec<Line> =
            records.iter().map(|record| Line::Record(Box::new(record.clone()))).collect();
        file.append(&lines)?;
    }
    records.iter().for_each(|record| observer.record(record));
    state.records = Some(records);
    state.blocks.clear();
    state.foretold.clear();
    Ok(Outcome::Complete)
}

/// Writes what models say of the group's cells, each line as soon as it is said, before any of them
/// is measured.
fn foretell_group(
    stage: &mut dyn Stage,
    results: &mut Results,
    (group, attempt): (usize, u32),
    file: &mut Option<Appender>,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    for cell in 0..results.plan.groups[group].len() {
        let Some(subject) = results.plan.groups[group][cell].cell.lock() else { continue };
        let Some(calibration) = stage.calibrated(cell) else { continue };
        let at = timestamp(stage.now().unix_ns);
        let place = foretell::Place { run: &results.plan.run, group, attempt, cell, at: &at };
        // A figure that no model accepts has no prediction; the record then says so by having none.
        let Ok(foretold) = foretell::foretell(subject, &calibration, results.plan.seed, &place)
        else {
            continue;
        };
        if let Some(file) = file {
            file.append(&[Line::Foretold(Box::new(foretold.clone()))])?;
        }
        results.groups[group].foretold.push(foretold);
        if stop.load(Ordering::Relaxed) {
            return Ok(Outcome::Interrupted);
        }
    }
    Ok(Outcome::Complete)
}

/// Where a block belongs.
#[derive(Clone, Copy)]
struct Place {
    group: usize,
    attempt: u32,
    cell: usize,
    round: u32,
    kind: BlockKind,
}

/// What the earlier blocks of a cell have shown.
struct SoFar {
    longest: Longest,
    /// What its stretches and its stamped blocks lose when nothing happens.
    usual: [Usual; 2],
}

impl SoFar {
    fn new(noise: &[CpuNoise], cpus: &[u32]) -> Self {
        SoFar { longest: Longest::default(), usual: [Usual::of(noise, cpus); 2] }
    }
}

/// The longest samples of a cell so far: how long a sample must be to be one of them.
#[derive(Clone, Default)]
struct Longest(Vec<u64>);

impl Longest {
    /// Whether the sample is among the longest; if so it is counted as one.
    fn take(&mut self, ps: u64) -> bool {
        if self.0.len() < WORST_PER_CELL {
            self.0.push(ps);
            return true;
        }
        let Some(shortest) = self.0.iter_mut().min() else { return false };
        let longer = ps > *shortest;
        if longer {
            *shortest = ps;
        }
        longer
    }
}

fn to_block(
    results: &Results,
    planned: &PlannedCell,
    place: Place,
    mut measured: Measured,
    now: Now,
    so_far: &mut SoFar,
) -> Block {
    let contended = measured.contended.take();
    if let Some(contended) = &contended {
        measured.stretches_ps = contended.waits.iter().map(|wait| wait.ps).collect();
    }
    let per_stretch = measured.per_stretch.max(1);
    let count = match &contended {
        Some(contended) => contended.block.acquisitions.iter().sum(),
        None => per_stretch * measured.stretches_ps.len() as u64,
    };
    let values_ps: u64 = measured.stretches_ps.iter().sum();
    let elapsed_ps = contended.as_ref().map_or(values_ps, |contended| contended.elapsed_ns * 1000);
    let mut histogram = Histogram::new();
    let (mut min, mut max) = (u64::MAX, 0);
    for stretch in &measured.stretches_ps {
        let value = stretch / per_stretch;
        histogram.record_ps(value);
        min = min.min(value);
        max = max.max(value);
    }
    let mut disturbance = measured.disturbance;
    let usual = &mut so_far.usual[usize::from(place.kind == BlockKind::Stamped)];
    // Where more threads than CPUs take part, the scheduler's doing is part of what is measured, as
    // where it places them.
    let crowded = planned.cell.oversubscribed();
    let observed = Observed {
        // What a lock's blocks are for is the rate, stamped or not: a single wait more or less does
        // not move it.
        kind: if contended.is_some() { BlockKind::Stretch } else { place.kind },
        placement: if crowded { Placement::Free } else { planned.cell.placement },
        spins: measured.spins && !crowded,
        grows: measured.grows,
        elapsed_ns: elapsed_ps / 1000,
        cpus: planned.cell.cpus.len() as u32,
        voluntary_switches: measured.cost.voluntary_switches,
        involuntary_switches: measured.cost.involuntary_switches,
        usual: *usual,
        disturbance: &disturbance,
    };
    let causes = judge(&observed);
    usual.learn(&observed);
    disturbance.causes = causes;
    let stamped = place.kind == BlockKind::Stamped;
    let over_ps = results.plan.over_ns.saturating_mul(1000);
    let mut block = Block {
        run: results.plan.run.clone(),
        group: place.group,
        attempt: place.attempt,
        cell: place.cell,
        seq: place.round,
        at: timestamp(now.unix_ns),
        kind: place.kind,
        count,
        elapsed_ns: elapsed_ps / 1000,
        mean: values_ps as f64 / 1000.0 / count as f64,
        min: min as f64 / 1000.0,
        max: max as f64 / 1000.0,
        histogram: Some(histogram.packed()),
        over: stamped
            .then(|| measured.stretches_ps.iter().filter(|ps| **ps > over_ps).count() as u64),
        one_way: None,
        same_cpu_share: None,
        contention: None,
        worst: Vec::new(),
        cost: measured.cost,
        cost_round_trips: measured.accounted_round_trips,
        clean: disturbance.causes.is_empty(),
        disturbance,
    };
    if let Some(contended) = contended {
        let pinned = planned.cell.placement == Placement::Pinned;
        return lock_block(block, contended, pinned, &mut so_far.longest);
    }
    if stamped {
        block.one_way = one_way(&measured.one_way_ps, measured.clock_bound_ns);
        if planned.cell.placement == Placement::Free {
            block.same_cpu_share = same_cpu_share(&measured.lead_cpus, &measured.follow_cpus);
        }
        let pinned = planned.cell.placement == Placement::Pinned;
        block.worst = worst(
            &block,
            pinned,
            &measured.stretches_ps,
            &measured.lead_cpus,
            measured.began_s,
            &mut so_far.longest,
        );
    }
    block.mean = (block.mean * 1e4).round() / 1e4;
    block
}

/// Makes a block one of a lock: its values are waits, which do not follow each other, or there are
/// none.
fn lock_block(
    mut block: Block,
    contended: Contended,
    pinned: bool,
    longest: &mut Longest,
) -> Block {
    let Contended { block: done, elapsed_ns, mut waits } = contended;
    if waits.is_empty() {
        let each = elapsed_ns as f64 / block.count.max(1) as f64;
        (block.mean, block.min, block.max) = (each, each, each);
        block.histogram = None;
        block.over = None;
    } else {
        let all: Vec<u64> = waits.iter().map(|wait| wait.ps).collect();
        let median = gap::median_ps(&all);
        waits.sort_by(|a, b| b.ps.cmp(&a.ps).then(a.at_s.total_cmp(&b.at_s)));
        waits.truncate(WORST_PER_CELL);
        waits.retain(|wait| longest.take(wait.ps));
        let found = waits.iter().map(|wait| Worst {
            at_s: (wait.at_s * 1e6).round() / 1e6,
            ns: wait.ps as f64 / 1000.0,
            cpu: wait.cpu,
            cause: likely_cause(&block, pinned, wait.ps.saturating_sub(median)),
        });
        block.worst = found.collect();
    }
    block.mean = (block.mean * 1e4).round() / 1e4;
    block.contention = Some(done);
    block
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
    Some(OneWayBlock { histogram: histogram.packed(), negative, clock_bound_ns })
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

fn worst(
    block: &Block,
    pinned: bool,
    samples: &[u64],
    cpus: &[u32],
    began_s: f64,
    longest: &mut Longest,
) -> Vec<Worst> {
    let mut candidates: Vec<usize> = (0..samples.len()).collect();
    let keep = WORST_PER_CELL.min(candidates.len());
    if keep < candidates.len() {
        candidates
            .select_nth_unstable_by(keep, |a, b| samples[*b].cmp(&samples[*a]).then(a.cmp(b)));
        candidates.truncate(keep);
    }
    candidates.sort_unstable_by(|a, b| samples[*b].cmp(&samples[*a]).then(a.cmp(b)));
    candidates.retain(|at| longest.take(samples[*at]));
    let mut ended_ps = vec![0u64; candidates.len()];
    // When a sample ended is the sum of all before it.
    let mut by_time: Vec<usize> = (0..candidates.len()).collect();
    by_time.sort_unstable_by_key(|index| candidates[*index]);
    let (mut at, mut sum) = (0, 0u64);
    for index in by_time {
        let candidate = candidates[index];
        sum += samples[at..=candidate].iter().sum::<u64>();
        at = candidate + 1;
        ended_ps[index] = sum;
    }
    let median = gap::median_ps(samples);
    candidates
        .iter()
        .zip(ended_ps)
        .map(|(at, ended)| Worst {
            at_s: ((began_s + ended as f64 / 1e12) * 1e6).round() / 1e6,
            ns: samples[*at] as f64 / 1000.0,
            cpu: cpus.get(at + 1).or(cpus.first()).copied().unwrap_or(0),
            cause: likely_cause(block, pinned, samples[*at].saturating_sub(median)),
        })
        .collect()
}

/// What most likely made a sample longer than the median by that much: what took at least half of
/// the excess from its block. Nothing where no account of the block holds as much, and never what
/// belongs to the mechanism at its placement.
fn likely_cause(block: &Block, pinned: bool, excess_ps: u64) -> Option<Cause> {
    let enough_ns = excess_ps / 2000;
    let disturbance = &block.disturbance;
    let took = |ns: Option<u64>| ns.is_some_and(|ns| ns > 0 && ns >= enough_ns);
    // Less than this no switch, fault or hypervisor takes: what was shorter was the caches' doing.
    if excess_ps < SHORTEST_CAUSE_PS {
        return None;
    }
    if took(disturbance.steal_ns) {
        Some(Cause::Steal)
    } else if pinned && block.cost.involuntary_switches > 0 && took(disturbance.run_queue_ns) {
        Some(Cause::InvoluntarySwitch)
    } else if pinned && took(disturbance.run_queue_ns) {
        Some(Cause::RunQueueDelay)
    } else if disturbance.throttled.is_some_and(|times| times > 0) {
        Some(Cause::Throttled)
    } else if took(disturbance.gap_ns) {
        Some(Cause::Gap)
    } else if disturbance.page_faults > 0 {
        Some(Cause::PageFault)
    } else {
        None
    }
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
        assert_eq!((block.histogram.count(), block.negative), (2, 2));
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
