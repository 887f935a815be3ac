//! Cost of acquiring and releasing a lock around an empty critical section.

use threadtoll_record::{LockSubject, Spread, Work};

use crate::LabError;
use crate::contention::calibration_schedule::{PASSES, SLICES};
use crate::contention::lengths::TimeDistributions;
use crate::contention::repeated::Repeated;
use crate::lock::LockSpec;

use super::Bench;
use super::cache::Repeats;
use super::slices::{MAX_STAMPED, rates, slice, wait_ns};

/// Minimum think time, in units of work, at which waiting is rare. 200 units take some hundred
/// nanoseconds.
const SHORT_UNITS: f64 = 200.0;
/// Think time at which threads rarely wait, as a multiple of the lock's cost.
const RARELY: f64 = 20.0;

/// Acquisitions per nanosecond in each slice, with the lock and without it.
#[derive(Clone, Debug, Default)]
pub(super) struct AcquisitionRates {
    with: Vec<f64>,
    without: Vec<f64>,
}

impl Repeats for AcquisitionRates {
    fn append(&mut self, more: Self) {
        self.with.extend(more.with);
        self.without.extend(more.without);
    }
}

impl AcquisitionRates {
    pub(super) fn cost(&self) -> AcquisitionCost {
        let (with, without) = (Repeated::median(&self.with), Repeated::median(&self.without));
        let loop_ns = Repeated::by_part(|part| 1.0 / without.get(part));
        let lock_ns = Repeated::by_part(|part| (1.0 / with.get(part) - loop_ns.get(part)).max(0.0));
        AcquisitionCost { lock_ns, loop_ns }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct AcquisitionCost {
    /// Cost of the lock alone, without the surrounding loop.
    pub(super) lock_ns: Repeated,
    pub(super) loop_ns: Repeated,
}

pub(super) fn acquisition_rates(
    bench: &Bench,
    subject: &LockSubject,
    lock: &LockSpec,
    places: &[Vec<u32>],
) -> Result<AcquisitionRates, LabError> {
    let lengths = lengths(0.0, subject, lock);
    let mut threads = bench.threads(&subject.lock, lock, Work::Spin, places)?;
    let with = rates(bench, &mut threads, lengths, |done| done.acquisitions)?;
    drop(threads);
    let mut threads = bench.threads(&subject.lock, &lock.without_lock(), Work::Spin, places)?;
    let without = rates(bench, &mut threads, lengths, |done| done.acquisitions)?;
    Ok(AcquisitionRates { with, without })
}

/// Returns the think time, in units of work, at which threads rarely wait for a lock that is held
/// for `hold_units`.
pub(super) fn rare_think_units(hold_units: f64) -> f64 {
    SHORT_UNITS.max(RARELY * hold_units)
}

/// Times of acquisitions, in nanoseconds and by slice. The threads rarely wait for each other, but
/// find the lock's cache line on another CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct RareAcquisitions {
    costs: Vec<f64>,
    waits: Vec<f64>,
}

impl Repeats for RareAcquisitions {
    fn append(&mut self, more: Self) {
        self.costs.extend(more.costs);
        self.waits.extend(more.waits);
    }
}

impl RareAcquisitions {
    pub(super) fn cost_ns(&self) -> Repeated {
        let costs = Repeated::median(&self.costs);
        Repeated::by_part(|part| costs.get(part).max(0.0))
    }

    /// Time between the stamps before and after the lock is acquired.
    pub(super) fn wait_ns(&self) -> Repeated {
        Repeated::median(&self.waits)
    }
}

pub(super) fn rare(
    bench: &Bench,
    subject: &LockSubject,
    lock: &LockSpec,
    places: &[Vec<u32>],
    think_units: f64,
) -> Result<RareAcquisitions, LabError> {
    let lengths = lengths(think_units, subject, lock);
    let mut with = bench.threads(&subject.lock, lock, Work::Spin, places)?;
    let mut without = bench.threads(&subject.lock, &lock.without_lock(), Work::Spin, places)?;
    with.prepare(lengths, 1)?;
    without.prepare(lengths, 1)?;
    let mut rare = RareAcquisitions::default();
    for _ in 0..SLICES / PASSES {
        let counted = slice(bench, &mut with, 16, |done| done.acquisitions)?;
        let without = slice(bench, &mut without, 16, |done| done.acquisitions)?;
        rare.costs.push(places.len() as f64 * (1.0 / counted - 1.0 / without));
        rare.waits.push(wait_ns(bench, &mut with, MAX_STAMPED)?);
    }
    Ok(rare)
}

fn lengths(think: f64, subject: &LockSubject, lock: &LockSpec) -> TimeDistributions {
    TimeDistributions {
        spread: [Spread::Fixed, Spread::Exponential],
        hold: 0.0,
        think,
        stripes: lock.stripes,
        read_share: subject.read_share.map_or(0.0, |share| share.value()),
    }
}
