//! M/G/1//N: hold times of any distribution, exponential think times, one lock, free hand-offs.
//!
//! If `φ` is the Laplace transform of the hold time and `r = h/z`, the share of time for which the
//! lock is held is
//!
//! ```text
//! U = N r B / (1 + N r B),   B = Σ C(N−1, n) Π (1/φ(i/z) − 1)    (n = 0 … N−1, i = 1 … n)
//! ```
//!
//! All terms are positive. If their sum would overflow, the lock is never free.
//!
//! The queue on entry follows from one hold. Of the threads that think when the hold begins, the
//! share `A = z (1−φ(1/z))/h` is still thinking at a random moment during the hold. From `U`, the
//! mean number of thinking threads while the lock is held is `(z/h)(1 − 1/B)`. Hence a thread that
//! acquires the lock sees `N − 1 − (1 − 1/B)/(1−φ(1/z))` other threads waiting, for any order of
//! service.

use crate::error::threads as checked_threads;
use crate::{Load, ModelError, Performance, Shape};

/// Beyond this sum, the first 16 digits of the result no longer change.
const SATURATED: f64 = 1e200;

/// The model for one pair of distributions.
///
/// Measured times are transformed only once, for the largest number of threads, because that is the
/// expensive part.
///
/// ```
/// use threadtoll_model::{Shape, takacs::Takacs};
///
/// let model = Takacs::new(&Shape::fixed(1.0)?, 1.0, 2)?;
/// assert!((model.solve(2)?.speedup - 1.689).abs() < 5e-4);
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Takacs {
    load: Load,
    /// `1/φ(i/z) − 1` for i = 1, 2, …
    odds: Vec<f64>,
    /// `1 − φ(1/z)`: the probability that a thinking thread returns during one hold.
    return_probability: f64,
    max_threads: u32,
}

impl Takacs {
    /// The model for `hold` times and exponential think times, for up to `max_threads` threads.
    ///
    /// # Errors
    ///
    /// If the think time is not a valid time, both means are zero, or the number of threads is
    /// zero.
    pub fn new(hold: &Shape, think_ns: f64, max_threads: u32) -> Result<Self, ModelError> {
        let load = Load::new(hold.mean_ns(), think_ns)?;
        checked_threads(max_threads)?;
        let mut odds = Vec::new();
        let mut return_probability = 1.0;
        if load.hold_ns() > 0.0 && think_ns > 0.0 {
            odds.reserve_exact(max_threads as usize - 1);
            for i in 1..max_threads {
                let transform = hold.transform(f64::from(i) / think_ns);
                let odd = transform.short_of_one / transform.value;
                odds.push(odd);
                if odd > SATURATED {
                    break;
                }
            }
            return_probability = hold.transform(1.0 / think_ns).short_of_one;
        }
        Ok(Self { load, odds, return_probability, max_threads })
    }

    /// Long-run figures of `threads` threads, exact for exponential think times and any hold times.
    ///
    /// # Errors
    ///
    /// If the number of threads is zero, or larger than `max_threads`.
    pub fn solve(&self, threads: u32) -> Result<Performance, ModelError> {
        crate::error::number("threads", threads, self.max_threads)?;
        let (h, z) = (self.load.hold_ns(), self.load.think_ns());
        let n = f64::from(threads);
        if h == 0.0 {
            return Ok(Performance::new(self.load, threads, n / z, 0.0, 0.0));
        }
        if z == 0.0 {
            return Ok(Performance::new(self.load, threads, 1.0 / h, n - 1.0, n - 2.0));
        }
        let mut term = 1.0;
        // B − 1, because a term below needs it, and computing it from B would lose digits.
        let mut rest = 0.0;
        for (done, odd) in self.odds.iter().take(threads as usize - 1).enumerate() {
            let done = done as f64;
            term *= (n - 1.0 - done) / (done + 1.0) * odd;
            rest += term;
            if rest > SATURATED || term == 0.0 {
                break;
            }
        }
        let r = h / z;
        let (per_ns, waiting, thinking) = if rest > SATURATED {
            (1.0 / h, n - 1.0 - z / h, 1.0 / self.return_probability)
        } else {
            let free = 1.0 / (1.0 + n * r * (1.0 + rest));
            let waiting = n * free * ((n - 1.0) * r * (1.0 + rest) - rest);
            (n * (1.0 + rest) * free / z, waiting, rest / (1.0 + rest) / self.return_probability)
        };
        let on_entry = n - 1.0 - thinking;
        Ok(Performance::new(self.load, threads, per_ns, waiting, on_entry))
    }
}
