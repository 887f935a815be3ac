//! Overloaded locks on the simulated machine. Apart from some noise, they behave as the model says,
//! so predictions and results must agree.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use threadtoll_model::HandOff;
use threadtoll_model::overload::{Caller, Fate, OverloadedLock, outcome, simulate};
use threadtoll_record::{BlockKind, ContentionBlock, Histogram, LockSubject, Overload};

use crate::LabError;
use crate::backend::OpenCell;
use crate::contention::overload::{OverloadCalibration, block, due_ns, phases, rules};
use crate::contention::repeated::Repeated;
use crate::lock::LockSpec;
use crate::samples::{Acquisitions, BlockSamples, Samples, Waited};

use super::locks::{HANDED, PAIR_NS, REPEATS, SPUN};
use super::{Draws, Thief, fingerprint, normal};

/// Delay with which a sleeping thread notices its caller.
const LATE_NS: f64 = 50_000.0;
/// Share of the releases of a lock that does not serve in order after which another thread gets it
/// before the woken one.
const OVERTAKEN: f64 = 0.9;

fn truth(spec: &LockSpec, subject: &LockSubject) -> OverloadedLock {
    let policy = spec.policy();
    let points: &[(f64, f64)] = if policy.spins() { &SPUN } else { &HANDED };
    OverloadedLock {
        hold_ns: subject.hold_ns as f64 + PAIR_NS,
        hand_off: HandOff::curve(points).unwrap_or_else(|_| HandOff::free()),
        overtaken_share: if policy.in_order() || policy.spins() { 0.0 } else { OVERTAKEN },
        late_ns: LATE_NS,
        threads: subject.threads,
    }
}

/// Returns the time from one acquisition to the next while callers wait, without noise.
pub(super) fn value_ns(spec: &LockSpec, subject: &LockSubject) -> f64 {
    let lock = truth(spec, subject);
    let handed = 1.0 - lock.overtaken_share;
    lock.hold_ns + handed * lock.hand_off.after(lock.hold_ns)
}

pub(super) struct OverloadedCell {
    draws: Draws,
    lock: OverloadedLock,
    subject: LockSubject,
    overload: Overload,
}

impl OverloadedCell {
    pub(super) fn new(
        draws: Draws,
        spec: LockSpec,
        subject: LockSubject,
        overload: Overload,
    ) -> Self {
        OverloadedCell { draws, lock: truth(&spec, &subject), subject, overload }
    }
}

impl OpenCell for OverloadedCell {
    fn overload_calibration(&self) -> Option<OverloadCalibration> {
        let seed = self.draws.seed.rotate_left(16) ^ fingerprint(&self.draws.planned.cell);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let deviation = self.draws.calibration;
        let mut factor = || {
            let repeats: Vec<f64> =
                (0..REPEATS).map(|_| (deviation * normal(&mut rng)).exp()).collect();
            Repeated::median(&repeats)
        };
        let (hold, late) = (factor(), factor());
        OverloadCalibration::by_part(|part| {
            Some(OverloadedLock {
                hold_ns: self.lock.hold_ns * hold.get(part),
                late_ns: self.lock.late_ns * late.get(part),
                ..self.lock.clone()
            })
        })
    }

    fn block(&mut self, kind: BlockKind) -> Result<BlockSamples, LabError> {
        let Draws { time, planned, loops, seed, machine, slower, .. } = &mut self.draws;
        let began_s = time.now().since_start_s;
        let now_ns = time.elapsed_ns.get();
        let cpus = &planned.cell.cpus;
        let (rng, round) = &mut loops[usize::from(kind == BlockKind::Stamped)];
        let nth = u64::from(*round);
        *round += 1;
        let noise = 1.0 + 0.01 * (rng.random::<f64>() - 0.5);
        let slowed = noise
            * *slower
            * machine.regimes.slower(now_ns, *seed, &planned.cell)
            * machine.regimes.noise(rng);
        let phases = phases(self.subject.hold_ns, &self.overload);
        let rules = rules(&self.overload);
        let lock = OverloadedLock { hold_ns: self.lock.hold_ns * slowed, ..self.lock.clone() };
        // All inputs of the simulation are constants or were validated with the plan.
        let callers = simulate(&lock, &rules, &due_ns(&phases, nth), nth).unwrap_or_default();
        let mut lateness = Histogram::new();
        for _ in callers.iter().filter(|caller| !caller.in_front) {
            lateness.record_ps((lock.late_ns * 1e3 * (0.5 + rng.random::<f64>())) as u64);
        }
        let served = |caller: &Caller| match caller.fate {
            Fate::Served(at_ns) => Some((caller.due_ns, at_ns)),
            Fate::Refused | Fate::GaveUp => None,
        };
        let waits: Vec<Waited> = callers
            .iter()
            .filter_map(served)
            .zip(cpus.iter().cycle())
            .map(|((due_ns, at_ns), cpu)| Waited {
                ps: ((at_ns - due_ns) * 1e3) as u64,
                at_s: began_s + at_ns / 1e9,
                cpu: *cpu,
            })
            .collect();
        let last_ns = callers.iter().filter_map(served).map(|(_, at_ns)| at_ns + lock.hold_ns);
        let stolen_ns = Thief::takes(rng, 1).map_or(0, |(_, ps)| ps / 1000);
        let elapsed_ns = last_ns.fold(phases.length_ns(), f64::max) as u64 + stolen_ns;
        let outcome = outcome(&callers, &phases, rules.deadline_ns);
        let (count, threads) = (waits.len() as u64, u64::from(self.subject.threads));
        let each = (0..threads).map(|thread| (count + threads - 1 - thread) / threads);
        let contention = ContentionBlock {
            work: (count as f64 * self.subject.hold_ns as f64).into(),
            acquisitions: each.map(Into::into).collect(),
            overload: Some(Box::new(block(&outcome, &phases, lock.hold_ns, lateness))),
            ..ContentionBlock::default()
        };
        time.block_took(elapsed_ns);
        let busy_ns = count * self.subject.hold_ns;
        let counters = machine.thief.counters(stolen_ns, [busy_ns, busy_ns / 20, 2 * count], count);
        let samples = Samples::Contention(Acquisitions {
            block: contention,
            elapsed_ns,
            waits,
            excerpt: None,
        });
        Ok(BlockSamples { counters, samples })
    }
}
