//! Asymptotic bounds of throughput and speed-up, for any order of the threads.
//!
//! Each thread needs `h+z` per task, so `N` threads have a throughput of at most `N/(h+z)`. The
//! lock serves one thread at a time, so the throughput is at most `1/h`. The two lines meet at the
//! *knee*, `(h+z)/h` threads. (R. R. Muntz and J. W. Wong, *Asymptotic properties of closed
//! queueing network models*, 1974; P. J. Denning and J. P. Buzen, *The operational analysis of
//! queueing network models*, ACM Computing Surveys 10, 1978.)
//!
//! The bounds hold for every distribution of the times. Fixed times attain them; see
//! [`fixed_times`].

use crate::error::{MAX_LOCKS, number, threads as checked_threads, time};
use crate::{Load, ModelError, Performance};

/// Limits of the speed-up that do not depend on the number of threads.
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
    fn default() -> Self {
        Self { locks: 1, cores: None, hand_off_ns: 0.0 }
    }
}

/// The largest possible speed-up, which equals the knee: more threads than that do not help.
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
    // A lock that is never held is no limit.
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

/// Exact long-run figures of threads with fixed times that share one lock with free hand-offs.
///
/// Below the knee, the threads fall into step and none of them waits. Above the knee, the lock is
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
    // A thread that acquires the lock finds the last ⌈z/h⌉ holders thinking, because holders
    // release the lock `h` apart. Without the margin of 1e-12, a rounding error could lift an
    // integer z/h to the next one.
    let apart = load.think_ns() / load.hold_ns();
    let thinking = (apart - apart * 1e-12).ceil().max(if threads > 1 { 1.0 } else { 0.0 });
    Ok(Performance::new(load, threads, 1.0 / load.hold_ns(), n - knee, n - 1.0 - thinking))
}
