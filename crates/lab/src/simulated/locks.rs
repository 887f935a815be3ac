//! Locks on the simulated machine. Apart from some noise, they behave as the models say, so
//! predictions and results must agree.

use std::cell::OnceCell;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use threadtoll_model::Shape;
use threadtoll_model::choose::{Answer, Answers, Options};
use threadtoll_record::{
    BlockKind, Cell, ContentionBlock, ContentionSeen, Count, LockSubject, Spread,
};

use crate::LabError;
use crate::backend::OpenCell;
use crate::contention::predict::{
    self, Calibration, HandoffModel, Inputs, ThreadTimes, WaitedHandoff,
};
use crate::contention::repeated::{Part, Repeated};
use crate::lock::LockSpec;
use crate::samples::{Acquisitions, BlockSamples, Samples, Waited};

use super::turns::Turns;
use super::{Draws, Thief, fingerprint, normal};

/// Time of an uncontended acquisition and release.
pub(super) const PAIR_NS: f64 = 20.0;
/// Hand-offs of a sleeping lock, in nanoseconds: the time waited, and the time of the hand-off. A
/// hand-off is fast while the waiter still spins, and slower once the waiter sleeps.
pub(super) const HANDED: [(f64, f64); 6] = [
    (250.0, 60.0),
    (1e3, 60.0),
    (4e3, 4_000.0),
    (1.6e4, 5_000.0),
    (2.56e5, 8_000.0),
    (1e7, 20_000.0),
];
pub(super) const SPUN: [(f64, f64); 2] = [(250.0, 60.0), (1e6, 60.0)];
/// Number of waits per block, enough for every quantile except the highest.
const WAITS: usize = 600;

pub(super) const REPEATS: usize = 27;

/// Factors by which the calibrated figures differ from their true values.
#[derive(Clone, Copy)]
struct Errors {
    hold: Repeated,
    think: Repeated,
    pair: Repeated,
    handoff: Repeated,
}

impl Errors {
    fn none() -> Self {
        let exact = Repeated::exact(1.0);
        Errors { hold: exact, think: exact, pair: exact, handoff: exact }
    }

    /// Draws repeats whose logarithms have this standard deviation, and takes their medians.
    fn drawn(deviation: f64, rng: &mut Xoshiro256PlusPlus) -> Self {
        let mut factor = || {
            let repeats: Vec<f64> = (0..REPEATS).map(|_| (deviation * normal(rng)).exp()).collect();
            Repeated::median(&repeats)
        };
        Errors { hold: factor(), think: factor(), pair: factor(), handoff: factor() }
    }
}

/// Returns the models' inputs that a real machine with this behaviour would yield.
fn inputs(cell: &Cell, spec: &LockSpec, errors: &Errors, part: Part) -> Option<Inputs> {
    let subject = cell.lock()?;
    if subject.is_alone() || subject.read_share.is_some_and(|share| share.value() > 0.0) {
        return None;
    }
    let shape = |ns: u64, off: Repeated| {
        let ns = ns as f64 * off.get(part);
        match subject.spread {
            Spread::Fixed => Shape::fixed(ns).ok(),
            Spread::Exponential => Shape::exponential(ns).ok(),
        }
    };
    let times = ThreadTimes {
        hold: shape(subject.hold_ns, errors.hold)?,
        think: shape(subject.think_ns, errors.think)?,
        alone_ns: subject.cycle_ns() as f64,
        slowdown: None,
    };
    let handoffs: &[(f64, f64)] = match (subject.threads, spec.policy().spins()) {
        (1, _) => &[],
        (_, true) => &SPUN,
        (_, false) => &HANDED,
    };
    let took = errors.handoff.get(part);
    let handoff = |(waited_ns, ns): &(f64, f64)| WaitedHandoff {
        waited_ns: *waited_ns,
        took_ns: ns * took,
        release_ns: 0.0,
    };
    let handoffs: Vec<WaitedHandoff> = handoffs.iter().map(handoff).collect();
    let handoff = HandoffModel::of(spec.policy(), &handoffs).ok()?;
    let pair_ns = PAIR_NS * errors.pair.get(part);
    let cpus = predict::cpus(cell);
    predict::inputs(subject, cpus, spec.stripes, times, (pair_ns, 0.0), &handoff).ok()
}

/// Returns the behaviour of a lock according to the models; `None` if no model covers the cell.
fn truth(cell: &Cell, spec: &LockSpec, subject: &LockSubject) -> Option<Answer> {
    let truth = inputs(cell, spec, &Errors::none(), Part::All)?;
    let options = Options { tasks: subject.tasks, ..Options::default() };
    Answers::new(&truth.workload, options).answer(subject.threads).ok()
}

/// Returns acquisitions per nanosecond. `truth` is `None` for readers and for a single thread,
/// which never wait.
fn rate(truth: Option<&Answer>, subject: &LockSubject) -> f64 {
    truth.map_or(f64::from(subject.threads) / subject.cycle_ns() as f64, |answer| {
        answer.performance.throughput_per_s / 1e9
    })
}

/// Returns the time from one acquisition to the next, without noise.
pub(super) fn value_ns(cell: &Cell, spec: &LockSpec, subject: &LockSubject) -> f64 {
    1.0 / rate(truth(cell, spec, subject).as_ref(), subject)
}

pub(super) struct Lock {
    draws: Draws,
    spec: LockSpec,
    subject: LockSubject,
    truth: OnceCell<Option<Answer>>,
}

impl Lock {
    pub(super) fn new(draws: Draws, spec: LockSpec, subject: LockSubject) -> Self {
        Lock { draws, spec, subject, truth: OnceCell::new() }
    }
}

impl OpenCell for Lock {
    fn calibration(&self) -> Option<Calibration> {
        let cell = &self.draws.planned.cell;
        let seed = self.draws.seed.rotate_left(16) ^ fingerprint(cell);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let errors = Errors::drawn(self.draws.calibration, &mut rng);
        let inputs = |part| inputs(cell, &self.spec, &errors, part);
        Calibration::by_part(inputs)
    }

    fn block(&mut self, kind: BlockKind) -> Result<BlockSamples, LabError> {
        let Draws { time, planned, loops, seed, machine, slower, .. } = &mut self.draws;
        let subject = &self.subject;
        let began_s = time.now().since_start_s;
        let now_ns = time.elapsed_ns.get();
        let stamped = kind == BlockKind::Stamped;
        let budget = planned.budget;
        let cpus = planned.cell.cpus.clone();
        let truth = || truth(&planned.cell, &self.spec, subject);
        let answer = self.truth.get_or_init(truth);
        let (rng, round) = &mut loops[usize::from(stamped)];
        *round += 1;
        let noise = 1.0 + 0.01 * (rng.random::<f64>() - 0.5);
        let threads = u64::from(subject.threads);
        let cycle_ns = subject.cycle_ns() as f64;
        let slowed = *slower
            * machine.regimes.slower(now_ns, *seed, &planned.cell)
            * machine.regimes.noise(rng);
        let rate = rate(answer.as_ref(), subject) / slowed;
        let performance = answer.as_ref().map(|answer| answer.performance);
        let length_ns = match (subject.tasks, stamped) {
            (Some(tasks), _) => tasks as f64 / rate,
            (None, true) => budget.stamped_ns as f64,
            (None, false) => budget.stretch_ns as f64,
        } / noise;
        let acquired = length_ns * rate * noise;
        let each = ((acquired / threads as f64).round() as u64).max(1);
        let count = each * threads;
        let stolen_ns = Thief::takes(rng, 1).map_or(0, |(_, ps)| ps / 1000);
        let elapsed_ns = (length_ns as u64).max(1) + stolen_ns;
        let wait_ns = performance.map_or(0.0, |performance| performance.wait_ns * slowed);
        let waits: Vec<Waited> = (0..if stamped { (count as usize).min(WAITS) } else { 0 })
            .map(|at| Waited {
                ps: (-wait_ns * 1000.0 * (1.0 - rng.random::<f64>()).ln()) as u64,
                at_s: began_s + length_ns * (at + 1) as f64 / WAITS as f64 / 1e9,
                cpu: cpus[at % cpus.len()],
            })
            .collect();
        let longest = waits.iter().map(|wait| wait.ps).max().unwrap_or(0) as f64 / 1000.0;
        let contended = wait_ns > 0.0 && threads > 1;
        let queue_on_entry = performance
            .map_or(0, |performance| (performance.queue_on_entry * count as f64).round() as u64);
        let seen = stamped.then(|| ContentionSeen {
            wait_ns: performance
                .map_or(0.0.into(), |performance| (performance.queue_mean * length_ns).into()),
            hold_ns: (count as f64 * subject.hold_ns as f64).into(),
            think_ns: (count as f64 * subject.think_ns as f64).into(),
            queue_on_entry: queue_on_entry.into(),
            queue_max: if contended { subject.threads - 1 } else { 0 },
            handoffs: Count::from(if contended { count / 2 } else { 0 }),
            handoff_ns: if contended {
                ((count / 2) as f64 * HANDED[2].1).into()
            } else {
                0.0.into()
            },
            starved_ns: longest.into(),
            queue_told: (subject.tasks.is_some() && self.spec.counts_waiters())
                .then(|| queue_on_entry.into()),
        });
        let turns = Turns {
            subject,
            locks: self.spec.stripes as usize,
            waits: answer.is_some(),
            pair_ns: PAIR_NS,
            handoff_ns: if self.spec.policy().spins() { SPUN[0].1 } else { HANDED[2].1 },
            slowed,
        };
        // The excerpt has a random generator of its own, so that it does not change the block's
        // figures.
        let seed = *seed ^ fingerprint(&planned.cell).rotate_left(32) ^ u64::from(*round);
        let mut turns_rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let excerpt = stamped.then(|| turns.excerpt(length_ns as u64, &mut turns_rng)).flatten();
        let busy_ns = (length_ns * (threads as f64).min(cpus.len() as f64) * 0.9) as u64;
        time.block_took(elapsed_ns);
        let switches = if contended { count / 3 } else { 0 };
        let counters = machine.thief.counters(stolen_ns, [busy_ns, busy_ns / 20, switches], count);
        let block = ContentionBlock {
            // Not rounded to whole acquisitions, because a block may have only a few.
            work: (acquired * cycle_ns * noise).into(),
            acquisitions: vec![each.into(); threads as usize],
            seen,
            ..ContentionBlock::default()
        };
        let samples = Samples::Contention(Acquisitions { block, elapsed_ns, waits, excerpt });
        Ok(BlockSamples { counters, samples })
    }
}
