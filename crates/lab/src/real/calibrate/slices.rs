//! Throughput and mean times of threads, measured in short time slices.

use std::ops::Range;
use std::time::{Duration, Instant};

use crate::LabError;
use crate::contention::calibration_schedule::{PASSES, SLICE_NS, SLICE_WARM_UP_NS, SLICES};
use crate::contention::lengths::TimeDistributions;
use crate::lock::contender::Done;

use super::super::lock_threads::{LockThreads, Task, ThreadReport};
use super::Bench;

/// Maximum number of attempts at a slice in which some thread starts too late. After that, the
/// attempt with the fewest late threads counts.
const TRIES: u32 = 16;
/// Maximum number of acquisitions that a thread keeps per slice.
pub(super) const MAX_STAMPED: usize = 1 << 14;

/// Total throughput of all threads per nanosecond, for each slice of a pass.
pub(super) fn rates(
    bench: &Bench,
    threads: &mut LockThreads,
    lengths: TimeDistributions,
    of: impl Fn(&Done) -> f64,
) -> Result<Vec<f64>, LabError> {
    threads.prepare(lengths, 1)?;
    (0..SLICES / PASSES).map(|_| slice(bench, threads, 64, &of)).collect()
}

pub(super) fn slice(
    bench: &Bench,
    threads: &mut LockThreads,
    batch: u32,
    of: impl Fn(&Done) -> f64,
) -> Result<f64, LabError> {
    let all = 0..threads.count();
    run(bench, threads, all, Task::Counted(batch), SLICE_NS, |reports, length_ns| {
        reports.iter().map(|report| of(&report.done)).sum::<f64>() / length_ns
    })
}

/// Runs only some of the threads for one slice of this length. Returns the units of work per
/// nanosecond of hold and think time. Each thread keeps at most `most` acquisitions.
pub(super) fn pace_on(
    bench: &Bench,
    threads: &mut LockThreads,
    some: Range<usize>,
    length_ns: u64,
    most: usize,
) -> Result<f64, LabError> {
    run(bench, threads, some, Task::Stamped(most), length_ns, |reports, _| {
        let (mut units, mut ticks) = (0, 0);
        for one in reports.iter().flat_map(|report| &report.acquisitions) {
            units += one.think_units + one.hold_units;
            ticks += one.requested_at.saturating_sub(one.idle_at);
            ticks += one.released_at.saturating_sub(one.acquired_at);
        }
        if ticks > 0 { units as f64 / bench.clock.ns(ticks) } else { 0.0 }
    })
}

/// Returns the mean time from requesting the lock to acquiring it in one slice, in nanoseconds.
pub(super) fn wait_ns(
    bench: &Bench,
    threads: &mut LockThreads,
    most: usize,
) -> Result<f64, LabError> {
    let all = 0..threads.count();
    run(bench, threads, all, Task::Stamped(most), SLICE_NS, |reports, _| {
        let acquisitions = reports.iter().flat_map(|report| &report.acquisitions);
        let (mut count, mut ticks) = (0, 0);
        for one in acquisitions {
            count += 1;
            ticks += one.acquired_at.saturating_sub(one.requested_at);
        }
        if count > 0 { bench.clock.ns(ticks) / f64::from(count) } else { 0.0 }
    })
}

/// Runs some of the threads for one slice. `figure` computes the result from their reports and the
/// slice's length in nanoseconds. A result of 0 means that the threads did nothing, and the slice
/// is repeated.
fn run(
    bench: &Bench,
    threads: &mut LockThreads,
    some: Range<usize>,
    task: Task,
    length_ns: u64,
    figure: impl Fn(&[ThreadReport], f64) -> f64,
) -> Result<f64, LabError> {
    let tasks = vec![task; some.len()];
    let deadline = Instant::now() + bench.patience;
    let mut best: Option<(usize, f64)> = None;
    for tried in 1.. {
        let window = threads.window_for(some.len(), SLICE_WARM_UP_NS, length_ns);
        let reports = threads.run_on(some.clone(), tasks.clone(), window, Duration::ZERO)?;
        // A thread that the machine kept off its CPU starts late. Then the slice is repeated.
        let late = reports.iter().filter(|report| report.late).count();
        let figure = figure(&reports, bench.clock.ns(window.until - window.from));
        if figure > 0.0 && best.is_none_or(|(least, _)| late < least) {
            best = Some((late, figure));
        }
        let over = Instant::now() >= deadline;
        match best {
            Some((0, figure)) => return Ok(figure),
            Some((_, figure)) if over || tried >= TRIES || !threads.may_retry() => {
                return Ok(figure);
            }
            None if over => break,
            _ => {}
        }
    }
    Err(threads.stuck())
}
