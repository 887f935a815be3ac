//! Throughput of threads in time slices.

use std::ops::Range;
use std::time::{Duration, Instant};

use crate::LabError;
use crate::contention::calibration_schedule::{SLICE_NS, SLICE_WARM_UP_NS, SLICES};
use crate::contention::contender::Done;
use crate::contention::lengths::TimeDistributions;

use super::super::lock_threads::{LockThreads, Task};
use super::Bench;

/// Most attempts at a slice that some thread started too late; after that, the best one counts.
const TRIES: u32 = 16;

/// Total throughput of all threads per nanosecond, by slice.
pub(super) fn rates(
    bench: &Bench,
    threads: &mut LockThreads,
    lengths: TimeDistributions,
    of: impl Fn(&Done) -> f64,
) -> Result<Vec<f64>, LabError> {
    threads.prepare(lengths, 1)?;
    (0..SLICES).map(|_| slice(bench, threads, 64, &of)).collect()
}

/// Total throughput of all threads in one slice, per nanosecond.
pub(super) fn slice(
    bench: &Bench,
    threads: &mut LockThreads,
    batch: u32,
    of: impl Fn(&Done) -> f64,
) -> Result<f64, LabError> {
    let all = 0..threads.count();
    slice_on(bench, threads, all, batch, of)
}

/// Throughput of some of the threads in one slice, per nanosecond.
pub(super) fn slice_on(
    bench: &Bench,
    threads: &mut LockThreads,
    some: Range<usize>,
    batch: u32,
    of: impl Fn(&Done) -> f64,
) -> Result<f64, LabError> {
    let tasks = vec![Task::Counted(batch); some.len()];
    let deadline = Instant::now() + bench.patience;
    let mut best: Option<(usize, f64)> = None;
    for tried in 1.. {
        let window = threads.window_for(some.len(), SLICE_WARM_UP_NS, SLICE_NS);
        let reports = threads.run_on(some.clone(), tasks.clone(), window, Duration::ZERO)?;
        // A slice is invalid if the machine kept threads from their CPUs.
        let late = reports.iter().filter(|report| report.late).count();
        let done: f64 = reports.iter().map(|report| of(&report.done)).sum();
        if done > 0.0 && best.is_none_or(|(least, _)| late < least) {
            best = Some((late, done / bench.clock.ns(window.until - window.from)));
        }
        let over = Instant::now() >= deadline;
        match best {
            Some((0, rate)) => return Ok(rate),
            Some((_, rate)) if over || tried >= TRIES || !threads.may_retry() => return Ok(rate),
            None if over => break,
            _ => {}
        }
    }
    Err(threads.stuck())
}
