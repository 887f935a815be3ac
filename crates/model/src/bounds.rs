//! Asymptotic bounds of throughput and speed-up, which no order of the threads can exceed.
//!
//! With `N` threads, the throughput is at most `N/(h+z)`, because each thread needs `h+z` per task,
//! and at most `1/h`, because the lock serves one thread at a time. The two lines meet at the
//! *knee*, `(h+z)/h` threads. (R. R. Muntz and J. W. Wong, *Asymptotic properties of closed
//! queueing network models*, 1974; P. J. Denning and J. P. Buzen, *The operational analysis of
//! queueing network models*, ACM Computing Surveys 10, 1978.)
//!
//! The bounds hold for every distribution of the times. Fixed times attain them; see
//! [`fixed_times`].

use crate::error::{MAX_LOCKS, number, threads as checked_threads, time};
use crate::{Load, ModelError, Performance};

/// Properties of a system that limit the speed-up, whatever the number of threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Number of equal locks that share the load (stripes).
    pub locks: u32,
    /// Number of cores; `None` if threads never lack a core.
    pub cores: Option<u32>,
    /// Time for which each hand-off occupies a contended lock, in nanoseconds.
    pub hand_off_ns: f64,
}

impl Default for Limits {
    /// One lock, enough cores, free hand-offs.
    fn default() -> Self {
        Self { locks: 1, cores: None, hand_off_ns: 0.0 }
    }
}

/// The largest possible speed-up, which is also the knee: the number of threads beyond which more
/// do not help.
///
/// Infinite if neither the locks nor the cores limit the speed-up.
///
/// ```
/// use threadtoll_model::{Load, bounds};
///
/// let load = Load::new(5e6, 95e6)?;
/// assert_eq!(bounds::knee(load, bounds::Limits::default())?, 20.0);
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
///
/// # Errors
///
/// If the number of locks or cores is zero, or the hand-off is not a valid time.
pub fn knee(load: Load, limits: Limits) -> Result<f64, ModelError> {
    let locks = f64::from(number("locks", limits.locks, MAX_LOCKS)?);
    let taken = load.hold_ns() + time("hand-off", limits.hand_off_ns)?;
    // If the hold time is zero, the lock is no limit.
    let by_lock =
        if load.hold_ns() == 0.0 { f64::INFINITY } else { locks * load.cycle_ns() / taken };
    match limits.cores {
        Some(cores) => Ok(by_lock.min(f64::from(number("cores", cores, MAX_LOCKS)?))),
        None => Ok(by_lock),
    }
}

/// The speed-up, relative to one thread, that `threads` threads cannot exceed.
///
/// # Errors
///
/// If [`knee`] fails, or if the number of threads is zero.
pub fn speedup(load: Load, threads: u32, limits: Limits) -> Result<f64, ModelError> {
    Ok(knee(load, limits)?.min(f64::from(checked_threads(threads)?)))
}

/// Exact long-run figures of threads with fixed hold and think times that share one lock with free
/// hand-offs.
///
/// Below the knee, the threads fall into step, so that none of them waits; above it, the lock is
/// never free.
///
/// # Errors
///
/// If the number of threads is zero.
pub fn fixed_times(load: Load, threads: u32) -> Result<Performance, ModelError> {
    let knee = knee(load, Limits::default())?;
    let n = f64::from(checked_threads(threads)?);
    if n <= knee {
        return Ok(Performance::new(load, threads, n / load.cycle_ns(), 0.0, 0.0));
    }
    // When a thread acquires the lock, the last ⌈z/h⌉ holders are still thinking, because each
    // released the lock h after the one before. The margin of 1e-12 keeps a rounding error from
    // lifting a quotient z/h that is an integer to the next one.
    let apart = load.think_ns() / load.hold_ns();
    let thinking = (apart - apart * 1e-12).ceil().max(if threads > 1 { 1.0 } else { 0.0 });
    Ok(Performance::new(load, threads, 1.0 / load.hold_ns(), n - knee, n - 1.0 - thinking))
}
