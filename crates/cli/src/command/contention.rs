//! `threadtoll contention`: threads that contend for locks.

use clap::Args;
use serde::Serialize;
use threadtoll_lab::contention::{MAX_TASKS, Overrides, SCENARIOS, Scenario};
use threadtoll_lab::lock::{LockSpec, MAX_THREADS, NameError, STRIPED};
use threadtoll_lab::plan::{CpuSelection, LockChoice, Planned, contention};
use threadtoll_record::{Placement, Share, Work};

use crate::by_name;
use crate::failure::Failure;
use crate::measure::{MeasureArgs, MeasureCommand, MeasureRequest};
use crate::nearest::unknown;
use crate::parse::{
    DURATIONS, choice, count, duration, duration_ns, list, names, numbers_of_threads, optional,
    share,
};
use crate::peers::PeersArgs;
use crate::registry::registry;
use crate::scenario::ScenarioArgs;

const AFTER_HELP: &str = "\
Speed-ups are relative to one thread alone without a lock. A model predicts each cell before it \
is measured, from hold times, think times and hand-offs calibrated in the same group.\n\n\
With --work sleep the threads sleep instead of computing, so that there can be many more of them \
than CPUs. Example: threadtoll contention hold-sweep std-mutex --work sleep --threads 1,4,16 \
--hold-share 5%,25%,50%";

const MAX_RATE: u64 = 100_000_000;
/// The highest rate that sleeping threads can reach: no sleep is shorter than about 100 µs.
const MAX_ASLEEP_PER_S: f64 = 10_000.0;

const WORKS: [(&str, Work); 2] = [("spin", Work::Spin), ("sleep", Work::Sleep)];

/// Measure and predict speed-up, queue and waits of threads that contend for locks
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Contention {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Locks to measure, as named by `threadtoll list locks` [default: depends on the scenario]
    #[arg(value_name = "LOCK")]
    locks: Vec<String>,
    /// Numbers of threads, such as 1,2,4 or 1..8 [default: hold-sweep: 1 to the number of CPUs
    /// plus one; hold-think: 1 to twice the number of CPUs]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    threads: Option<String>,
    /// Shares of its time for which a thread that never waits holds the lock, such as 0.05,50%
    /// [default: 0 to 1]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    hold_share: Option<String>,
    /// Acquisitions per second of a thread that never waits [default: 15000; with --work sleep:
    /// 100]
    #[arg(long, value_name = "PER_SECOND", allow_hyphen_values = true)]
    rate: Option<String>,
    /// hold-think, pool: hold time of the lock (250ns, 2.5us, 5ms, 2s) [default: 5us; pool: 500us]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    hold: Option<String>,
    /// hold-think, pool: time between release and next request [default: 45us; pool: 9.5ms]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    think: Option<String>,
    /// Work of the threads: spin (compute) or sleep [default: spin; pool: sleep]
    #[arg(long, value_name = "WORK")]
    work: Option<String>,
    /// Shares of acquisitions that only read, for locks with readers [default: 0,0.9]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    read_share: Option<String>,
    /// pool: number of tasks that the threads share [default: 1000]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    tasks: Option<String>,
    #[command(flatten)]
    peers: PeersArgs,
    #[command(flatten)]
    measure: MeasureArgs,
}

#[derive(Debug, Serialize)]
pub(crate) struct Request {
    /// `None` only if a run is resumed.
    #[serde(serialize_with = "by_name::one")]
    scenario: Option<&'static Scenario>,
    locks: Vec<String>,
    threads: Option<Vec<u32>>,
    hold_share: Option<Vec<Share>>,
    rate: Option<f64>,
    hold_ns: Option<u64>,
    think_ns: Option<u64>,
    work: Option<Work>,
    read_share: Option<Vec<Share>>,
    tasks: Option<u64>,
}

impl MeasureCommand for Contention {
    const NAME: &'static str = "contention";
    // A block has to hold many cycles of hold and think time.
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
        let resumed = self.measure.resume.is_some();
        let is_lock = |name: &str| registry().locks.parse(name).is_ok();
        let scenario = self.scenario.check(Self::NAME, SCENARIOS, resumed, "lock", is_lock)?;
        if let Some(scenario) = scenario {
            self.validate_options(scenario)?;
        }
        if common.samples.is_some() {
            return Err(Failure::usage(
                "--samples does not apply to locks, which are measured for a set time",
            )
            .hint("use --time to set the measuring time of each cell"));
        }
        let request = Request {
            scenario,
            locks: names(&self.locks, "lock", lock_name)?,
            threads: optional(&self.threads, threads)?,
            hold_share: optional(&self.hold_share, |text| shares("--hold-share", text))?,
            rate: optional(&self.rate, |text| count("--rate", text, 1, MAX_RATE))?
                .map(|rate| rate as f64),
            hold_ns: optional(&self.hold, |text| duration_ns("--hold", text))?,
            think_ns: optional(&self.think, think_ns)?,
            work: optional(&self.work, |text| choice("--work", text, &WORKS))?,
            read_share: optional(&self.read_share, |text| shares("--read-share", text))?,
            tasks: optional(&self.tasks, |text| count("--tasks", text, 1, MAX_TASKS))?,
        };
        request.validate()?;
        Ok(request)
    }

    fn plan(request: &Request, common: &MeasureRequest, site: &CpuSelection<'_>) -> Planned {
        let Some(scenario) = request.scenario else { return Planned::default() };
        let choice = LockChoice {
            locks: request.locks.clone(),
            placements: common.placements_or(&[Placement::Pinned]),
            overrides: Overrides {
                threads: request.threads.clone(),
                hold_shares: request.hold_share.clone(),
                rate_per_s: request.rate,
                hold_ns: request.hold_ns,
                think_ns: request.think_ns,
                work: request.work,
                read_shares: request.read_share.clone(),
                tasks: request.tasks,
                time_ns: common.time_ns,
            },
        };
        contention(site, scenario, &registry().locks, &choice)
    }
}

impl Contention {
    fn validate_options(&self, scenario: &Scenario) -> Result<(), Failure> {
        // Destructured, so that no option is forgotten.
        let Contention {
            scenario: _,
            locks: _,
            threads,
            hold_share,
            rate,
            hold,
            think,
            work,
            read_share,
            tasks,
            peers: _,
            measure: _,
        } = self;
        let options = [
            ("threads", threads),
            ("hold-share", hold_share),
            ("rate", rate),
            ("hold", hold),
            ("think", think),
            ("work", work),
            ("read-share", read_share),
            ("tasks", tasks),
        ];
        let refused = options
            .iter()
            .find(|(name, value)| value.is_some() && !scenario.options.contains(name));
        match refused {
            None => Ok(()),
            Some((name, _)) => {
                let has: Vec<String> =
                    scenario.options.iter().map(|option| format!("--{option}")).collect();
                Err(Failure::usage(format!("{} has no --{name}", scenario.name))
                    .hint(format!("its options: {}", has.join(", "))))
            }
        }
    }
}

impl Request {
    fn validate(&self) -> Result<(), Failure> {
        let sleeps = self.work == Some(Work::Sleep);
        if let Some(rate) = self.rate.filter(|rate| sleeps && *rate > MAX_ASLEEP_PER_S) {
            return Err(Failure::usage(format!(
                "--rate {rate} is too high for --work sleep: sleeps are not that short"
            ))
            .hint(format!("use at most {MAX_ASLEEP_PER_S}, or --work spin")));
        }
        let known = &registry().locks;
        let mut named = self.locks.iter().filter_map(|name| known.parse(name).ok());
        if self.read_share.is_some() && !named.any(|lock| lock.has_readers()) {
            let known: Vec<&str> = known
                .all()
                .filter(|lock| lock.has_readers)
                .map(|lock| lock.name.as_str())
                .collect();
            return Err(Failure::usage("--read-share does not apply to locks without readers")
                .hint(format!("add a lock with readers: {}", known.join(", "))));
        }
        Ok(())
    }
}

fn lock_name(name: &str) -> Result<String, Failure> {
    let error = match registry().locks.parse(name) {
        // Every group has the baseline without a lock anyway.
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

fn threads(text: &str) -> Result<Vec<u32>, Failure> {
    let threads = numbers_of_threads(text)?;
    match threads.iter().find(|threads| **threads > MAX_THREADS) {
        Some(most) => Err(Failure::usage(format!("--threads {text}: {most} threads are too many"))
            .hint(format!("use at most {MAX_THREADS}"))),
        None => Ok(threads),
    }
}

fn shares(option: &str, text: &str) -> Result<Vec<Share>, Failure> {
    list(option, text, "share", |part| {
        let value = share(part);
        value.and_then(Share::new).ok_or_else(|| {
            let why = if value.is_some() { "is not a share" } else { "is not a number" };
            Failure::usage(format!("{option} {text}: “{part}” {why}"))
                .hint("a share is 0 to 1, or 0% to 100%")
        })
    })
}

/// Reads `--think`. Zero is allowed: then every thread wants the lock all the time.
fn think_ns(text: &str) -> Result<u64, Failure> {
    match duration(text) {
        Ok(0.0) => Ok(0),
        Ok(_) => duration_ns("--think", text),
        Err(why) => Err(Failure::usage(format!("--think {text}: {why}")).hint(DURATIONS)),
    }
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
        let line = "pool --hold 2us --think 0 --tasks 40";
        let options = json!({"scenario": "pool", "hold_ns": 2000, "think_ns": 0, "tasks": 40});
        assert_eq!(plan_options::<Contention>(line), options);
    }

    #[test]
    fn shares_are_numbers_and_percentages() {
        let of = |text| {
            shares("--hold-share", text)
                .map(|all| all.into_iter().map(Share::value).collect::<Vec<_>>())
                .map_err(drop)
        };
        assert_eq!(of("0,0.05, 50%,1").unwrap(), [0.0, 0.05, 0.5, 1.0]);
        for text in ["", "-0.1", "-10%", "50", "101%", "a", "0.5,50%", "NaN", "1e-1", "%", "0,,1"] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
