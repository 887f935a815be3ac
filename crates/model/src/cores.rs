//! Fewer cores than threads: a thread that does not wait for the lock may wait for a core.
//!
//! Times are exponential, there is one lock, and hand-offs are free. The holder always has a core:
//! a woken thread preempts a thinking one, as in schedulers of interactive systems. Thinking
//! threads share the other cores.
//!
//! The number of threads at the lock is then a birth-death process: from `n` to `n+1` at the rate
//! `min(N−n, C−[n>0])/z`, and back at `1/h`. Products of the rates' ratios solve it exactly (L.
//! Kleinrock, *Queueing Systems* I, Wiley 1975, chapter 3); they are summed as logarithms.
//!
//! A scheduler that leaves the holder without a core performs worse; [`simulate`](crate::simulate)
//! covers that case.

use crate::error::{MAX_LOCKS, number, threads as checked_threads};
use crate::{Load, ModelError, Performance};

/// Long-run figures of `threads` threads on `cores` cores.
///
/// ```
/// use threadtoll_model::{Load, cores};
///
/// // One core does one thread's work, lock or no lock.
/// let one = cores::solve(Load::new(1.0, 9.0)?, 1, 8)?;
/// assert!((one.speedup - 1.0).abs() < 1e-12);
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
///
/// # Errors
///
/// If a number is zero.
pub fn solve(load: Load, cores: u32, threads: u32) -> Result<Performance, ModelError> {
    checked_threads(threads)?;
    number("cores", cores, MAX_LOCKS)?;
    let (h, z) = (load.hold_ns(), load.think_ns());
    if h == 0.0 {
        return Ok(Performance::new(load, threads, f64::from(threads.min(cores)) / z, 0.0, 0.0));
    }
    if z == 0.0 {
        let n = f64::from(threads);
        return Ok(Performance::new(load, threads, 1.0 / h, n - 1.0, n - 2.0));
    }
    // Weights are e^(log − highest), rescaled at each new highest logarithm.
    let mut log = 0.0f64;
    let mut highest = 0.0f64;
    let (mut all, mut held, mut waiting, mut on_entry) = (1.0, 0.0, 0.0, 0.0);
    for n in 0..threads {
        let thinking_on_cores = (threads - n).min(cores - u32::from(n > 0));
        if thinking_on_cores == 0 {
            break;
        }
        log += (f64::from(thinking_on_cores) * h / z).ln();
        if log > highest {
            let scale = (highest - log).exp();
            highest = log;
            all *= scale;
            held *= scale;
            waiting *= scale;
            on_entry *= scale;
        }
        let weight = (log - highest).exp();
        all += weight;
        held += weight;
        waiting += weight * f64::from(n);
        on_entry += weight * f64::from(n.saturating_sub(1));
    }
    Ok(Performance::new(load, threads, held / all / h, waiting / all, on_entry / held))
}
