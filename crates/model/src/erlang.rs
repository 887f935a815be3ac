//! Erlang's formulas: callers that arrive at random at a pool of servers.
//!
//! Arrivals are a Poisson process. The *offered load* `a` is the mean number of arrivals during a
//! hold time, in erlangs. With `c` servers and no place to wait, a caller is refused with
//! probability `B`, for any distribution of hold times (Erlang's loss formula, M/G/c/c). The odds
//! against a refusal follow from a recursion that only adds and multiplies positive numbers:
//!
//! ```text
//! o(c) = (c/a) (1 + o(c−1)),   o(0) = 0,   B = 1 / (1 + o)
//! ```
//!
//! With exponential hold times and `N` places to wait (M/M/c/K, K = c + N), each further waiting
//! caller has `r = a/c` times the probability of the one before. Hence the shares of callers are
//!
//! ```text
//! refused = rᴺ/D,   waiting = (1 + r + … + rᴺ⁻¹)/D,   D = o + 1 + r + … + rᴺ
//! ```
//!
//! and `waiting = 1 / (1 + o (1−r))` if everybody may wait (Erlang's delay formula, M/M/c). With
//! all servers busy, one becomes free every `h/c` on average, and a caller who finds `j` others
//! waiting waits for `j + 1` of them.
//!
//! Sources: A. K. Erlang, *Solution of some problems in the theory of probabilities of significance
//! in automatic telephone exchanges*, 1917; any hold times: B. A. Sevastyanov, *An ergodic theorem
//! for Markov processes and its application to telephone systems with refusals*, Theory of
//! Probability and its Applications 2, 1957; limited places: L. Kleinrock, *Queueing Systems* I,
//! 1975, chapter 3.

use crate::bisect::bisect;
use crate::error::{MAX_SERVERS, number};
use crate::{ModelError, poisson};

/// Smallest weight, relative to the largest one, that still counts.
const NEGLIGIBLE: f64 = 1e-25;

/// Probability that a caller is refused if nobody may wait: Erlang's loss formula (Erlang B).
///
/// ```
/// use threadtoll_model::erlang;
///
/// assert_eq!(erlang::blocking(1.0, 1)?, 0.5);
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
///
/// # Errors
///
/// If the offered load is not positive and finite, or the number of servers is out of range.
pub fn blocking(offered: f64, servers: u32) -> Result<f64, ModelError> {
    let servers = number("servers", servers, MAX_SERVERS)?;
    Ok(1.0 / (1.0 + Odds::new(offered)?.of(servers)))
}

/// Probability that a caller has to wait if everybody may wait, with exponential hold times:
/// Erlang's delay formula (Erlang C). `None` if the queue would grow without end.
///
/// ```
/// use threadtoll_model::erlang;
///
/// assert_eq!(erlang::waiting(1.0, 2)?, Some(1.0 / 3.0));
/// assert_eq!(erlang::waiting(2.0, 2)?, None);
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
///
/// # Errors
///
/// If the offered load is not positive and finite, or the number of servers is out of range.
pub fn waiting(offered: f64, servers: u32) -> Result<Option<f64>, ModelError> {
    let servers = number("servers", servers, MAX_SERVERS)?;
    let mut odds = Odds::new(offered)?;
    Ok((offered < f64::from(servers)).then(|| Queue::unlimited(&mut odds, servers).waiting))
}

/// Odds against a refusal if nobody may wait. Remembers the last number of servers, so numbers in
/// ascending order cost one pass together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Odds {
    offered: f64,
    servers: u32,
    odds: f64,
}

impl Odds {
    pub(crate) fn new(offered: f64) -> Result<Self, ModelError> {
        if !(offered > 0.0 && offered.is_finite()) {
            return Err(ModelError::Figure {
                what: "offered load",
                value: offered,
                range: "above 0 and finite",
            });
        }
        Ok(Self { offered, servers: 0, odds: 0.0 })
    }

    pub(crate) fn offered(&self) -> f64 {
        self.offered
    }

    fn of(&mut self, servers: u32) -> f64 {
        if servers < self.servers {
            (self.servers, self.odds) = (0, 0.0);
        }
        for number in self.servers + 1..=servers {
            self.odds = f64::from(number) / self.offered * (1.0 + self.odds);
        }
        self.servers = servers;
        self.odds
    }
}

/// Long-run figures of a pool with exponential hold times. Times are in mean hold times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    offered: f64,
    servers: f64,
    /// Number of places to wait; `None` without a limit.
    places: Option<u32>,
    /// Share of callers who wait.
    pub(crate) waiting: f64,
    /// Share of callers who are refused.
    pub(crate) refused: f64,
    /// Share of callers who are not refused.
    pub(crate) served: f64,
}

impl Queue {
    /// A pool in which everybody may wait. The offered load must be below the number of servers.
    pub(crate) fn unlimited(odds: &mut Odds, servers: u32) -> Self {
        let (offered, c) = (odds.offered, f64::from(servers));
        let waiting = 1.0 / (1.0 + odds.of(servers) * ((c - offered) / c));
        Self { offered, servers: c, places: None, waiting, refused: 0.0, served: 1.0 }
    }

    /// A pool with `places` places to wait.
    pub(crate) fn limited(odds: &mut Odds, servers: u32, places: u32) -> Self {
        let (offered, c) = (odds.offered, f64::from(servers));
        let odds = odds.of(servers);
        let n = f64::from(places);
        let log_ratio = log_ratio(offered, c);
        // Logarithm of the smaller one of `r` and `1/r`, whose powers do not overflow.
        let down = -log_ratio.abs();
        let (full, queued, free) = if log_ratio <= 0.0 {
            ((n * down).exp(), geometric(down, n), odds)
        } else {
            (1.0, down.exp() * geometric(down, n), odds * (n * down).exp())
        };
        let all = free + queued + full;
        Self {
            offered,
            servers: c,
            places: Some(places),
            waiting: queued / all,
            refused: full / all,
            // A quotient of `free`, which may be infinite, would be NaN.
            served: 1.0 / (1.0 + full / (free + queued)),
        }
    }

    /// Mean wait of a caller who is not refused.
    pub(crate) fn wait_mean(&self) -> f64 {
        match self.places {
            None => self.waiting / (self.servers - self.offered),
            Some(places) => self.waiting_of_served() * self.services(places) / self.servers,
        }
    }

    /// Wait that this share of the callers who are not refused do not exceed.
    pub(crate) fn wait_quantile(&self, share: f64) -> f64 {
        let beyond = 1.0 - share;
        let waiting = self.waiting_of_served();
        if waiting <= beyond {
            return 0.0;
        }
        let Some(places) = self.places else {
            return (waiting / beyond).ln() / (self.servers - self.offered);
        };
        let log_ratio = log_ratio(self.offered, self.servers);
        // After `x` mean times between two free servers, a Poisson number of servers with mean `x`
        // has become free.
        let still_waiting =
            |x: f64| waiting * poisson::over(x, |number| at_least(number, log_ratio, places));
        let (mut low, mut high) = (0.0, 1.0);
        while still_waiting(high) > beyond {
            (low, high) = (high, 2.0 * high);
        }
        bisect(low, high, |x| still_waiting(x) > beyond) / self.servers
    }

    fn waiting_of_served(&self) -> f64 {
        if self.places == Some(0) { 0.0 } else { self.waiting / self.served }
    }

    /// Mean number of servers that must become free until the turn of a caller who waits.
    fn services(&self, places: u32) -> f64 {
        let ratio = self.offered / self.servers;
        let (rises, step) = if ratio <= 1.0 { (true, ratio) } else { (false, 1.0 / ratio) };
        let (mut sum, mut total, mut weight) = (0.0, 0.0, 1.0);
        for nth in 0..places {
            sum += weight * f64::from(if rises { nth + 1 } else { places - nth });
            total += weight;
            weight *= step;
            if weight < NEGLIGIBLE {
                break;
            }
        }
        if total > 0.0 { sum / total } else { 0.0 }
    }
}

fn log_ratio(offered: f64, servers: f64) -> f64 {
    let ratio = offered / servers;
    if ratio < 0.5 { ratio.ln() } else { ((offered - servers) / servers).ln_1p() }
}

/// `1 + x + … + xⁿ⁻¹` for the logarithm of `x`, which is at most zero.
fn geometric(log: f64, n: f64) -> f64 {
    if log == 0.0 { n } else { (n * log).exp_m1() / log.exp_m1() }
}

/// Share of the callers who wait that found at least `number` others waiting.
fn at_least(number: u32, log_ratio: f64, places: u32) -> f64 {
    let (i, n) = (f64::from(number), f64::from(places));
    if number >= places {
        0.0
    } else if log_ratio == 0.0 {
        (n - i) / n
    } else if log_ratio < 0.0 {
        (i * log_ratio).exp() * ((n - i) * log_ratio).exp_m1() / (n * log_ratio).exp_m1()
    } else {
        (-(n - i) * log_ratio).exp_m1() / (-n * log_ratio).exp_m1()
    }
}
