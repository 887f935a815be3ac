//! Pools of servers at which callers arrive: `predict --arrivals`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use threadtoll_model::pool::{Enough, Figure, Row, Rows};
use threadtoll_model::{MAX_SERVERS, ModelError, Pool};
use threadtoll_record::{MeasuredBy, MeasuredLock, PoolPrediction, PoolRow};

use super::check_effort;
use super::distribution::Distribution;
use super::from::Taken;
use crate::failure::Failure;
use crate::parse::{count, duration_ns, numbers_of_servers, optional, rate_per_s};

/// Approximate number of rows of a default table.
const ROWS: u32 = 12;

/// Options of threads that share a lock, and other questions. They cannot be combined with those of
/// a pool.
const OTHERS: [&str; 9] =
    ["think", "threads", "think_shape", "handoff", "policy", "cores", "stripes", "tasks", "fit"];

#[derive(Debug, Args)]
pub(super) struct PoolArgs {
    /// Predict a pool of servers (connections, workers, permits) instead of a lock: rate at which
    /// callers arrive at random, such as 20/s, or `measured`: that of --from, which a profile does
    /// not tell. --hold is the time for which one holds a server
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, conflicts_with_all = OTHERS)]
    arrivals: Option<String>,
    /// Numbers of servers of the pool, such as 6,8 or 6..24 [default: from those that are busy on
    /// average to beyond those that are enough]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    #[arg(requires = "arrivals", conflicts_with_all = OTHERS)]
    servers: Option<String>,
    /// Number of callers that may wait; any further one is refused [default: no limit]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    #[arg(requires = "arrivals", conflicts_with_all = OTHERS)]
    queue: Option<String>,
    /// Time after which a waiting caller gives up [default: never]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    #[arg(requires = "arrivals", conflicts_with_all = OTHERS)]
    patience: Option<String>,
    /// Servers are enough if they keep the p99 wait below this time [default: the mean hold time]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    #[arg(requires = "arrivals", conflicts_with_all = OTHERS)]
    target: Option<String>,
    /// Also draw waits by number of servers on a page in this file
    #[arg(long, value_name = "FILE", requires = "arrivals", conflicts_with_all = OTHERS)]
    pub(super) html: Option<PathBuf>,
}

impl PoolArgs {
    pub(super) fn arrivals(&self) -> Option<&str> {
        self.arrivals.as_deref()
    }
}

/// Rate of arrivals, and mean hold time.
#[derive(Clone, Copy, Debug)]
struct Load {
    arrivals_per_s: f64,
    hold_ns: Option<f64>,
}

/// Word for the rate of arrivals of the file.
const MEASURED: &str = "measured";

/// Arrivals and hold times of a pool.
#[derive(Debug)]
pub(super) struct Source {
    load: Load,
    /// The loads with the lowest and the highest offered load that the intervals allow.
    ends: Option<[Load; 2]>,
    hold_ns_interval95: Option<[f64; 2]>,
    hold: Distribution,
    from: Option<MeasuredLock>,
}

impl Source {
    /// Takes both from the options.
    pub(super) fn given(
        arrivals: &str,
        hold_ns: Option<f64>,
        hold: Distribution,
    ) -> Result<Self, Failure> {
        if arrivals == MEASURED {
            return Err(Failure::usage(format!("--arrivals {MEASURED} needs a measured lock"))
                .hint("add --from FILE, a file of `threadtoll contention`"));
        }
        let load = Load { arrivals_per_s: rate_per_s("--arrivals", arrivals)?, hold_ns };
        Ok(Source { load, ends: None, hold_ns_interval95: None, hold, from: None })
    }

    /// Takes hold times from a measured lock, and the arrivals, too, if they are not given.
    pub(super) fn measured(
        arrivals: &str,
        taken: Taken,
        hold: Option<Distribution>,
    ) -> Result<Self, Failure> {
        let lock = &taken.measured;
        let (arrivals_per_s, arrivals_ends) = match arrivals {
            MEASURED => {
                let measured = lock.acquisitions_per_s.filter(|rate| *rate > 0.0);
                let rate = measured.ok_or_else(|| no_rate(lock))?;
                (rate, lock.acquisitions_per_s_interval95)
            }
            given => (rate_per_s("--arrivals", given)?, None),
        };
        let (hold_ns, hold_ns_interval95) = taken.hold_ns(arrivals_per_s);
        let ends = (arrivals_ends.is_some() || hold_ns_interval95.is_some()).then(|| {
            let arrivals = arrivals_ends.unwrap_or([arrivals_per_s; 2]);
            let holds = hold_ns_interval95.unwrap_or([hold_ns; 2]);
            [
                Load {
                    arrivals_per_s: arrivals[0].min(arrivals_per_s),
                    hold_ns: Some(holds[0].min(hold_ns)),
                },
                Load {
                    arrivals_per_s: arrivals[1].max(arrivals_per_s),
                    hold_ns: Some(holds[1].max(hold_ns)),
                },
            ]
        });
        let hold = match hold {
            Some(hold) => hold,
            None => {
                let [hold, _] = taken.shapes()?;
                hold
            }
        };
        let load = Load { arrivals_per_s, hold_ns: Some(hold_ns) };
        Ok(Source { load, ends, hold_ns_interval95, hold, from: Some(taken.measured) })
    }
}

fn no_rate(lock: &MeasuredLock) -> Failure {
    match lock.source {
        MeasuredBy::Profile => Failure::usage(format!(
            "{} is a profile, which tells shares of time but not how often {} was acquired",
            lock.file, lock.lock
        ))
        .hint("give the rate of acquisitions while it was profiled, such as --arrivals 20/s"),
        MeasuredBy::Contention => {
            Failure::usage(format!("{} has no rate of acquisitions", lock.file))
                .hint("give a rate, such as --arrivals 20/s")
        }
    }
}

/// Predicts a pool with these arrivals and hold times.
pub(super) fn predict(
    args: &PoolArgs,
    source: Source,
    simulate: bool,
    seed: u64,
) -> Result<PoolPrediction, Failure> {
    let servers = optional(&args.servers, numbers_of_servers)?;
    // At most `MAX_SERVERS`, so it fits into a `u32`.
    let places = optional(&args.queue, |text| count("--queue", text, 0, MAX_SERVERS.into()))?
        .map(|places| places as u32);
    let duration = |option, text: &str| duration_ns(option, text).map(|ns| ns as f64);
    let patience_ns = optional(&args.patience, |text| duration("--patience", text))?;
    let target_ns = optional(&args.target, |text| duration("--target", text))?;
    let pool_of = |load: Load| -> Result<Pool, Failure> {
        let shape = source.hold.shape("--hold", load.hold_ns)?;
        if shape.mean_ns() == 0.0 {
            return Err(Failure::usage("the hold time is zero, so callers need no server")
                .hint("give a --hold longer than zero"));
        }
        Ok(Pool { places, patience_ns, ..Pool::new(load.arrivals_per_s, shape) })
    };
    let pool = pool_of(source.load)?;
    let target_ns = target_ns.unwrap_or(pool.hold.mean_ns());
    let mut rows = Rows::new(&pool, simulate, seed)?;
    let fewest = rows.fewest_servers(target_ns)?;
    let enough = fewest.map(|enough| enough.servers);
    let servers = match servers {
        Some(servers) => servers,
        None => default_servers(rows.offered_load(), enough)?,
    };
    let end_pools = source.ends.map(|ends| ends.map(pool_of));
    let end_pools = match end_pools {
        Some([least, most]) => vec![least?, most?],
        None => Vec::new(),
    };
    let mut ends: Vec<Rows<'_>> = end_pools
        .iter()
        .map(|pool| Rows::new(pool, simulate, seed))
        .collect::<Result<_, ModelError>>()?;
    let of_row = |servers: &u32| {
        rows.effort(*servers) + ends.iter().map(|end| end.effort(*servers)).sum::<u64>()
    };
    check_effort(servers.iter().map(of_row).sum(), "arrivals", "use fewer numbers of servers")?;
    let predicted = servers
        .iter()
        .map(|servers| {
            let of_ends = ends.iter_mut().map(|end| end.row(*servers));
            let of_ends: Vec<Row> = of_ends.collect::<Result<_, ModelError>>()?;
            Ok(row(&rows.row(*servers)?, &of_ends))
        })
        .collect::<Result<Vec<PoolRow>, ModelError>>()?;
    let fewest_at_ends: Vec<Option<Enough>> = ends
        .iter_mut()
        .map(|end| end.fewest_servers(target_ns))
        .collect::<Result<_, ModelError>>()?;
    Ok(PoolPrediction {
        arrivals_per_s: pool.arrivals_per_s,
        arrivals_per_s_interval95: source
            .ends
            .map(|ends| ends.map(|load| load.arrivals_per_s))
            .filter(|[low, high]| low < high),
        hold_ns: pool.hold.mean_ns(),
        hold_ns_interval95: source.hold_ns_interval95,
        hold_shape: source.hold.name().to_string(),
        hold_variation: pool.hold.variation(),
        queue: places,
        patience_ns,
        target_ns,
        seed,
        offered_load: rows.offered_load(),
        enough_servers: enough,
        enough_servers_interval95: match (enough, &fewest_at_ends[..]) {
            (Some(enough), [Some(least), Some(most)]) => {
                Some([least.servers.min(enough), most.servers.max(enough)])
            }
            _ => None,
        },
        fewer_may_do: match fewest {
            Some(enough) => enough.fewer_may_do,
            None => rows.row(MAX_SERVERS)?.is_withheld(),
        },
        rows: predicted,
        from: source.from,
    })
}

/// From the servers that are busy on average, which are not enough without limits on the queue,
/// to a few more than are enough.
fn default_servers(offered: f64, enough: Option<u32>) -> Result<Vec<u32>, Failure> {
    if offered >= f64::from(MAX_SERVERS) {
        return Err(Failure::usage(format!(
            "{offered:.0} servers would be busy on average, but at most {MAX_SERVERS} are predicted"
        ))
        .hint("give a lower rate of arrivals or a shorter hold time"));
    }
    let first = (offered as u32).max(1);
    let last = enough.unwrap_or(first).max(first).saturating_add(2).min(MAX_SERVERS);
    let step = ((last - first) / ROWS).max(1);
    let mut all: BTreeSet<u32> = (first..=last).step_by(step as usize).collect();
    all.extend(enough);
    all.insert(last);
    Ok(all.into_iter().collect())
}

/// `ends` are the rows with arrivals and hold times at both ends of their intervals.
fn row(row: &Row, ends: &[Row]) -> PoolRow {
    type Of = fn(&Row) -> Option<Figure>;
    let value = |of: Of| of(row).map(|figure| figure.value);
    let interval99 = |of: Of| of(row)?.interval99;
    let interval95 = |of: Of| {
        let figures = [row].into_iter().chain(ends).map(of).collect::<Option<Vec<Figure>>>()?;
        let all = figures.iter().flat_map(|it| it.interval99.unwrap_or([it.value; 2]));
        let (low, high) =
            all.fold((f64::INFINITY, 0.0_f64), |(low, high), end| (low.min(end), high.max(end)));
        (!ends.is_empty()).then_some([low, high])
    };
    let waits: Of = |row| row.wait_probability;
    let (mean, p50, p99): (Of, Of, Of) =
        (|row| row.wait_mean_ns, |row| row.wait_p50_ns, |row| row.wait_p99_ns);
    let (refused, gave_up): (Of, Of) = (|row| row.refused_share, |row| row.gave_up_share);
    PoolRow {
        servers: row.servers,
        model: row.model.name().to_string(),
        why: row.why.to_string(),
        queue_growth_per_s: row.growth_per_s,
        in_use_mean: value(|row| row.in_use_mean),
        wait_probability: value(waits),
        wait_probability_interval99: interval99(waits),
        wait_probability_interval95: interval95(waits),
        wait_mean_ns: value(mean),
        wait_mean_ns_interval99: interval99(mean),
        wait_mean_ns_interval95: interval95(mean),
        wait_p50_ns: value(p50),
        wait_p50_ns_interval99: interval99(p50),
        wait_p50_ns_interval95: interval95(p50),
        wait_p99_ns: value(p99),
        wait_p99_ns_interval99: interval99(p99),
        wait_p99_ns_interval95: interval95(p99),
        refused_share: value(refused),
        refused_share_interval99: interval99(refused),
        refused_share_interval95: interval95(refused),
        gave_up_share: value(gave_up),
        gave_up_share_interval99: interval99(gave_up),
        gave_up_share_interval95: interval95(gave_up),
    }
}
