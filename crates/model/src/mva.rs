//! Mean value analysis: several locks, exponential hold times, think times of any distribution,
//! free hand-offs.
//!
//! Threads think, and then go to one of the locks, chosen at random. With `N` threads, the
//! residence time at a lock is `d (1 + q)`, where `d` is the lock's demand and `q` the number of
//! threads at the lock in a system with `N−1` threads (M. Reiser and S. S. Lavenberg, *Mean-value
//! analysis of closed multichain queuing networks*, J. ACM 27, 1980). This is exact for
//! product-form networks (F. Baskett, K. M. Chandy, R. R. Muntz and F. G. Palacios, *Open, closed,
//! and mixed networks of queues with different classes of customers*, J. ACM 22, 1975).
//!
//! A lock that is striped `k` ways corresponds to `k` stations, each with `1/k` of the visits.

use crate::error::{MAX_LOCKS, number, threads as checked_threads, time};
use crate::{Load, ModelError, Performance};

/// A lock, and the visits of a task to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Station {
    /// Mean number of acquisitions per task; less than 1 if only some tasks take the lock.
    pub visits: f64,
    /// Mean hold time of a visit, in nanoseconds.
    pub hold_ns: f64,
}

/// Long-run figures of one of several locks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StationPerformance {
    /// Share of time for which the lock is held.
    pub utilisation: f64,
    /// Mean number of threads that wait for the lock, not counting the holder.
    pub queue_mean: f64,
    /// Mean number of threads that wait for the lock, as seen by a thread that just acquired it.
    pub queue_on_entry: f64,
}

/// Long-run figures of `threads` threads that visit `stations`, and those of each station.
///
/// The hold time of a task is the sum over its visits. `queue_on_entry` is averaged over all
/// acquisitions. The computing time is proportional to threads times stations; for equal stations,
/// use [`striped`].
///
/// # Errors
///
/// If there is no station, a figure is negative or NaN, all times are zero, or the number of
/// threads is zero.
pub fn solve(
    stations: &[Station],
    think_ns: f64,
    threads: u32,
) -> Result<(Performance, Vec<StationPerformance>), ModelError> {
    checked_threads(threads)?;
    if stations.is_empty() {
        return Err(ModelError::TooFew { what: "locks", least: 1, given: 0 });
    }
    let mut demands = Vec::with_capacity(stations.len());
    for station in stations {
        if !(0.0..=1e9).contains(&station.visits) {
            return Err(ModelError::Figure {
                what: "visits",
                value: station.visits,
                range: "from 0 to 1e9",
            });
        }
        demands.push(time(
            "hold time of all visits",
            station.visits * time("hold time", station.hold_ns)?,
        )?);
    }
    let load = Load::new(demands.iter().sum(), think_ns)?;
    let mut present = vec![0.0; demands.len()];
    let mut waiting = vec![0.0; demands.len()];
    let mut waiting_before = waiting.clone();
    let mut per_ns = 0.0;
    for k in 1..=threads {
        let residence: f64 =
            demands.iter().zip(&present).map(|(demand, queue)| demand * (1.0 + queue)).sum();
        per_ns = f64::from(k) / (think_ns + residence);
        waiting_before.copy_from_slice(&waiting);
        for ((demand, queue), waits) in demands.iter().zip(&mut present).zip(&mut waiting) {
            *waits = per_ns * demand * *queue;
            *queue = per_ns * demand + *waits;
        }
    }
    let visits: f64 = stations.iter().map(|station| station.visits).sum();
    let entries =
        stations.iter().zip(&waiting_before).map(|(station, queue)| station.visits * queue);
    let on_entry = if visits > 0.0 { entries.sum::<f64>() / visits } else { 0.0 };
    let each = demands
        .iter()
        .zip(waiting.iter().zip(&waiting_before))
        .map(|(demand, (&queue_mean, &queue_on_entry))| StationPerformance {
            utilisation: per_ns * demand,
            queue_mean,
            queue_on_entry,
        })
        .collect();
    Ok((Performance::new(load, threads, per_ns, waiting.iter().sum(), on_entry), each))
}

/// Long-run figures of `threads` threads if the lock of `load` is striped into `locks` equal ones.
///
/// ```
/// use threadtoll_model::{Load, mva};
///
/// let load = Load::new(1.0, 1.0)?;
/// assert!((mva::striped(load, 4, 4)?.speedup - 3.307).abs() < 5e-4);
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
///
/// # Errors
///
/// If a number is zero.
pub fn striped(load: Load, locks: u32, threads: u32) -> Result<Performance, ModelError> {
    checked_threads(threads)?;
    let k = f64::from(number("locks", locks, MAX_LOCKS)?);
    let (h, z) = (load.hold_ns(), load.think_ns());
    // All stations are equal, so one queue represents them all.
    let (mut present, mut waiting, mut waiting_before, mut per_ns) = (0.0, 0.0, 0.0, 0.0);
    for n in 1..=threads {
        per_ns = f64::from(n) / (z + h * (1.0 + present));
        waiting_before = waiting;
        waiting = per_ns * h / k * present;
        present = per_ns * h / k + waiting;
    }
    Ok(Performance::new(load, threads, per_ns, waiting * k, waiting_before))
}

/// Approximates [`striped`] locks with hold times of any squared coefficient of variation.
///
/// A thread that finds a lock held waits for the rest of that hold, which is half as long for fixed
/// times as for exponential ones (M. Reiser, *A queueing network analysis of computer communication
/// networks with window flow control*, IEEE Trans. Communications 27, 1979). The result is exact
/// for exponential hold times, and off by a few percent for steadier ones. For a variation of 4,
/// the throughput is up to a sixth too low.
///
/// ```
/// use threadtoll_model::{Load, mva};
///
/// let load = Load::new(1.0, 1.0)?;
/// let steady = mva::striped_by_variation(load, 4, 4, 0.0)?;
/// assert!(steady.speedup > mva::striped(load, 4, 4)?.speedup);
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
///
/// # Errors
///
/// If a number is zero, or the variation is negative or not finite.
pub fn striped_by_variation(
    load: Load,
    locks: u32,
    threads: u32,
    variation: f64,
) -> Result<Performance, ModelError> {
    checked_threads(threads)?;
    let k = f64::from(number("locks", locks, MAX_LOCKS)?);
    if !(0.0..=1e9).contains(&variation) {
        return Err(ModelError::Figure {
            what: "squared coefficient of variation",
            value: variation,
            range: "from 0 to 1e9",
        });
    }
    let (h, z) = (load.hold_ns(), load.think_ns());
    let rest = (1.0 + variation) / 2.0;
    let (mut held, mut waiting, mut waiting_before, mut per_ns) = (0.0, 0.0, 0.0, 0.0);
    for n in 1..=threads {
        let ahead = waiting + rest * held;
        per_ns = f64::from(n) / (z + h * (1.0 + ahead));
        waiting_before = waiting;
        waiting = per_ns * h / k * ahead;
        if per_ns * h > k {
            // Without this limit, each lock would be held for more than 100% of the time.
            per_ns = k / h;
            waiting = (f64::from(n) - per_ns * (z + h)) / k;
        }
        held = per_ns * h / k;
    }
    Ok(Performance::new(load, threads, per_ns, waiting * k, waiting_before))
}
