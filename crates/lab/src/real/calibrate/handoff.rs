//! Measures hand-offs of a lock: the time from its release to its acquisition by a waiting thread,
//! and the duration of the release. Both depend on how long the thread has waited.

use std::sync::Arc;
use std::time::Duration;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use threadtoll_record::{Cell, LockSubject, Placement, Spread, Work};

use crate::LabError;
use crate::contention::calibration_schedule::PASSES;
use crate::contention::predict;
use crate::contention::predict::WaitedHandoff;
use crate::contention::repeated::{BATCHES, Part, Repeated};
use crate::lock::LockSpec;
use crate::lock::contender::{HandoffProbe, HandoffRound};

use super::super::lock_threads::{Task, cpus_by_thread};
use super::Bench;
use super::cache::{Cache, Repeats};

/// Number of hand-offs per length of wait: enough for a mean in each batch.
const REPEATS: usize = 6 * BATCHES;
/// Number of hand-offs per length of wait if threads sleep. It is smaller than `REPEATS`, because
/// each hand-off takes as long as its wait.
const SLEEPING_REPEATS: usize = 3 * BATCHES;
/// Shortest and longest wait, in nanoseconds.
const MIN_WAIT_NS: f64 = 250.0;
const MAX_WAIT_NS: f64 = 20_000_000.0;
/// Maximum time for which threads compute between two hand-offs, in nanoseconds.
const MAX_BUSY_NS: f64 = 200_000.0;
/// A hand-off that takes longer than this multiple of the upper quartile was interrupted.
const INTERRUPTED: f64 = 4.0;

/// A hand-off, in nanoseconds: time waited, time from the release until the waiting thread has the
/// lock, and duration of the release.
type Handoff = [f64; 3];

/// Hand-offs between two threads, by intended wait.
#[derive(Clone, Debug, Default)]
pub(super) struct RepeatedHandoffs(Vec<Vec<Handoff>>);

impl Repeats for RepeatedHandoffs {
    fn append(&mut self, more: Self) {
        self.0.resize_with(self.0.len().max(more.0.len()), Vec::new);
        for (of_wait, more) in self.0.iter_mut().zip(more.0) {
            of_wait.extend(more);
        }
    }
}

impl RepeatedHandoffs {
    fn means(&self) -> Vec<[Repeated; 3]> {
        let of_wait = |handoffs: &Vec<Handoff>| {
            [0, 1, 2].map(|at| {
                Repeated::mean(&handoffs.iter().map(|handoff| handoff[at]).collect::<Vec<f64>>())
            })
        };
        self.0.iter().filter(|handoffs| !handoffs.is_empty()).map(of_wait).collect()
    }
}

/// Hand-offs between two threads, by lock, work, hold and think times, and CPUs.
pub(super) type Handoffs = Cache<String, RepeatedHandoffs>;

#[derive(Clone, Debug, Default)]
pub(super) struct CellHandoffs {
    /// For each pair of CPUs between which the lock is handed over: the hand-offs, and their share
    /// of all hand-offs.
    meetings: Vec<(Vec<[Repeated; 3]>, f64)>,
    /// Idle time of the waiting thread's CPU after a long wait. `None` if the CPU is idle for the
    /// whole wait.
    idle_ns: Option<f64>,
}

impl CellHandoffs {
    /// Returns the hand-offs of one part of the repeats, averaged over all pairs of CPUs, in order
    /// of the time waited.
    pub(super) fn at(&self, part: Part) -> Vec<WaitedHandoff> {
        let mut mixed: Vec<WaitedHandoff> = Vec::new();
        for (handoffs, weight) in &self.meetings {
            mixed.resize(handoffs.len(), WaitedHandoff::default());
            for (sum, [waited, took, release]) in mixed.iter_mut().zip(handoffs) {
                sum.waited_ns += weight * waited.get(part).max(0.0);
                sum.took_ns += weight * took.get(part);
                sum.release_ns += weight * release.get(part);
            }
        }
        if let Some(idle_ns) = self.idle_ns {
            let last = predict::hand_off(&mixed).ok();
            mixed.retain(|handoff| handoff.waited_ns < idle_ns);
            mixed.push(WaitedHandoff {
                waited_ns: idle_ns,
                took_ns: last.as_ref().map_or(0.0, |last| last.after(idle_ns)),
                release_ns: last.as_ref().map_or(0.0, |last| last.wake_cost(idle_ns)),
            });
        }
        mixed
    }
}

/// Measures a cell's hand-offs in a pass. Returns none if the threads spin on a single CPU.
pub(super) fn measure(
    bench: &Bench,
    known: &mut Handoffs,
    pass: usize,
    cell: &Cell,
    subject: &LockSubject,
    lock: &LockSpec,
) -> Result<CellHandoffs, LabError> {
    if cell.cpus.len() < 2 && lock.policy().spins() {
        // One thread would spin for a whole scheduler time slice, in which the other thread could
        // not release the lock.
        return Ok(CellHandoffs::default());
    }
    let meetings = meetings(cell, subject)
        .iter()
        .map(|(two, weight)| {
            let name = lock.lock.as_ref().map_or("", |lock| &lock.name);
            let LockSubject { work, hold_ns, think_ns, .. } = subject;
            let key = format!("{name} {work} {hold_ns} {think_ns} {two:?}");
            let between = || between(bench, pass, two, subject, lock);
            Ok((known.measured(key, pass, between)?.means(), *weight))
        })
        .collect::<Result<_, LabError>>()?;
    Ok(CellHandoffs { meetings, idle_ns: idle_ns(cell, subject) })
}

/// Measures hand-offs between two threads on these CPUs, by intended wait.
///
/// A wake-up depends on what the CPU did before, and kernels learn how long CPUs idle. On a virtual
/// machine, a third of the wake-ups took 5 µs longer for this reason. Threads that compute in the
/// cell therefore also compute between hand-offs.
///
/// Waits are in random order. Each is up to √2 times shorter or longer than intended.
fn between(
    bench: &Bench,
    pass: usize,
    two: &[Vec<u32>],
    subject: &LockSubject,
    lock: &LockSpec,
) -> Result<RepeatedHandoffs, LabError> {
    let plain = LockSpec { stripes: 1, ..lock.clone() };
    let LockSubject { work, hold_ns, .. } = subject;
    let longest_ns = (5.0 * *hold_ns as f64).clamp(4e4, MAX_WAIT_NS);
    let sleeps = *work == Work::Sleep;
    let (factor, repeats) = if sleeps { (4.0, SLEEPING_REPEATS) } else { (2.0, REPEATS) };
    let mut waits = vec![MIN_WAIT_NS];
    while waits[waits.len() - 1] * factor <= longest_ns {
        waits.push(waits[waits.len() - 1] * factor);
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(*hold_ns ^ (pass as u64) << 60);
    let rounds = rounds(subject, waits.len(), repeats, &mut rng);
    let ticks = |(wait, busy): &Round| HandoffRound {
        wait: bench.clock.ticks(waits[*wait] * 2f64.powf(rng.random::<f64>() - 0.5)),
        busy: busy.map(|ns| bench.clock.ticks(ns)),
    };
    let ticks: Arc<[HandoffRound]> = rounds.iter().map(ticks).collect();
    let mut threads = bench.threads(&subject.lock, &plain, *work, two)?;
    let probe = Arc::new(HandoffProbe::default());
    let tasks = vec![
        Task::HoldForWaiter(Arc::clone(&probe), Arc::clone(&ticks), sleeps),
        Task::MeasureHandoffs(probe, Arc::clone(&ticks)),
    ];
    let all = ticks.iter().map(|round| round.wait + round.busy[0] + round.busy[1]).sum();
    let window = threads.window(0, bench.clock.ns(all) as u64);
    let mut reports = threads.run(tasks, window, Duration::from_secs(5))?;
    let samples = reports.pop().map(|report| report.handoffs).unwrap_or_default();
    let releases = reports.pop().map(|report| report.releases).unwrap_or_default();
    let taken: Vec<f64> = samples.iter().map(|sample| bench.signed_ns(sample.took)).collect();
    let limit_ns = upper_quartile(&taken).map_or(f64::MAX, |ns| INTERRUPTED * ns);
    let of_wait = |wait: usize| {
        let found = rounds.iter().zip(samples.iter().zip(&taken)).zip(&releases);
        let of_wait = found.filter(|(((of, _), (_, took)), _)| *of == wait && **took <= limit_ns);
        let handoffs = of_wait.map(|((_, (sample, took)), release)| {
            [bench.signed_ns(sample.waited), *took, bench.signed_ns(*release as i64)]
        });
        handoffs.collect()
    };
    Ok(RepeatedHandoffs((0..waits.len()).map(of_wait).collect()))
}

/// Index of the intended wait, and the time that each of the two threads computes afterwards, in
/// nanoseconds.
type Round = (usize, [f64; 2]);

/// Returns the rounds of a pass in random order. Each batch has the same number of hand-offs for
/// every length of wait.
fn rounds(
    subject: &LockSubject,
    waits: usize,
    repeats: usize,
    rng: &mut Xoshiro256PlusPlus,
) -> Vec<Round> {
    let drawn = |ns: u64, rng: &mut Xoshiro256PlusPlus| match (subject.work, subject.spread) {
        (Work::Sleep, _) => 0.0,
        (Work::Spin, Spread::Fixed) => (ns as f64).min(MAX_BUSY_NS),
        (Work::Spin, Spread::Exponential) => {
            (-(ns as f64) * (1.0 - rng.random::<f64>()).ln()).min(MAX_BUSY_NS)
        }
    };
    let mut rounds = Vec::with_capacity(waits * repeats / PASSES);
    for _ in 0..BATCHES / PASSES {
        let mut batch: Vec<usize> = (0..waits * repeats / BATCHES).map(|at| at % waits).collect();
        batch.shuffle(rng);
        rounds.extend(batch.into_iter().map(|wait| {
            let think = [drawn(subject.think_ns, rng), drawn(subject.think_ns, rng)];
            (wait, [think[0], drawn(subject.hold_ns, rng) + think[1]])
        }));
    }
    rounds
}

fn upper_quartile(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() * 3 / 4).copied()
}

/// Returns pairs of CPUs between which the lock is handed over, each with its share of the
/// hand-offs. Some pairs of the cell's CPUs represent all pairs. If sleeping threads share CPUs, a
/// CPU is also paired with itself.
fn meetings(cell: &Cell, subject: &LockSubject) -> Vec<(Vec<Vec<u32>>, f64)> {
    let cpus = &cell.cpus;
    if cell.placement != Placement::Pinned || cpus.len() < 2 {
        return vec![(cpus_by_thread(cell.placement, cpus, 2), 1.0)];
    }
    let last = cpus.len() - 1;
    let mut others: Vec<usize> = vec![1, cpus.len() / 2, last];
    others.sort_unstable();
    others.dedup();
    let same_cpu = match subject.work {
        Work::Sleep => share_on_one_cpu(subject.threads, cpus.len()),
        Work::Spin => 0.0,
    };
    let each = (1.0 - same_cpu) / others.len() as f64;
    let apart = others.into_iter().map(|other| (vec![vec![cpus[0]], vec![cpus[other]]], each));
    let same = (same_cpu > 0.0).then(|| (vec![vec![cpus[0]], vec![cpus[0]]], same_cpu));
    apart.chain(same).collect()
}

/// Returns the share of all pairs of threads that are on one CPU, if threads are placed
/// round-robin.
fn share_on_one_cpu(threads: u32, cpus: usize) -> f64 {
    let (threads, cpus) = (f64::from(threads), cpus as f64);
    let (whole, more) = ((threads / cpus).floor(), threads % cpus);
    let pairs = |count: f64| count * (count - 1.0).max(0.0);
    (more * pairs(whole + 1.0) + (cpus - more) * pairs(whole)) / pairs(threads).max(1.0)
}

/// Returns the mean time for which a thread's CPU has been idle when the thread gets the lock from
/// another CPU. `None` unless the threads sleep and outnumber the CPUs: a CPU with only one thread
/// is idle for that thread's whole wait.
///
/// While a thread of another CPU holds the lock, this CPU is woken only when the think time of one
/// of its own threads ends: at random, and once per `cpus` tasks on average. With probability
/// 1/`cpus`, the previous holder ran on this CPU, so this CPU was awake when that hold ended.
/// Otherwise, the argument repeats for the task before.
fn idle_ns(cell: &Cell, subject: &LockSubject) -> Option<f64> {
    let cpus = cell.cpus.len() as f64;
    let threads = f64::from(subject.threads);
    if subject.work == Work::Spin || threads <= cpus {
        return None;
    }
    let task_ns = (subject.cycle_ns() as f64 / threads).max(subject.hold_ns as f64);
    let undisturbed = (-1.0 / cpus).exp();
    Some(cpus * task_ns * (1.0 - undisturbed) / (1.0 - undisturbed * (1.0 - 1.0 / cpus)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_are_dealt_out_in_turns_share_cpus_as_often_as_counted_by_hand() {
        let share = share_on_one_cpu;
        assert_eq!((share(2, 2), share(1, 2), share(64, 64)), (0.0, 0.0, 0.0));
        // Two of the three threads share a CPU: one pair of three.
        assert!((share(3, 2) - 1.0 / 3.0).abs() < 1e-12);
        // 13 threads on one CPU, and 12 on the other: 13 × 12 + 12 × 11 of 25 × 24 ordered pairs.
        assert!((share(25, 2) - 288.0 / 600.0).abs() < 1e-12);
        assert_eq!(share(9, 1), 1.0);
    }
}
