//! Cost of an acquisition and release around an empty section.

use threadtoll_record::{LockSubject, Spread, Work};

use crate::LabError;
use crate::contention::calibration_schedule::SLICES;
use crate::contention::lengths::TimeDistributions;
use crate::contention::repeated::Repeated;
use crate::lock::LockSpec;

use super::Bench;
use super::slices::{rates, slice};

/// Shortest think time for rare waiting, in units of work: some hundred nanoseconds.
const SHORT_UNITS: f64 = 200.0;
/// Think time as a multiple of the lock's cost, large enough that threads rarely wait.
const RARELY: f64 = 20.0;

/// In nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct AcquisitionCost {
    /// Without the surrounding loop.
    pub(super) lock_ns: Repeated,
    pub(super) loop_ns: Repeated,
}

/// Measures a single thread, or the throughput of several.
pub(super) fn cost(
    bench: &Bench,
    subject: &LockSubject,
    lock: &LockSpec,
    places: &[Vec<u32>],
) -> Result<AcquisitionCost, LabError> {
    let lengths = lengths(0.0, subject, lock);
    let mut threads = bench.threads(&subject.lock, lock, Work::Spin, places)?;
    let with = rates(bench, &mut threads, lengths, |done| done.acquisitions)?;
    drop(threads);
    let mut threads = bench.threads(&subject.lock, &lock.without_lock(), Work::Spin, places)?;
    let without = rates(bench, &mut threads, lengths, |done| done.acquisitions)?;
    let (with, without) = (Repeated::median(&with), Repeated::median(&without));
    let loop_ns = Repeated::by_part(|part| 1.0 / without.get(part));
    let lock_ns = Repeated::by_part(|part| (1.0 / with.get(part) - loop_ns.get(part)).max(0.0));
    Ok(AcquisitionCost { lock_ns, loop_ns })
}

/// Think time, in units of work, at which threads with this hold time rarely wait.
pub(super) fn rare_think_units(hold_units: f64) -> f64 {
    SHORT_UNITS.max(RARELY * hold_units)
}

/// Measures threads that think long enough to rarely wait for each other, but find the lock's cache
/// line on another CPU.
pub(super) fn rare_ns(
    bench: &Bench,
    subject: &LockSubject,
    lock: &LockSpec,
    places: &[Vec<u32>],
    think_units: f64,
) -> Result<Repeated, LabError> {
    let lengths = lengths(think_units, subject, lock);
    let mut with = bench.threads(&subject.lock, lock, Work::Spin, places)?;
    let mut without = bench.threads(&subject.lock, &lock.without_lock(), Work::Spin, places)?;
    with.prepare(lengths, 1)?;
    without.prepare(lengths, 1)?;
    let mut costs = Vec::with_capacity(SLICES);
    for _ in 0..SLICES {
        let with = slice(bench, &mut with, 16, |done| done.acquisitions)?;
        let without = slice(bench, &mut without, 16, |done| done.acquisitions)?;
        costs.push(places.len() as f64 * (1.0 / with - 1.0 / without));
    }
    let costs = Repeated::median(&costs);
    Ok(Repeated::by_part(|part| costs.get(part).max(0.0)))
}

/// Distributions with an empty section.
fn lengths(think: f64, subject: &LockSubject, lock: &LockSpec) -> TimeDistributions {
    TimeDistributions {
        spread: [Spread::Fixed, Spread::Exponential],
        hold: 0.0,
        think,
        stripes: lock.stripes,
        read_share: subject.read_share.map_or(0.0, |share| share.value()),
    }
}
