//! Measures the inputs of the models that predict a group's lock cells, before the cells are
//! measured.
//!
//! The calibration uses threads and locks of its own: a prediction must not depend on the cell that
//! it predicts.

mod acquisition;
mod cache;
mod handoff;
mod sleep;
mod slices;
mod turns;
mod work;

use std::time::Duration;

use threadtoll_machine::clock::Clock;
use threadtoll_model::{ModelError, Shape};
use threadtoll_record::{Cell, LockSubject, Placement, Share, Spread, Text, Work};

use crate::LabError;
use crate::contention::lengths::TimeDistributions;
use crate::contention::predict::{Calibration, HandoffModel, ThreadTimes, cpus, inputs};
use crate::contention::repeated::{Part, Repeated};
use crate::lock::{GrantPolicy, LockSpec};

use super::lock_threads::{LockThreads, cpus_by_thread};

use acquisition::{AcquisitionCost, AcquisitionRates, RareAcquisitions};
use cache::Cache;
use sleep::Overshoots;
use turns::Turns;

#[derive(Clone, Debug)]
pub(super) struct CellCalibration {
    /// Hold and think times, in units of work.
    pub(super) lengths: TimeDistributions,
    /// `None` if no model covers the cell.
    pub(super) calibration: Option<Calibration>,
}

/// Calibrates the cells of a group, sharing measurements between them.
pub(super) struct Calibrator {
    bench: Bench,
    /// Number of the current pass, from 1.
    pass: usize,
    units: Cache<Vec<Vec<u32>>, Vec<f64>>,
    slowdowns: Cache<(Contest, u64, Spread), Vec<f64>>,
    acquisitions: Cache<Contest, AcquisitionRates>,
    rare_acquisitions: Cache<Contest, RareAcquisitions>,
    handoffs: handoff::Handoffs,
    sleeps: Cache<(u32, u64, u64), Overshoots>,
    turns: Cache<String, Turns>,
}

type Contest = (Text, Option<Share>, u32);

#[derive(Clone, Copy)]
struct Bench {
    clock: Clock,
    patience: Duration,
}

impl Bench {
    fn signed_ns(&self, ticks: i64) -> f64 {
        let ns = self.clock.ns(ticks.unsigned_abs());
        if ticks < 0 { -ns } else { ns }
    }

    fn threads(
        &self,
        name: &str,
        lock: &LockSpec,
        work: Work,
        places: &[Vec<u32>],
    ) -> Result<LockThreads, LabError> {
        LockThreads::start(&self.clock, name, lock, work, places, self.patience)
    }
}

impl Calibrator {
    pub(super) fn new(clock: &Clock, patience: Duration) -> Self {
        Calibrator {
            bench: Bench { clock: *clock, patience },
            pass: 0,
            units: Cache::default(),
            slowdowns: Cache::default(),
            acquisitions: Cache::default(),
            rare_acquisitions: Cache::default(),
            handoffs: Cache::default(),
            sleeps: Cache::default(),
            turns: Cache::default(),
        }
    }

    pub(super) fn begin_pass(&mut self) {
        self.pass += 1;
    }

    /// Makes the cell's measurements, unless this pass has made them, and returns the calibration
    /// from all passes so far. The calibration is `None` for a single thread, which no model
    /// covers.
    pub(super) fn calibrate(
        &mut self,
        cell: &Cell,
        subject: &LockSubject,
        lock: &LockSpec,
    ) -> Result<CellCalibration, LabError> {
        let read_share = subject.read_share.map_or(0.0, |share| share.value());
        // The unit is measured on a single thread, so that all cells of a group do equal work.
        let unit_ns = match subject.work {
            Work::Spin => self.unit_ns(&cpus_by_thread(cell.placement, &cell.cpus[..1], 1))?,
            Work::Sleep => Repeated::exact(1.0),
        };
        let lengths = TimeDistributions {
            spread: [subject.spread; 2],
            hold: subject.hold_ns as f64 / unit_ns.get(Part::All),
            think: subject.think_ns as f64 / unit_ns.get(Part::All),
            stripes: lock.stripes,
            read_share,
        };
        if subject.is_alone() {
            return Ok(CellCalibration { lengths, calibration: None });
        }
        let cpus = cpus(cell);
        let busy = subject.threads.min(cpus);
        let alone = self.acquisition(subject, lock, cell.placement, &cell.cpus[..1], 1)?;
        let times = self.times(cell, subject, lock, unit_ns, alone.loop_ns)?;
        let never_waits = lock.policy() == GrantPolicy::NeverWaits;
        let together = subject.threads > 1 && cpus > 1;
        let shared_line = if never_waits && together {
            let cost = self.acquisition(subject, lock, cell.placement, &cell.cpus, busy)?;
            Some(cost.lock_ns)
        } else {
            None
        };
        let rare = if subject.work == Work::Spin && !never_waits && together {
            let pair_units = alone.lock_ns.get(Part::All) / unit_ns.get(Part::All);
            let think_units = acquisition::rare_think_units(pair_units);
            let (placement, cpus) = (cell.placement, &cell.cpus);
            Some(self.rare_acquisition(subject, lock, placement, cpus, busy, think_units)?)
        } else {
            None
        };
        let handoffs = if never_waits || subject.threads == 1 {
            handoff::CellHandoffs::default()
        } else {
            handoff::measure(&self.bench, &mut self.handoffs, self.pass, cell, subject, lock)?
        };
        let calibration = Calibration::by_part(|part| {
            let mut times = times.at(subject, part).ok()?;
            let mut pair_ns = alone.lock_ns.get(part);
            if let Some(cost_ns) = shared_line {
                // Threads never wait, so nothing is handed over, but the cache line has to move
                // between CPUs. The throughput of all threads together tells how long each
                // acquisition occupies the line.
                times.hold = Shape::fixed(cost_ns.get(part).max(0.0)).unwrap_or(times.hold);
                pair_ns = 0.0;
            }
            let mut free_ns = 0.0;
            if let Some(rare) = &rare {
                // A thread that takes a lock last held by another thread first waits for the cache
                // line. The effect is that of a longer think time.
                let travels_ns = (rare.cost_ns().get(part) - pair_ns).max(0.0);
                let think = &times.think;
                times.think = think.with_mean(think.mean_ns() + travels_ns).unwrap_or(times.think);
                free_ns = rare.wait_ns().get(part);
            }
            let handoff = HandoffModel::of(lock.policy(), &handoffs.at(part)).ok()?;
            let acquisition = (pair_ns, free_ns);
            inputs(subject, cpus, lock.stripes, times, acquisition, &handoff).ok()
        });
        Ok(CellCalibration { lengths, calibration })
    }

    fn times(
        &mut self,
        cell: &Cell,
        subject: &LockSubject,
        lock: &LockSpec,
        unit_ns: Repeated,
        loop_ns: Repeated,
    ) -> Result<Times, LabError> {
        match subject.work {
            Work::Spin => {
                let busy = subject.threads.min(cpus(cell));
                let places = cpus_by_thread(cell.placement, &cell.cpus, busy);
                let slowdown = self.slowdown(subject, lock, &places, unit_ns)?;
                Ok(Times::Computing { unit_ns, loop_ns, slowdown })
            }
            Work::Sleep => {
                // While a lock is always held, at most `unhindered` threads hold the lock or think;
                // all other threads wait. Threads sleep while they hold the lock and while they
                // think.
                let unhindered = subject.cycle_ns().div_ceil(subject.hold_ns.max(1)).max(1);
                let readers = subject.read_share.is_some_and(|share| share.value() > 0.0);
                let shared = readers || lock.policy() == GrantPolicy::NeverWaits;
                let most =
                    if shared { u64::MAX } else { unhindered.saturating_mul(lock.stripes.into()) };
                let asleep = u64::from(subject.threads).min(most) as u32;
                Ok(Times::Sleeping {
                    one: self.overshoots(cell, subject, 1)?,
                    together: self.overshoots(cell, subject, asleep)?,
                })
            }
        }
    }

    fn unit_ns(&mut self, place: &[Vec<u32>]) -> Result<Repeated, LabError> {
        let units = || work::unit_ns(&self.bench, place);
        Ok(Repeated::median(&self.units.measured(place.to_vec(), self.pass, units)?))
    }

    /// Returns the factor by which threads slow each other down when they compute and contend at
    /// the same time.
    fn slowdown(
        &mut self,
        subject: &LockSubject,
        lock: &LockSpec,
        busy: &[Vec<u32>],
        unit_ns: Repeated,
    ) -> Result<Repeated, LabError> {
        let key = (contest(subject, busy.len() as u32), subject.cycle_ns(), subject.spread);
        let ratios = self.slowdowns.measured(key, self.pass, || {
            work::slowdown(&self.bench, subject, lock, busy, unit_ns.get(Part::All))
        })?;
        Ok(Repeated::median(&ratios))
    }

    fn acquisition(
        &mut self,
        subject: &LockSubject,
        lock: &LockSpec,
        placement: Placement,
        cpus: &[u32],
        threads: u32,
    ) -> Result<AcquisitionCost, LabError> {
        let places = cpus_by_thread(placement, cpus, threads);
        let rates = self.acquisitions.measured(contest(subject, threads), self.pass, || {
            acquisition::acquisition_rates(&self.bench, subject, lock, &places)
        })?;
        Ok(rates.cost())
    }

    fn rare_acquisition(
        &mut self,
        subject: &LockSubject,
        lock: &LockSpec,
        placement: Placement,
        cpus: &[u32],
        threads: u32,
        think_units: f64,
    ) -> Result<RareAcquisitions, LabError> {
        let places = cpus_by_thread(placement, cpus, threads);
        self.rare_acquisitions.measured(contest(subject, threads), self.pass, || {
            acquisition::rare(&self.bench, subject, lock, &places, think_units)
        })
    }

    fn overshoots(
        &mut self,
        cell: &Cell,
        subject: &LockSubject,
        threads: u32,
    ) -> Result<Overshoots, LabError> {
        let key = (threads, subject.hold_ns, subject.think_ns);
        let overshoots = || sleep::overshoots(&self.bench, cell, subject, threads);
        self.sleeps.measured(key, self.pass, overshoots)
    }
}

fn contest(subject: &LockSubject, threads: u32) -> Contest {
    (subject.lock.clone(), subject.read_share, threads)
}

/// Measurements that determine the hold and think times of a cell's threads.
enum Times {
    Computing { unit_ns: Repeated, loop_ns: Repeated, slowdown: Repeated },
    Sleeping { one: Overshoots, together: Overshoots },
}

impl Times {
    fn at(&self, subject: &LockSubject, part: Part) -> Result<ThreadTimes, ModelError> {
        let spread = subject.spread;
        let (hold_ns, think_ns) = (subject.hold_ns as f64, subject.think_ns as f64);
        match self {
            Times::Computing { unit_ns, loop_ns, slowdown } => {
                // The cell's work is a fixed number of units, however long a unit takes.
                let off = unit_ns.get(part) / unit_ns.get(Part::All);
                let (hold_ns, think_ns) = (hold_ns * off, think_ns * off);
                let (loop_ns, slowdown) = (loop_ns.get(part), slowdown.get(part));
                // The overhead of the loop counts as think time (time outside the lock). The
                // overhead matters only if a cycle takes a few nanoseconds.
                Ok(ThreadTimes {
                    hold: shape(spread, hold_ns * slowdown)?,
                    think: shape(spread, (think_ns + loop_ns) * slowdown)?,
                    alone_ns: hold_ns + think_ns + loop_ns,
                    slowdown: Some(slowdown),
                })
            }
            Times::Sleeping { one, together } => Ok(ThreadTimes {
                hold: sleep::shape(spread, hold_ns, part.of(&together.hold))?,
                think: sleep::shape(spread, think_ns, part.of(&together.think))?,
                alone_ns: subject.cycle_ns() as f64 + one.mean_cycle_ns(part),
                slowdown: None,
            }),
        }
    }
}

fn shape(spread: Spread, mean_ns: f64) -> Result<Shape, ModelError> {
    match spread {
        Spread::Fixed => Shape::fixed(mean_ns),
        Spread::Exponential => Shape::exponential(mean_ns),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use threadtoll_machine::place::{allowed_cpus, pin_to};

    use super::*;

    /// A busy program on the same CPU takes half of the time, but leaves some slices in which a
    /// unit can be measured. Without such a slice, the cells' hold and think times would be zero.
    #[test]
    fn a_unit_is_as_long_beside_a_busy_program() {
        let _alone = threadtoll_machine::machine_lock().unwrap();
        let clock = Clock::gate().unwrap().0;
        let place = vec![vec![allowed_cpus()[0]]];
        let unit_ns = || {
            let mut calibrator = Calibrator::new(&clock, Duration::from_secs(20));
            calibrator.begin_pass();
            calibrator.unit_ns(&place).map(|unit_ns| unit_ns.get(Part::All))
        };
        let over = AtomicBool::new(false);
        let (alone, beside) = std::thread::scope(|scope| {
            let alone = unit_ns();
            for _ in 0..3 {
                scope.spawn(|| {
                    pin_to(&place[0]).unwrap();
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let beside = unit_ns();
            over.store(true, Ordering::Relaxed);
            (alone, beside)
        });
        let (alone, beside) = (alone.unwrap(), beside.unwrap());
        assert!(beside < 100.0 * alone, "{beside} ns beside others, {alone} ns alone");
    }
}
