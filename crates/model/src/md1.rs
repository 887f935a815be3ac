//! M/D/1: callers that arrive at random at one server, with fixed hold times.
//!
//! With load `ρ`, the probability `p(i)` that `i` callers are in the system follows from the
//! crossings between `i − 1` and `i` callers, seen each time a caller leaves:
//!
//! ```text
//! p(i) e^−ρ = p(0) A(i) + p(1) A(i) + p(2) A(i−1) + … + p(i−1) A(2),   p(0) = 1 − ρ
//! ```
//!
//! where `A(k)` is the probability of at least `k` arrivals during a hold time (V. Ramaswami, *A
//! stable recursion for the steady state vector in Markov chains of M/G/1 type*, Stochastic Models
//! 4, 1988). If `Q(m)` is the probability of at most `m` waiting callers, a wait of at most
//! `m + 1 − u` hold times, with `u` from 0 to 1, has the probability
//!
//! ```text
//! Q(m) q(0) + Q(m−1) q(1) + … + Q(0) q(m)
//! ```
//!
//! where `q` are the Poisson probabilities with mean `ρu` (G. J. Franx, *A simple solution for the
//! M/D/c waiting time distribution*, Operations Research Letters 29, 2001). All terms are positive.
//! Erlang's alternating series of 1909 gives the same, but loses its digits in long waits.

use crate::bisect::bisect;
use crate::poisson;

/// Largest load for which the distribution is computed: the time is proportional to `1/(1 − ρ)`.
pub(crate) const MAX_LOAD: f64 = 0.999_999;

/// Number of arrivals in a hold time that are told apart. More have a probability below 1e-23.
const ARRIVALS: usize = 24;

/// Waits for a server, in hold times.
#[derive(Clone, Debug)]
pub(crate) struct Md1 {
    load: f64,
    /// Probability of at most 0, 1, 2, … waiting callers.
    queue: Vec<f64>,
}

impl Md1 {
    /// The model for a load of at most [`MAX_LOAD`], and quantiles up to `most`, which must be
    /// below 1.
    pub(crate) fn new(load: f64, most: f64) -> Self {
        let at_least = at_least(load);
        // Probability of no arrival during a hold time, and of an empty system.
        let (none, empty) = ((-load).exp(), 1.0 - load);
        let mut callers = vec![empty];
        let mut queue = Vec::new();
        let mut sum = empty;
        // Only rounding could make it so long.
        while queue.last().is_none_or(|sum| *sum < most) && queue.len() < 20_000_000 {
            let i = callers.len();
            let crossings = |j: usize| at_least.get(i + 1 - j).map(|share| callers[j] * share);
            let from_empty = empty * at_least.get(i).copied().unwrap_or(0.0);
            let upwards = (1..i).rev().map_while(crossings).sum::<f64>() + from_empty;
            let probability = upwards / none;
            callers.push(probability);
            sum += probability;
            queue.push(sum);
        }
        Self { load, queue }
    }

    /// Mean wait.
    pub(crate) fn wait_mean(&self) -> f64 {
        self.load / (2.0 * (1.0 - self.load))
    }

    /// Wait that this share of callers do not exceed. The share must be at most `most`.
    pub(crate) fn wait_quantile(&self, share: f64) -> f64 {
        if share <= 1.0 - self.load {
            return 0.0;
        }
        let m = self.queue.partition_point(|queue| *queue < share);
        let at_most = |u: f64| {
            poisson::over(self.load * u, |arrivals| {
                let queue = m.checked_sub(arrivals as usize);
                queue.and_then(|queue| self.queue.get(queue)).copied().unwrap_or(0.0)
            })
        };
        m as f64 + 1.0 - bisect(0.0, 1.0, |u| at_most(u) >= share)
    }
}

/// Probabilities of at least 0, 1, 2, … arrivals in a hold time.
fn at_least(load: f64) -> [f64; ARRIVALS] {
    let mut exactly = [(-load).exp(); ARRIVALS];
    for arrivals in 1..ARRIVALS {
        exactly[arrivals] = exactly[arrivals - 1] * load / arrivals as f64;
    }
    let mut sum = 0.0;
    // Smallest terms first, so that none is lost.
    let mut sums = exactly.map(|_| 0.0);
    for (at_least, exactly) in sums.iter_mut().zip(exactly).rev() {
        sum += exactly;
        *at_least = sum;
    }
    sums
}
