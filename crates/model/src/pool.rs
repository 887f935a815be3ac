//! Pools of servers at which callers arrive: connections, workers, permits.
//!
//! Callers arrive at random (a Poisson process), from so many sources that those who wait do not
//! slow down the arrivals of others. A caller takes a free server, or else waits, first come first
//! served, and holds the server for a random time. It may find all places to wait taken and be
//! refused, or lose patience and give up.
//!
//! | the pool | the answer |
//! |---|---|
//! | not more servers than are busy on average, and nobody is turned away | the queue grows |
//! | no place to wait | M/G/c/c, by [`erlang`](crate::erlang) |
//! | exponential hold times | M/M/c, or M/M/c/K with limited places, by [`erlang`](crate::erlang) |
//! | one server, fixed hold times | M/D/1 |
//! | anything else, or patience | [`simulate()`] |
//!
//! By Little's law, the mean number of servers in use is the offered load, times the share of
//! callers who are served (J. D. C. Little, *A proof for the queuing formula L = λW*, Operations
//! Research 9, 1961).

mod simulate;

pub use simulate::{Simulated, simulate};

use std::collections::BTreeMap;
use std::fmt;

use crate::erlang::{Odds, Queue};
use crate::error::{MAX_SERVERS, number, time};
use crate::md1::{self, Md1};
use crate::{ModelError, Shape};

/// Servers are enough only if they turn away at most this share of the callers.
pub const MAX_TURNED_AWAY: f64 = 0.01;

/// Callers who arrive at random, and the time for which they hold a server. The number of servers
/// is a separate argument.
///
/// ```
/// use threadtoll_model::{Pool, Shape, pool::Rows};
///
/// let pool = Pool::new(20.0, Shape::exponential(300e6)?);
/// let mut rows = Rows::new(&pool, false, 1)?;
/// assert_eq!(rows.offered_load(), 6.0);
/// assert_eq!(rows.fewest_servers(300e6)?.map(|enough| enough.servers), Some(9));
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Mean number of arrivals per second.
    pub arrivals_per_s: f64,
    /// Time for which a caller holds a server.
    pub hold: Shape,
    /// Number of places to wait. A caller who finds them taken is refused. `None` for no limit.
    pub places: Option<u32>,
    /// Time after which a waiting caller gives up, in nanoseconds; `None` for never.
    pub patience_ns: Option<f64>,
}

impl Pool {
    /// A pool in which all callers wait until they are served.
    pub fn new(arrivals_per_s: f64, hold: Shape) -> Self {
        Self { arrivals_per_s, hold, places: None, patience_ns: None }
    }

    /// Mean time between two arrivals, in nanoseconds, after validation of the whole pool.
    fn gap_ns(&self) -> Result<f64, ModelError> {
        let gap_ns = 1e9 / self.arrivals_per_s;
        if gap_ns == 0.0 || time("time between arrivals", gap_ns).is_err() {
            return Err(ModelError::Figure {
                what: "number of arrivals per second",
                value: self.arrivals_per_s,
                range: "from 1e-9 to 1e18",
            });
        }
        if self.hold.mean_ns() == 0.0 {
            return Err(ModelError::Figure {
                what: "mean hold time",
                value: 0.0,
                range: "longer than zero",
            });
        }
        if let Some(places) = self.places.filter(|places| *places > 0) {
            number("places to wait", places, MAX_SERVERS)?;
        }
        if let Some(patience_ns) = self.patience_ns {
            time("patience", patience_ns)?;
        }
        Ok(gap_ns)
    }

    /// True if a caller may be turned away, so that the queue cannot grow without end.
    pub fn turns_away(&self) -> bool {
        self.places.is_some() || self.patience_ns.is_some()
    }
}

/// The model that predicts a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolModel {
    /// The queue grows by what the servers cannot serve.
    Fluid,
    /// Erlang's loss formula.
    Loss,
    /// Erlang's delay formula.
    Delay,
    /// Exponential hold times, and a limited number of places to wait.
    LimitedQueue,
    /// One server with fixed hold times.
    Fixed,
    /// Simulated callers.
    Simulation,
}

impl PoolModel {
    /// Name of the model in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fluid => "fluid",
            Self::Loss => "M/G/c/c",
            Self::Delay => "M/M/c",
            Self::LimitedQueue => "M/M/c/K",
            Self::Fixed => "M/D/1",
            Self::Simulation => "simulation",
        }
    }
}

impl fmt::Display for PoolModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A predicted figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The figure.
    pub value: f64,
    /// Its 99% interval if it was simulated; `None` if it is exact.
    pub interval99: Option<[f64; 2]>,
}

impl Figure {
    fn exact(value: f64) -> Self {
        Self { value, interval99: None }
    }

    fn times(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            interval99: self.interval99.map(|ends| ends.map(|end| end * factor)),
        }
    }

    /// Largest value that the interval allows.
    pub fn at_most(&self) -> f64 {
        self.interval99.map_or(self.value, |[_, high]| high)
    }

    /// Returns `true` if the interval contains `value`, up to rounding.
    pub fn holds(&self, value: f64) -> bool {
        let [low, high] = self.interval99.unwrap_or([self.value; 2]);
        let rounding = 1e-6 * self.value.abs().max(value.abs());
        (low - rounding..=high + rounding).contains(&value)
    }
}

/// The prediction for one number of servers. Figures that are not known are `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Number of servers.
    pub servers: u32,
    /// The model that answered.
    pub model: PoolModel,
    /// Reason for choosing this model, or for not answering.
    pub why: &'static str,
    /// Number by which the queue grows per second, in the long run; `None` if it does not grow
    /// without end. If the servers can serve exactly what arrives, the queue grows ever more
    /// slowly, and this is zero.
    pub growth_per_s: Option<f64>,
    /// Mean number of servers in use.
    pub in_use_mean: Option<Figure>,
    /// Share of the callers who have to wait, including those who give up.
    pub wait_probability: Option<Figure>,
    /// Mean wait of the callers who are served, in nanoseconds. It is zero for those who find a
    /// free server.
    pub wait_mean_ns: Option<Figure>,
    /// Wait that half of the callers who are served do not exceed, in nanoseconds.
    pub wait_p50_ns: Option<Figure>,
    /// Wait that 99% of the callers who are served do not exceed, in nanoseconds.
    pub wait_p99_ns: Option<Figure>,
    /// Share of the callers who are refused because all places to wait are taken.
    pub refused_share: Option<Figure>,
    /// Share of the callers who give up.
    pub gave_up_share: Option<Figure>,
}

impl Row {
    fn unknown(servers: u32, model: PoolModel, why: &'static str) -> Self {
        Self {
            servers,
            model,
            why,
            growth_per_s: None,
            in_use_mean: None,
            wait_probability: None,
            wait_mean_ns: None,
            wait_p50_ns: None,
            wait_p99_ns: None,
            refused_share: None,
            gave_up_share: None,
        }
    }

    /// True if a simulation would have to be too long, so that nothing is known of the waits.
    pub fn is_withheld(&self) -> bool {
        self.model == PoolModel::Simulation && self.refused_share.is_none()
    }

    /// True if at most 1% of the callers are turned away, and 99% of the others wait less than
    /// `wait_ns`. Simulated figures must show that with their whole intervals.
    pub fn is_enough(&self, wait_ns: f64) -> bool {
        let at_most = |figure: Option<Figure>| figure.map_or(f64::INFINITY, |it| it.at_most());
        at_most(self.wait_p99_ns) < wait_ns
            && at_most(self.refused_share) + at_most(self.gave_up_share) <= MAX_TURNED_AWAY
    }
}

/// Number of servers that is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enough {
    /// Number of servers.
    pub servers: u32,
    /// True if fewer servers may be enough, too: so close to their limit, the simulation would be
    /// too long.
    pub fewer_may_do: bool,
}

/// Predictions of one pool for any numbers of servers. Each row is computed once.
#[derive(Clone, Debug)]
pub struct Rows<'p> {
    pool: &'p Pool,
    simulate: bool,
    seed: u64,
    odds: Odds,
    known: BTreeMap<u32, Row>,
}

impl<'p> Rows<'p> {
    /// Predictions of `pool`. With `simulate`, rows are simulated even if a closed form is exact.
    ///
    /// # Errors
    ///
    /// If a figure of the pool is out of range, or the hold time is zero.
    pub fn new(pool: &'p Pool, simulate: bool, seed: u64) -> Result<Self, ModelError> {
        let odds = Odds::new(pool.hold.mean_ns() / pool.gap_ns()?)?;
        Ok(Self { pool, simulate, seed, odds, known: BTreeMap::new() })
    }

    /// Mean number of arrivals during a hold time: the mean number of servers in use if nobody is
    /// turned away.
    pub fn offered_load(&self) -> f64 {
        self.odds.offered()
    }

    /// The prediction for this number of servers.
    ///
    /// # Errors
    ///
    /// If the number of servers is out of range.
    pub fn row(&mut self, servers: u32) -> Result<Row, ModelError> {
        number("servers", servers, MAX_SERVERS)?;
        if let Some(row) = self.known.get(&servers) {
            return Ok(row.clone());
        }
        let row = self.predict(servers)?;
        self.known.insert(servers, row.clone());
        Ok(row)
    }

    /// Fewest servers that [are known to be enough](Row::is_enough) for waits of less than
    /// `wait_ns`. `None` if that number is beyond [`MAX_SERVERS`].
    ///
    /// # Errors
    ///
    /// If the wait is not a valid time above zero.
    pub fn fewest_servers(&mut self, wait_ns: f64) -> Result<Option<Enough>, ModelError> {
        if time("wait", wait_ns)? == 0.0 {
            return Err(ModelError::Figure { what: "wait", value: 0.0, range: "longer than zero" });
        }
        let served = if self.pool.turns_away() { 1.0 - MAX_TURNED_AWAY } else { 1.0 };
        // Fewer servers would not even be enough if they were always busy.
        let busy = self.offered_load() * served;
        if busy >= f64::from(MAX_SERVERS) {
            return Ok(None);
        }
        let mut too_few =
            if self.pool.turns_away() { busy.ceil() - 1.0 } else { busy.floor() } as u32;
        let mut step = (busy.sqrt() as u32).max(1);
        let mut enough = loop {
            let servers = (too_few + step).min(MAX_SERVERS);
            if self.row(servers)?.is_enough(wait_ns) {
                break servers;
            }
            if servers == MAX_SERVERS {
                return Ok(None);
            }
            too_few = servers;
            step *= 2;
        };
        // Each server shortens the waits.
        while enough - too_few > 1 {
            let middle = too_few + (enough - too_few) / 2;
            if self.row(middle)?.is_enough(wait_ns) {
                enough = middle;
            } else {
                too_few = middle;
            }
        }
        let fewer_may_do = too_few > 0 && self.row(too_few)?.is_withheld();
        Ok(Some(Enough { servers: enough, fewer_may_do }))
    }

    /// Number of arrivals that are simulated for this number of servers; 0 for a closed form.
    pub fn effort(&self, servers: u32) -> u64 {
        match self.choose(servers).0 {
            PoolModel::Simulation => {
                simulate::enough_arrivals(self.pool, self.offered_load(), servers).unwrap_or(0)
            }
            _ => 0,
        }
    }

    fn choose(&self, servers: u32) -> (PoolModel, &'static str) {
        let Pool { hold, places, patience_ns, .. } = self.pool;
        let offered = self.offered_load();
        if offered >= f64::from(servers) && !self.pool.turns_away() {
            return (PoolModel::Fluid, "at least as much arrives as the servers can serve");
        }
        if self.simulate {
            return (PoolModel::Simulation, "asked for");
        }
        match (places, patience_ns) {
            (Some(0), _) => {
                (PoolModel::Loss, "without places to wait, it is exact for any hold times")
            }
            (_, Some(_)) => (PoolModel::Simulation, "callers lose patience"),
            (None, None) if hold.is_exponential() => {
                (PoolModel::Delay, "it is exact for exponential hold times")
            }
            (Some(_), None) if hold.is_exponential() => {
                (PoolModel::LimitedQueue, "it is exact for exponential hold times")
            }
            (None, None) if servers == 1 && hold.is_fixed() && offered <= md1::MAX_LOAD => {
                (PoolModel::Fixed, "it is exact for one server and fixed hold times")
            }
            _ => (PoolModel::Simulation, "no closed form is exact for these hold times"),
        }
    }

    fn predict(&mut self, servers: u32) -> Result<Row, ModelError> {
        let (model, why) = self.choose(servers);
        let hold_ns = self.pool.hold.mean_ns();
        let offered = self.offered_load();
        let exact = |value: f64| Some(Figure::exact(value));
        let row = Row::unknown(servers, model, why);
        Ok(match model {
            PoolModel::Fluid => Row {
                growth_per_s: Some(
                    self.pool.arrivals_per_s * ((offered - f64::from(servers)) / offered),
                ),
                in_use_mean: exact(f64::from(servers)),
                wait_probability: exact(1.0),
                refused_share: exact(0.0),
                gave_up_share: exact(0.0),
                ..row
            },
            PoolModel::Delay => {
                let queue = Queue::unlimited(&mut self.odds, servers);
                self.erlang(row, queue)
            }
            PoolModel::Loss | PoolModel::LimitedQueue => {
                let places = self.pool.places.unwrap_or(0);
                let queue = Queue::limited(&mut self.odds, servers, places);
                self.erlang(row, queue)
            }
            PoolModel::Fixed => {
                let model = Md1::new(offered, 0.99);
                Row {
                    in_use_mean: exact(offered),
                    wait_probability: exact(offered),
                    wait_mean_ns: exact(model.wait_mean() * hold_ns),
                    wait_p50_ns: exact(model.wait_quantile(0.5) * hold_ns),
                    wait_p99_ns: exact(model.wait_quantile(0.99) * hold_ns),
                    refused_share: exact(0.0),
                    gave_up_share: exact(0.0),
                    ..row
                }
            }
            PoolModel::Simulation => {
                let Some(arrivals) = simulate::enough_arrivals(self.pool, offered, servers) else {
                    let why = "too long a simulation would be needed";
                    let in_use_mean = (!self.pool.turns_away()).then_some(Figure::exact(offered));
                    return Ok(Row { in_use_mean, why, ..row });
                };
                let found = simulate(self.pool, servers, arrivals, self.seed)?;
                Row {
                    in_use_mean: Some(found.served_share.times(offered)),
                    wait_probability: Some(found.wait_probability),
                    wait_mean_ns: found.wait_mean_ns,
                    wait_p50_ns: found.wait_p50_ns,
                    wait_p99_ns: found.wait_p99_ns,
                    refused_share: Some(found.refused_share),
                    gave_up_share: Some(found.gave_up_share),
                    ..row
                }
            }
        })
    }

    fn erlang(&self, row: Row, queue: Queue) -> Row {
        let exact = |value: f64| Some(Figure::exact(value));
        let hold_ns = self.pool.hold.mean_ns();
        Row {
            in_use_mean: exact(self.offered_load() * queue.served),
            wait_probability: exact(queue.waiting),
            wait_mean_ns: exact(queue.wait_mean() * hold_ns),
            wait_p50_ns: exact(queue.wait_quantile(0.5) * hold_ns),
            wait_p99_ns: exact(queue.wait_quantile(0.99) * hold_ns),
            refused_share: exact(queue.refused),
            gave_up_share: exact(0.0),
            ..row
        }
    }
}
