//! Time of a unit of work: on a single thread, and on several that contend for a lock.

use threadtoll_record::{LockSubject, Spread, Work};

use crate::LabError;
use crate::contention::calibration_schedule::{
    MAX_ALONE, PASSES, SLICES, slowdown_rounds, slowdown_slice_ns,
};
use crate::contention::lengths::TimeDistributions;
use crate::lock::LockSpec;

use super::Bench;
use super::slices::{MAX_STAMPED, pace_on, slice};

/// Minimum number of units per stretch. A stamp stalls the pipeline: in stretches of 1,000 units, a
/// unit took a tenth longer than in a cell.
const LONG_UNITS: f64 = 30_000.0;

pub(super) fn unit_ns(bench: &Bench, place: &[Vec<u32>]) -> Result<Vec<f64>, LabError> {
    let mut threads = bench.threads("units of work", &LockSpec::NO_LOCK, Work::Spin, place)?;
    let lengths = TimeDistributions {
        spread: [Spread::Fixed; 2],
        hold: 0.0,
        think: LONG_UNITS,
        stripes: 1,
        read_share: 0.0,
    };
    threads.prepare(lengths, 1)?;
    let units = (0..SLICES / PASSES).map(|_| {
        slice(bench, &mut threads, 1, |done| done.units).map(|units_per_ns| 1.0 / units_per_ns)
    });
    units.collect()
}

/// Returns, for each round of slices, the factor by which a unit takes longer while a thread runs
/// at each of these places than while a single thread runs. Each thread holds the lock for half of
/// a cycle. A factor compares slices of one round, because the machine's speed varies by more than
/// the factor from second to second.
///
/// The threads use the lock, because a unit takes longer between hand-offs than in uninterrupted
/// computing: 1% to 2% longer on a virtual machine.
pub(super) fn slowdown(
    bench: &Bench,
    subject: &LockSubject,
    lock: &LockSpec,
    busy: &[Vec<u32>],
    unit_ns: f64,
) -> Result<Vec<f64>, LabError> {
    if busy.len() == 1 {
        return Ok(vec![1.0]);
    }
    let mut threads = bench.threads(&subject.lock, lock, Work::Spin, busy)?;
    let half_ns = subject.cycle_ns() as f64 / 2.0;
    let lengths = TimeDistributions {
        spread: [subject.spread; 2],
        hold: half_ns / unit_ns,
        think: half_ns / unit_ns,
        stripes: lock.stripes,
        read_share: 0.0,
    };
    threads.prepare(lengths, 1)?;
    let length_ns = slowdown_slice_ns(subject);
    let most = MAX_STAMPED.min((64 + 4 * length_ns / subject.cycle_ns().max(1)) as usize);
    let alone_on = busy.len().min(MAX_ALONE);
    let mut ratios = Vec::with_capacity(slowdown_rounds(alone_on));
    for _ in 0..slowdown_rounds(alone_on) {
        let mut alone = 0.0;
        for turn in 0..alone_on {
            let thread = turn * busy.len() / alone_on;
            alone += pace_on(bench, &mut threads, thread..thread + 1, length_ns, most)?;
        }
        let all = pace_on(bench, &mut threads, 0..busy.len(), length_ns, most)?;
        ratios.push(alone / alone_on as f64 / all);
    }
    Ok(ratios)
}
