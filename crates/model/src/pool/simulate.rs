//! Simulates callers at a pool, in the order of their arrival.
//!
//! Callers are served first come, first served, so the time at which a caller would get a server is
//! known when it arrives: as soon as it is there and any server is free (J. Kiefer and J.
//! Wolfowitz, *On the theory of queues with many servers*, Transactions of the AMS 78, 1955). A
//! caller whose patience ends earlier never takes a server. One pass over the callers, with a heap
//! of the times at which servers become free, is enough; there are no events.
//!
//! Intervals come from batch means, as in [`simulate`](mod@crate::simulate). That of a quantile has
//! the quantiles as its ends that belong to the ends of the interval of the share of callers below
//! it (A. M. Law, *Simulation Modeling and Analysis*, McGraw-Hill, chapter 9).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Figure, Pool};
use crate::error::{MAX_SERVERS, number};
use crate::random::exponential;
use crate::simulate::{BATCHES, Estimate, UNSEEN};
use crate::{ModelError, Shape};

/// Fewest arrivals of a row; more if the servers cannot serve all of them.
const USUAL: f64 = 1e6;
/// Most arrivals of a row: a few seconds.
const MAX_ARRIVALS: f64 = 2e7;
/// Number of times that the queue must forget its length for intervals to be valid: five times in
/// each batch.
const FORGETS: f64 = 100.0;
/// Number of times that an empty pool could fill during a simulation: three times in each batch.
const CHANGES: f64 = 60.0;
/// Number of times that an empty pool could fill before figures count.
const FILLS: f64 = 8.0;
/// A quantile needs this number of callers beyond it.
const BEYOND: f64 = 20.0;

/// Simulated figures of a pool, with 99% intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Simulated {
    /// Share of the callers who have to wait, including those who give up.
    pub wait_probability: Figure,
    /// Mean wait of the callers who are served, in nanoseconds; `None` if nobody is.
    pub wait_mean_ns: Option<Figure>,
    /// Wait that half of the callers who are served do not exceed, in nanoseconds; `None` if fewer
    /// than 40 are served.
    pub wait_p50_ns: Option<Figure>,
    /// Wait that 99% of the callers who are served do not exceed, in nanoseconds; `None` if fewer
    /// than 2000 are served.
    pub wait_p99_ns: Option<Figure>,
    /// Share of the callers who are served.
    pub served_share: Figure,
    /// Share of the callers who are refused.
    pub refused_share: Figure,
    /// Share of the callers who give up.
    pub gave_up_share: Figure,
}

/// Number of arrivals for a valid simulation; `None` if that is too many.
///
/// Without limits, a queue forgets its length after about `1/(√c/√a − 1)²` arrivals, the
/// relaxation time of M/M/1 (J. W. Cohen, *The Single Server Queue*, 1982) and, in heavy traffic,
/// of M/M/c, times the variability of the hold times. A limited queue forgets it once it has
/// wandered from one end to the other, which takes the square of its length.
pub(super) fn enough_arrivals(pool: &Pool, offered: f64, servers: u32) -> Option<u64> {
    let c = f64::from(servers);
    let variability = f64::midpoint(1.0, pool.hold.variation());
    let wandering = length(pool).powi(2) / 4.0;
    let forgetting = (1.0 / ((c / offered).sqrt() - 1.0).powi(2)).min(wandering);
    let needed = FORGETS * forgetting * variability + CHANGES * filling(pool, offered, servers);
    let usual = USUAL * (offered / c).max(1.0);
    (needed <= MAX_ARRIVALS).then_some(needed.max(usual).min(MAX_ARRIVALS) as u64)
}

/// Largest number of waiting callers.
fn length(pool: &Pool) -> f64 {
    let places = pool.places.map_or(f64::INFINITY, f64::from);
    let patience = pool.patience_ns.map_or(f64::INFINITY, |ns| ns * pool.arrivals_per_s / 1e9);
    places.min(patience)
}

/// Number of arrivals until all servers of an empty pool are as busy as in the long run, and its
/// queue is as long.
fn filling(pool: &Pool, offered: f64, servers: u32) -> f64 {
    let variability = f64::midpoint(1.0, pool.hold.variation());
    let excess = 1.0 - f64::from(servers) / offered;
    // An overloaded queue grows by what the servers cannot serve, or wanders to its limit.
    let length = length(pool);
    let queue = if excess > 0.0 { (length / excess).min(length.powi(2)) } else { 0.0 };
    offered * variability + queue
}

/// Sums over consecutive arrivals.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    arrivals: u64,
    refused: u64,
    gave_up: u64,
    served_late: u64,
    waited: f64,
}

impl Batch {
    fn served(&self) -> u64 {
        self.arrivals - self.refused - self.gave_up
    }
}

/// Simulates `arrivals` callers, after a tenth of that number, and more if the pool is large, who
/// fill the empty pool.
///
/// ```
/// use threadtoll_model::{Pool, Shape, pool};
///
/// let pool = Pool::new(0.5e9, Shape::exponential(1.0)?);
/// let found = pool::simulate(&pool, 1, 100_000, 1)?;
/// assert!(found.wait_probability.holds(0.5));
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
///
/// # Errors
///
/// If a figure of the pool or the number of servers is out of range, or there are fewer than 1000
/// arrivals.
pub fn simulate(
    pool: &Pool,
    servers: u32,
    arrivals: u64,
    seed: u64,
) -> Result<Simulated, ModelError> {
    let gap_ns = pool.gap_ns()?;
    number("servers", servers, MAX_SERVERS)?;
    if arrivals < 1000 {
        return Err(ModelError::TooFew { what: "arrivals", least: 1000, given: arrivals as usize });
    }
    let filling = filling(pool, pool.hold.mean_ns() / gap_ns, servers);
    let warm_up = arrivals / 10 + (FILLS * filling).min(MAX_ARRIVALS) as u64;
    let mut callers = Callers::new(pool, gap_ns, servers, seed);
    for _ in 0..warm_up {
        callers.arrive();
    }
    let mut waits: Vec<f32> = Vec::new();
    let batches: Vec<Batch> = (0..BATCHES as u64)
        .map(|_| {
            let mut batch = Batch { arrivals: arrivals / BATCHES as u64, ..Batch::default() };
            for _ in 0..batch.arrivals {
                match callers.arrive() {
                    Fate::Refused => batch.refused += 1,
                    Fate::GaveUp => batch.gave_up += 1,
                    Fate::Served(wait) if wait > 0.0 => {
                        batch.served_late += 1;
                        batch.waited += wait;
                        waits.push(wait as f32);
                    }
                    Fate::Served(_) => {}
                }
            }
            batch
        })
        .collect();
    Ok(report(pool, &batches, &waits))
}

enum Fate {
    Refused,
    GaveUp,
    /// Served after a wait in nanoseconds.
    Served(f64),
}

/// Callers, in the order of their arrival.
struct Callers<'p> {
    hold: &'p Shape,
    gap_ns: f64,
    places: Option<usize>,
    patience_ns: f64,
    rng: Xoshiro256PlusPlus,
    now: f64,
    /// When each server becomes free, earliest first. Times are never negative, so their bits sort
    /// like the times.
    free: BinaryHeap<Reverse<u64>>,
    /// When each waiting caller stops to wait, earliest first; empty if places have no limit.
    waiting: VecDeque<f64>,
}

impl<'p> Callers<'p> {
    fn new(pool: &'p Pool, gap_ns: f64, servers: u32, seed: u64) -> Self {
        Self {
            hold: &pool.hold,
            gap_ns,
            places: pool.places.map(|places| places as usize),
            patience_ns: pool.patience_ns.unwrap_or(f64::INFINITY),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            now: 0.0,
            free: vec![Reverse(0); servers as usize].into(),
            waiting: VecDeque::new(),
        }
    }

    #[inline]
    fn arrive(&mut self) -> Fate {
        self.now += self.gap_ns * exponential(&mut self.rng);
        // Drawn for all callers, so that pools with more servers see the same ones.
        let hold = self.hold.draw(&mut self.rng);
        // There is at least one server.
        let Some(mut first) = self.free.peek_mut() else { return Fate::Refused };
        let start = f64::from_bits(first.0).max(self.now);
        let wait = start - self.now;
        if let Some(places) = self.places
            && wait > 0.0
        {
            while self.waiting.front().is_some_and(|end| *end <= self.now) {
                self.waiting.pop_front();
            }
            if self.waiting.len() >= places {
                return Fate::Refused;
            }
            self.waiting.push_back(start.min(self.now + self.patience_ns));
        }
        if wait > self.patience_ns {
            return Fate::GaveUp;
        }
        *first = Reverse((start + hold).to_bits());
        Fate::Served(wait)
    }
}

fn report(pool: &Pool, batches: &[Batch], waits: &[f32]) -> Simulated {
    let column = |figure: fn(&Batch) -> f64| -> Vec<f64> { batches.iter().map(figure).collect() };
    let arrivals = column(|batch| batch.arrivals as f64);
    let served = column(|batch| batch.served() as f64);
    let unseen = |all: &[f64]| UNSEEN / all.iter().sum::<f64>().max(1.0);
    let share = |may_be: bool, figure: fn(&Batch) -> f64| {
        let estimate = Estimate::ratio(&column(figure), &arrivals);
        let least = if may_be { unseen(&arrivals) } else { 0.0 };
        within(estimate.no_surer_than(least), 1.0)
    };
    let mut pooled = waits.to_vec();
    let mut quantile = |share| wait_quantile(batches, waits, &mut pooled, share);
    Simulated {
        wait_probability: share(true, |batch| (batch.served_late + batch.gave_up) as f64),
        wait_mean_ns: (served.iter().sum::<f64>() > 0.0).then(|| {
            let estimate = Estimate::ratio(&column(|batch| batch.waited), &served);
            within(estimate.no_surer_than(pool.hold.mean_ns() * unseen(&served)), f64::INFINITY)
        }),
        wait_p50_ns: quantile(0.5),
        wait_p99_ns: quantile(0.99),
        served_share: share(pool.turns_away(), |batch| batch.served() as f64),
        refused_share: share(pool.places.is_some(), |batch| batch.refused as f64),
        gave_up_share: share(pool.patience_ns.is_some(), |batch| batch.gave_up as f64),
    }
}

fn within(estimate: Estimate, most: f64) -> Figure {
    let Estimate { value, half_width } = estimate;
    let ends = [(value - half_width).max(0.0), (value + half_width).min(most)];
    Figure { value, interval99: (half_width > 0.0).then_some(ends) }
}

/// `waits` are those of all callers who were served late, batch by batch; `pooled` holds the same
/// waits in any order.
fn wait_quantile(
    batches: &[Batch],
    waits: &[f32],
    pooled: &mut [f32],
    share: f64,
) -> Option<Figure> {
    let served: Vec<f64> = batches.iter().map(|batch| batch.served() as f64).collect();
    let all = served.iter().sum::<f64>();
    if (1.0 - share) * all < BEYOND {
        return None;
    }
    let at_once = all as usize - waits.len();
    let mut at = |share: f64| {
        let rank = (share * all).ceil().clamp(1.0, all) as usize;
        match rank.checked_sub(at_once + 1) {
            None => 0.0,
            Some(nth) => *pooled.select_nth_unstable_by(nth, f32::total_cmp).1,
        }
    };
    let value = at(share);
    let mut rest = waits;
    let at_most: Vec<f64> = batches
        .iter()
        .map(|batch| {
            let (own, others) = rest.split_at(batch.served_late as usize);
            rest = others;
            let longer = own.iter().filter(|wait| **wait > value).count();
            (batch.served() - longer as u64) as f64
        })
        .collect();
    let reach = Estimate::ratio(&at_most, &served).half_width;
    let ends = [at(share - reach), at(share + reach)].map(f64::from);
    Some(Figure { value: value.into(), interval99: (ends[0] < ends[1]).then_some(ends) })
}
