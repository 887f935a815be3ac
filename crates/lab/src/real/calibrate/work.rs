//! Time of a unit of work on a single thread, and on several that are busy at once.

use threadtoll_record::{Spread, Work};

use crate::LabError;
use crate::contention::calibration_schedule::{MAX_ALONE, SLICES, slowdown_rounds};
use crate::contention::lengths::TimeDistributions;
use crate::contention::repeated::Repeated;
use crate::lock::LockSpec;

use super::super::lock_threads::LockThreads;
use super::Bench;
use super::slices::{slice, slice_on};

/// Units per stretch: a stamp stops the pipeline, so that in stretches of 1,000 a unit took a tenth
/// longer than in a cell.
const LONG_UNITS: f64 = 30_000.0;

/// Time of a unit on a single thread, in nanoseconds.
pub(super) fn unit_ns(bench: &Bench, place: &[Vec<u32>]) -> Result<Repeated, LabError> {
    let mut threads = workers(bench, place)?;
    let units = (0..SLICES).map(|_| {
        slice(bench, &mut threads, 1, |done| done.units).map(|units_per_ns| 1.0 / units_per_ns)
    });
    Ok(Repeated::median(&units.collect::<Result<Vec<f64>, _>>()?))
}

/// Ratio of a unit's time on threads that are busy at all these places at once to its time on a
/// single thread at each. The median of rounds of slices, because machine speed varies more than
/// that from second to second.
pub(super) fn slowdown(bench: &Bench, busy: &[Vec<u32>]) -> Result<Repeated, LabError> {
    if busy.len() == 1 {
        return Ok(Repeated::exact(1.0));
    }
    let mut threads = workers(bench, busy)?;
    let alone_on = busy.len().min(MAX_ALONE);
    let mut ratios = Vec::with_capacity(slowdown_rounds(alone_on));
    for _ in 0..slowdown_rounds(alone_on) {
        let mut alone = 0.0;
        for turn in 0..alone_on {
            let thread = turn * busy.len() / alone_on;
            alone += slice_on(bench, &mut threads, thread..thread + 1, 1, |done| done.units)?;
        }
        let all = slice(bench, &mut threads, 1, |done| done.units)?;
        ratios.push(alone / alone_on as f64 * busy.len() as f64 / all);
    }
    Ok(Repeated::median(&ratios))
}

fn workers(bench: &Bench, places: &[Vec<u32>]) -> Result<LockThreads, LabError> {
    let mut threads = bench.threads("units of work", &LockSpec::NO_LOCK, Work::Spin, places)?;
    let lengths = TimeDistributions {
        spread: [Spread::Fixed; 2],
        hold: 0.0,
        think: LONG_UNITS,
        stripes: 1,
        read_share: 0.0,
    };
    threads.prepare(lengths, 1)?;
    Ok(threads)
}
