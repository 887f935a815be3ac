//! Pools of servers at which callers arrive: `predict --arrivals`.

use std::collections::BTreeSet;

use clap::Args;
use threadtoll_model::pool::{Figure, Row, Rows};
use threadtoll_model::{MAX_SERVERS, ModelError, Pool};
use threadtoll_record::{PoolPrediction, PoolRow};

use super::check_effort;
use super::distribution::Distribution;
use crate::failure::Failure;
use crate::parse::{count, duration_ns, numbers_of_servers, optional, rate_per_s};

/// Approximate number of rows of a default table.
const ROWS: u32 = 12;

/// Options of threads that share a lock, and other questions. They cannot be combined with
/// `--arrivals`.
const OTHERS: [&str; 9] =
    ["think", "threads", "think_shape", "handoff", "policy", "cores", "stripes", "tasks", "fit"];

#[derive(Debug, Args)]
pub(super) struct PoolArgs {
    /// Predict a pool of servers (connections, workers, permits) instead of a lock: rate at which
    /// callers arrive at random, such as 20/s. --hold is the time for which one holds a server
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, conflicts_with_all = OTHERS)]
    arrivals: Option<String>,
    /// Numbers of servers of the pool, such as 6,8 or 6..24 [default: from those that are busy on
    /// average to beyond those that are enough]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, requires = "arrivals")]
    servers: Option<String>,
    /// Number of callers that may wait; any further one is refused [default: no limit]
    #[arg(long, value_name = "N", allow_hyphen_values = true, requires = "arrivals")]
    queue: Option<String>,
    /// Time after which a waiting caller gives up [default: never]
    #[arg(long, value_name = "D", allow_hyphen_values = true, requires = "arrivals")]
    patience: Option<String>,
    /// Servers are enough if they keep the p99 wait below this time [default: the mean hold time]
    #[arg(long, value_name = "D", allow_hyphen_values = true, requires = "arrivals")]
    target: Option<String>,
}

impl PoolArgs {
    pub(super) fn arrivals(&self) -> Option<&str> {
        self.arrivals.as_deref()
    }
}

/// Predicts a pool with these arrivals. The other arguments are options of all predictions.
pub(super) fn predict(
    args: &PoolArgs,
    arrivals: &str,
    hold_ns: Option<f64>,
    hold: &Distribution,
    simulate: bool,
    seed: u64,
) -> Result<PoolPrediction, Failure> {
    let arrivals_per_s = rate_per_s("--arrivals", arrivals)?;
    let servers = optional(&args.servers, numbers_of_servers)?;
    // At most `MAX_SERVERS`, so it fits into a `u32`.
    let places = optional(&args.queue, |text| count("--queue", text, 0, MAX_SERVERS.into()))?
        .map(|places| places as u32);
    let duration = |option, text: &str| duration_ns(option, text).map(|ns| ns as f64);
    let patience_ns = optional(&args.patience, |text| duration("--patience", text))?;
    let target_ns = optional(&args.target, |text| duration("--target", text))?;
    let shape = hold.shape("--hold", hold_ns)?;
    if shape.mean_ns() == 0.0 {
        return Err(Failure::usage("the hold time is zero, so callers need no server")
            .hint("give a --hold longer than zero"));
    }
    let target_ns = target_ns.unwrap_or(shape.mean_ns());
    let pool = Pool { places, patience_ns, ..Pool::new(arrivals_per_s, shape) };
    let mut rows = Rows::new(&pool, simulate, seed)?;
    let fewest = rows.fewest_servers(target_ns)?;
    let enough = fewest.map(|enough| enough.servers);
    let servers = match servers {
        Some(servers) => servers,
        None => default_servers(rows.offered_load(), enough)?,
    };
    let effort: u64 = servers.iter().map(|servers| rows.effort(*servers)).sum();
    check_effort(effort, "arrivals", "use fewer numbers of servers")?;
    let predicted = servers
        .iter()
        .map(|servers| rows.row(*servers).map(|found| row(&found)))
        .collect::<Result<Vec<PoolRow>, ModelError>>()?;
    Ok(PoolPrediction {
        arrivals_per_s,
        hold_ns: pool.hold.mean_ns(),
        hold_shape: hold.name().to_string(),
        hold_variation: pool.hold.variation(),
        queue: places,
        patience_ns,
        target_ns,
        seed,
        offered_load: rows.offered_load(),
        enough_servers: enough,
        fewer_may_do: fewest.is_some_and(|enough| enough.fewer_may_do),
        rows: predicted,
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

fn row(row: &Row) -> PoolRow {
    let value = |figure: Option<Figure>| figure.map(|figure| figure.value);
    let interval = |figure: Option<Figure>| figure.and_then(|figure| figure.interval99);
    PoolRow {
        servers: row.servers,
        model: row.model.name().to_string(),
        why: row.why.to_string(),
        queue_growth_per_s: row.growth_per_s,
        in_use_mean: value(row.in_use_mean),
        wait_probability: value(row.wait_probability),
        wait_probability_interval99: interval(row.wait_probability),
        wait_mean_ns: value(row.wait_mean_ns),
        wait_mean_ns_interval99: interval(row.wait_mean_ns),
        wait_p50_ns: value(row.wait_p50_ns),
        wait_p50_ns_interval99: interval(row.wait_p50_ns),
        wait_p99_ns: value(row.wait_p99_ns),
        wait_p99_ns_interval99: interval(row.wait_p99_ns),
        refused_share: value(row.refused_share),
        refused_share_interval99: interval(row.refused_share),
        gave_up_share: value(row.gave_up_share),
        gave_up_share_interval99: interval(row.gave_up_share),
    }
}
