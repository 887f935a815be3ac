mod args;

use clap::Args;
use serde::Serialize;
use threadtoll_lab::contention::{self as lab, Load, Overrides, Scenario};
use threadtoll_lab::lock::{LockSpec, MAX_THREADS, NameError, STRIPED};
use threadtoll_lab::plan::{CpuSelection, LockChoice, Planned, contention};
use threadtoll_record::{Placement, Share, Work};

use crate::by_name;
use crate::failure::Failure;
use crate::measure::{MeasureArgs, MeasureCommand, MeasureRequest, Options, given};
use crate::nearest::unknown;
use crate::parse::{List, Reader, choice, names, numbers_of_threads};
use crate::peers::PeersArgs;
use crate::registry::registry;
use crate::scenario::{missing, scenarios};

const AFTER_HELP: &str = "\
Speed-ups are relative to one thread without a lock. Before a row is measured, a model predicts its \
figures from hold times, think times and hand-off costs, which are measured just before.\n\n\
With --work sleep the threads sleep instead of computing, so that there can be many more of them \
than CPUs. Example: threadtoll contention hold-sweep std-mutex --work sleep --threads 1,4,16 \
--hold-share 5%,25%,50%";

const WORKS: [(&str, Work); 2] = [("spin", Work::Spin), ("sleep", Work::Sleep)];

/// Measure and predict speed-up, queue and waits of threads that contend for locks
#[derive(Debug, Args)]
#[command(
    after_help = AFTER_HELP,
    next_help_heading = "Options of all scenarios"
)]
pub(crate) struct Contention {
    #[command(subcommand)]
    scenario: Option<Chosen>,
    /// Numbers of threads, such as 1,2,4 or 1..8 [default: hold-sweep: 1 to the number of CPUs plus
    /// one; hold-think: 1 to twice the number of CPUs; overload: 2 that compute, 16 that sleep]
    #[arg(long, value_name = "LIST", value_parser = Reader(threads), allow_hyphen_values = true)]
    threads: Option<List<u32>>,
    /// Work of the threads: spin (compute) or sleep [default: spin; pool: sleep; overload: both]
    #[arg(long, value_name = "WORK", value_parser = Reader(work))]
    work: Option<Work>,
    #[command(flatten)]
    peers: PeersArgs,
    #[command(flatten)]
    measure: MeasureArgs,
}

scenarios! {
    hold_sweep::HoldSweep,
    frequency_sweep::FrequencySweep,
    hold_think::HoldThink,
    pool::Pool,
    overload::Overload,
}

/// The options of a scenario, and the names of the locks to measure.
#[derive(Debug, Args, Serialize)]
struct Names<T: Args> {
    /// Locks to measure, as named by `threadtoll list locks` [default: depends on the scenario]
    #[arg(id = "locks", value_name = "LOCK")]
    #[serde(skip)]
    names: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    options: T,
}

/// A scenario's own options. A plan stores them by field name.
trait ScenarioOptions {
    /// Loads (hold and think times) that the options request. An error if one is impossible.
    fn loads(&self, work: Option<Work>) -> Result<Vec<Load>, Failure>;

    /// Shares of acquisitions that only read, if the options request any.
    fn read_shares(&self) -> Option<&[Share]> {
        None
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Request {
    /// `None` only if a run is resumed, because its file names the scenario.
    #[serde(serialize_with = "by_name::one")]
    scenario: Option<&'static Scenario>,
    locks: Vec<String>,
    threads: Option<Vec<u32>>,
    work: Option<Work>,
    #[serde(flatten)]
    own: Options,
    #[serde(skip)]
    overrides: Overrides,
}

impl MeasureCommand for Contention {
    const NAME: &'static str = "contention";
    // A block (an uninterrupted measurement) must be long, because it must contain many cycles of
    // hold and think time.
    const SPLITS_BLOCKS: bool = false;
    const NOTHING_LEFT: &'static str =
        "try other locks or fewer threads: `threadtoll list locks`, --threads";
    type Request = Request;

    fn measure_args(&self) -> &MeasureArgs {
        &self.measure
    }

    fn peers(&self) -> Option<&PeersArgs> {
        Some(&self.peers)
    }

    fn check(&self, common: &MeasureRequest) -> Result<Request, Failure> {
        let mut request = Request {
            scenario: None,
            locks: Vec::new(),
            threads: self.threads.clone(),
            work: self.work,
            own: Options::new(),
            overrides: Overrides::default(),
        };
        let known = self.scenario.as_ref().and_then(Chosen::known);
        let Some((scenario, locks, options)) = known else {
            let name = self.scenario.as_ref().and_then(Chosen::unknown);
            if self.measure.resume.is_some() && name.is_none() {
                return Ok(request);
            }
            let is_lock = |name: &str| registry().locks.parse(name).is_ok();
            return Err(missing(Self::NAME, lab::SCENARIOS, name, "lock", is_lock));
        };
        request.scenario = Some(scenario);
        request.locks = names(locks, "lock", lock_name)?;
        request.own = given(&self.scenario)?;
        request.overrides = Overrides {
            threads: self.threads.clone(),
            loads: Some(options.loads(self.work)?),
            read_shares: options.read_shares().map(<[Share]>::to_vec),
            time_ns: common.time_ns,
        };
        request.validate()?;
        Ok(request)
    }

    fn plan(request: &Request, common: &MeasureRequest, site: &CpuSelection<'_>) -> Planned {
        let Some(scenario) = request.scenario else { return Planned::default() };
        let choice = LockChoice {
            locks: request.locks.clone(),
            placements: common.placements_or(&[Placement::Pinned]),
            overrides: request.overrides.clone(),
        };
        contention(site, scenario, &registry().locks, &choice)
    }
}

impl Request {
    fn validate(&self) -> Result<(), Failure> {
        let known = &registry().locks;
        let mut named = self.locks.iter().filter_map(|name| known.parse(name).ok());
        if self.overrides.read_shares.is_some() && !named.any(|lock| lock.has_readers()) {
            let known: Vec<&str> = known
                .all()
                .filter(|lock| lock.has_readers)
                .map(|lock| lock.name.as_str())
                .collect();
            return Err(Failure::usage("--read-share applies only to reader-writer locks")
                .hint(format!("add one of these: {}", known.join(", "))));
        }
        Ok(())
    }
}

fn lock_name(name: &str) -> Result<String, Failure> {
    let error = match registry().locks.parse(name) {
        // The baseline without a lock cannot be requested: every group includes it anyway.
        Ok(LockSpec { lock: None, .. }) => NameError::Unknown(name.to_string()),
        Ok(_) => return Ok(name.to_string()),
        Err(error) => error,
    };
    let what = error.to_string();
    Err(match &error {
        NameError::Unknown(plain) => unknown(
            what,
            plain,
            registry().locks.all().map(|lock| lock.name.as_str()),
            "see `threadtoll list locks`",
        ),
        NameError::Stripes(_) => {
            Failure::usage(what).hint(format!("write {STRIPED}, such as striped/8:std-mutex"))
        }
        NameError::Unstriped(_) => {
            Failure::usage(what).hint("add a lock, such as striped/8:std-mutex")
        }
    })
}

fn threads(option: &str, text: &str) -> Result<Vec<u32>, Failure> {
    let threads = numbers_of_threads(text)?;
    match threads.iter().find(|threads| **threads > MAX_THREADS) {
        Some(most) => Err(Failure::usage(format!("{option} {text}: {most} threads are too many"))
            .hint(format!("use at most {MAX_THREADS}"))),
        None => Ok(threads),
    }
}

fn work(option: &str, text: &str) -> Result<Work, Failure> {
    choice(option, text, &WORKS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::measure::plan_options;

    #[test]
    fn plans_keep_the_options_that_were_given() {
        let line = "hold-sweep std-rwlock --threads 1..3 --hold-share 5%,1 --rate 500 --work sleep \
                    --read-share 0.9";
        let options = json!({
            "scenario": "hold-sweep", "locks": ["std-rwlock"], "threads": [1, 2, 3],
            "hold_share": [0.05, 1.0], "rate": 500.0, "work": "sleep", "read_share": [0.9],
        });
        assert_eq!(plan_options::<Contention>(line), options);
        let line = "overload --arrivals 50%,2 --bound 0,8 --deadline 60ms --hold 5ms --work sleep";
        let options = json!({
            "scenario": "overload", "arrivals": [0.5, 2.0], "bound": [0, 8],
            "deadline_ns": [60_000_000], "hold_ns": 5_000_000, "work": "sleep",
        });
        assert_eq!(plan_options::<Contention>(line), options);
        let line = "pool --hold 2us --think 0 --tasks 40";
        let options = json!({"scenario": "pool", "hold_ns": 2000, "think_ns": 0, "tasks": 40});
        assert_eq!(plan_options::<Contention>(line), options);
    }
}
