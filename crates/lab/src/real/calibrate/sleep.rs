//! Overshoot of sleeps.

use std::time::Duration;

use threadtoll_model::queue_trace::Acquisition;
use threadtoll_model::{ModelError, Shape};
use threadtoll_record::{Cell, LockSubject, Spread, Work};
use threadtoll_stats::upper_median;

use crate::LabError;
use crate::contention::calibration_schedule::sleeps;
use crate::contention::lengths::{STEPS, TimeDistributions, quantiles};
use crate::contention::repeated::Part;
use crate::lock::LockSpec;

use super::super::lock_threads::{Task, cpus_by_thread};
use super::Bench;
use super::cache::Repeats;

/// An overshoot above this multiple of the median is left out: the machine was disturbed.
const DISTURBED: f64 = 20.0;

/// Overshoots in nanoseconds, in the order in which the sleeps began.
#[derive(Clone, Debug, Default)]
pub(super) struct Overshoots {
    pub(super) hold: Vec<f64>,
    pub(super) think: Vec<f64>,
}

impl Repeats for Overshoots {
    fn append(&mut self, more: Self) {
        self.hold.extend(more.hold);
        self.think.extend(more.think);
    }
}

impl Overshoots {
    pub(super) fn mean_cycle_ns(&self, part: Part) -> f64 {
        let mean = |over: &[f64]| {
            let over = part.of(over);
            over.iter().sum::<f64>() / over.len().max(1) as f64
        };
        mean(&self.hold) + mean(&self.think)
    }
}

/// Measures how late the sleeps of threads end, without a lock.
pub(super) fn overshoots(
    bench: &Bench,
    cell: &Cell,
    subject: &LockSubject,
    threads: u32,
) -> Result<Overshoots, LabError> {
    let places = cpus_by_thread(cell.placement, &cell.cpus, threads);
    let mut sleepers = bench.threads("sleeps", &LockSpec::NO_LOCK, Work::Sleep, &places)?;
    let lengths = TimeDistributions {
        // Random think times keep threads from waking all at once. In the cell, the lock does so.
        spread: [subject.spread, Spread::Exponential],
        hold: subject.hold_ns as f64,
        think: subject.think_ns as f64,
        stripes: 1,
        read_share: 0.0,
    };
    sleepers.prepare(lengths, 2)?;
    let (cycles, length_ns) = sleeps(subject, threads);
    let window = sleepers.window(0, length_ns);
    let tasks = vec![Task::Stamped(64 * cycles as usize); sleepers.count()];
    let longer = Duration::from_nanos(subject.cycle_ns().saturating_mul(20).min(1 << 60));
    let reports = sleepers.run(tasks, window, longer)?;
    let over = |begin: u64, end: u64, intended_ns: u64| {
        (intended_ns > 0).then(|| bench.clock.ns(end.saturating_sub(begin)) - intended_ns as f64)
    };
    let mut overshoots = Overshoots::default();
    let mut acquisitions: Vec<Acquisition> =
        reports.into_iter().flat_map(|report| report.acquisitions).collect();
    acquisitions.sort_by_key(|one| one.idle_at);
    for one in acquisitions {
        overshoots.hold.extend(over(one.acquired_at, one.released_at, one.hold_units));
        overshoots.think.extend(over(one.idle_at, one.requested_at, one.think_units));
    }
    Ok(Overshoots { hold: undisturbed(overshoots.hold), think: undisturbed(overshoots.think) })
}

fn undisturbed(mut over: Vec<f64>) -> Vec<f64> {
    let median = upper_median(&mut over.clone(), f64::total_cmp).unwrap_or(f64::NAN);
    over.retain(|late| *late <= DISTURBED * median.max(1e3));
    over
}

/// Returns the distribution of the intended lengths, each with a measured overshoot added.
pub(super) fn shape(spread: Spread, mean_ns: f64, over: &[f64]) -> Result<Shape, ModelError> {
    if mean_ns == 0.0 || over.is_empty() {
        return super::shape(spread, mean_ns);
    }
    let lengths = quantiles(spread, mean_ns, STEPS);
    // The stride gives neighbouring lengths different overshoots, and uses all overshoots equally
    // often.
    let longer: Vec<f64> = lengths
        .iter()
        .enumerate()
        .map(|(at, length)| (length + over[(at * 7919) % over.len()]).max(0.0))
        .collect();
    Shape::sampled(&longer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_that_are_twenty_times_as_late_as_the_median_are_left_out() {
        assert_eq!(undisturbed(vec![50e3, 1e6, 40e3, 60e3, 1.1e6]), [50e3, 1e6, 40e3, 60e3, 1.1e6]);
        assert_eq!(undisturbed(vec![50e3, 1e6, 40e3, 60e3, 1.3e6]), [50e3, 1e6, 40e3, 60e3]);
        assert!(undisturbed(Vec::new()).is_empty());
    }
}
