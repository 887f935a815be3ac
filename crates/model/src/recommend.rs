//! Recommends a number of threads.
//!
//! Ideally, each thread up to the knee of the asymptotes adds one thread's work, and each further
//! thread adds nothing. Real speed-ups bend gradually around the knee. The last recommended thread
//! must add at least half a thread's work.

use crate::choose::{Answers, Model, Options, choose};
use crate::{ModelError, Workload, bounds, simulate};

/// Largest number of threads for which the last one still adds at least half a thread's work in the
/// long run. `None` if that number is beyond [`MAX_THREADS`](crate::MAX_THREADS).
///
/// Found by bisection, because each thread adds less than the previous one. Simulated gains are
/// averaged over neighbouring numbers of threads, and the result is as uncertain as these gains.
///
/// # Errors
///
/// If a figure of the workload is out of range.
pub fn recommended_threads(workload: &Workload, seed: u64) -> Result<Option<u32>, ModelError> {
    let Some(most) = most_worth(workload)? else { return Ok(None) };
    let options = Options { seed, ..Options::default() };
    let mut answers = Answers::new(workload, options);
    let mut adds_half = |threads: u32| -> Result<bool, ModelError> {
        if choose(workload, threads, options).model != Model::Simulation {
            let before = answers.answer(threads - 1)?.performance.speedup;
            // Rounding must not exclude a thread that adds exactly half a thread's work.
            return Ok(answers.answer(threads)?.performance.speedup - before >= 0.5 - 1e-9);
        }
        let around = (threads / 8).max(1);
        let simulated = |threads: u32| -> Result<f64, ModelError> {
            let system = workload.system(threads)?;
            Ok(simulate::long_run(&system, acquisitions(threads), seed)?.speedup.value)
        };
        let (low, high) = (threads - around, threads + around - 1);
        Ok(simulated(high)? - simulated(low)? >= 0.5 * f64::from(high - low))
    };
    let (mut worth, mut not_worth) = (1, most + 1);
    while not_worth - worth > 1 {
        let middle = worth + (not_worth - worth) / 2;
        if adds_half(middle)? {
            worth = middle;
        } else {
            not_worth = middle;
        }
    }
    Ok(Some(worth))
}

/// Upper bound on the recommended number; `None` if the bound is beyond
/// [`MAX_THREADS`](crate::MAX_THREADS).
fn most_worth(workload: &Workload) -> Result<Option<u32>, ModelError> {
    // At the recommended number `N`, the speed-up is between `N/2` and the bound for free
    // hand-offs. The bound with hand-offs could be too low, because threads in step may never need
    // a hand-off.
    let free = bounds::Limits { locks: workload.stripes, cores: workload.cores, hand_off_ns: 0.0 };
    let most = 2.0 * bounds::knee(workload.load()?, free)? + 2.0;
    Ok((most <= f64::from(crate::MAX_THREADS)).then_some(most as u32))
}

fn acquisitions(threads: u32) -> u64 {
    100_000.max(10 * u64::from(threads))
}

/// Maximum number of acquisitions that [`recommended_threads`] simulates.
pub(crate) fn effort(workload: &Workload, seed: u64) -> Result<u64, ModelError> {
    let options = Options { seed, ..Options::default() };
    let Some(most) = most_worth(workload)? else { return Ok(0) };
    if choose(workload, most, options).model != Model::Simulation {
        return Ok(0);
    }
    let steps = u64::from(most.ilog2()) + 1;
    Ok(2 * steps * acquisitions(most.saturating_add(most / 8)))
}
