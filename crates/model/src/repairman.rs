//! M/M/1//N, the machine repairman model: exponential hold times, think times of any distribution,
//! one lock, free hand-offs.
//!
//! With `r = h/z`, the lock is free with probability `p₀ = 1 / Σ N!/(N−k)! rᵏ`, which is Erlang's
//! loss formula for `N` lines and `z/h` erlangs. (C. Palm, *Arbetskraftens fördelning vid betjäning
//! av automatmaskiner*, 1947; exact for any think time: B. D. Bunday and R. E. Scraton, *The G/M/r
//! machine interference model*, European J. of Operational Research 4, 1980.)
//!
//! An arriving thread sees the average state of a system with one thread fewer (K. C. Sevcik and I.
//! Mitrani, *The distribution of queuing network states at input and output instants*, J. ACM 28,
//! 1981). By this theorem, the recursion steps from `N−1` to `N`. The recursion only adds and
//! multiplies positive numbers, so it neither loses digits nor overflows.

use crate::error::threads as checked_threads;
use crate::{Load, ModelError, Performance};

#[derive(Clone, Copy, Debug)]
struct Step {
    /// Share of time for which the lock is held.
    busy: f64,
    waiting: f64,
    /// Mean number of waiting threads in a system with one thread fewer.
    waiting_before: f64,
}

fn steps(load: Load, threads: u32) -> Step {
    let (h, z) = (load.hold_ns(), load.think_ns());
    let mut step = Step { busy: 0.0, waiting: 0.0, waiting_before: 0.0 };
    // Probability that the lock is free, by Erlang's loss formula; negligible if the lock is
    // saturated.
    let mut free = 1.0;
    let offered = z / h;
    for k in 1..=threads {
        let k_threads = f64::from(k);
        let present = step.busy + step.waiting;
        free = offered * free / (k_threads + offered * free);
        step = Step {
            busy: k_threads * h / (z + h * (1.0 + present)),
            waiting: 0.0,
            waiting_before: step.waiting,
        };
        step.waiting = step.busy * present;
        if free < 1e-30 {
            // Saturated: each additional thread waits.
            let n = f64::from(threads);
            return Step {
                busy: 1.0,
                waiting: n - 1.0 - offered,
                waiting_before: if threads > k { n - 2.0 - offered } else { step.waiting_before },
            };
        }
    }
    step
}

/// Long-run figures of `threads` threads, exact for exponential hold times and any think times.
///
/// ```
/// use threadtoll_model::{Load, repairman};
///
/// let two = repairman::solve(Load::new(1.0, 1.0)?, 2)?;
/// assert!((two.speedup - 1.6).abs() < 1e-12);
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
///
/// # Errors
///
/// If the number of threads is zero or beyond [`MAX_THREADS`](crate::MAX_THREADS).
pub fn solve(load: Load, threads: u32) -> Result<Performance, ModelError> {
    checked_threads(threads)?;
    if load.hold_ns() == 0.0 {
        return Ok(Performance::new(load, threads, f64::from(threads) / load.think_ns(), 0.0, 0.0));
    }
    let step = steps(load, threads);
    Ok(Performance::new(
        load,
        threads,
        step.busy / load.hold_ns(),
        step.waiting,
        step.waiting_before,
    ))
}
