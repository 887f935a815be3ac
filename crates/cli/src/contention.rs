//! What `contention` was asked for, checked.

use serde_json::json;
use threadtoll_lab::contention::{MOST_TASKS, SCENARIOS, Scenario, Wanted, scenario};
use threadtoll_lab::lock::{self, MOST_THREADS, NameError, Named, STRIPED};
use threadtoll_record::{Share, Work};

use crate::arguments::Contention;
use crate::failure::Failure;
use crate::nearest::unknown;
use crate::parse::{DURATIONS, choice, count, duration, duration_ns, numbers_of_threads, optional};
use crate::request::{Common, Options};

/// Nobody takes a lock more often, per second.
const MOST_RATE: u64 = 100_000_000;
/// Sleeps are no shorter than this, whatever was asked for: rarer than once a hundred microseconds
/// is what they can do.
const MOST_ASLEEP_PER_S: f64 = 10_000.0;

/// What `contention` was asked for, checked.
#[derive(Clone, Debug)]
pub(crate) struct ContentionRequest {
    /// Null only where a run is resumed.
    pub(crate) scenario: Option<&'static Scenario>,
    pub(crate) locks: Vec<String>,
    pub(crate) wanted: Wanted,
}

impl ContentionRequest {
    pub(crate) fn check(asked: &Contention, common: &Common) -> Result<Self, Failure> {
        let found = match &asked.scenario {
            Some(name) => Some(find_scenario(name)?),
            None if asked.measure.resume.is_some() => None,
            None => {
                return Err(Failure::usage("contention needs a scenario")
                    .hint(format!("it is one of: {}", scenarios())));
            }
        };
        if let Some(scenario) = found {
            has_options(scenario, asked)?;
        }
        if common.samples.is_some() {
            return Err(Failure::usage("locks are watched for a time, so --samples says nothing")
                .hint("--time sets how long each cell is measured"));
        }
        let mut locks: Vec<String> = Vec::new();
        for name in &asked.locks {
            check_lock(name)?;
            if locks.contains(name) {
                return Err(
                    Failure::usage(format!("{name} is named twice")).hint("name each lock once")
                );
            }
            locks.push(name.clone());
        }
        let works = [("spin", Work::Spin), ("sleep", Work::Sleep)];
        let wanted = Wanted {
            threads: optional(&asked.threads, threads)?,
            hold_shares: optional(&asked.hold_share, |text| shares("--hold-share", text))?,
            rate_per_s: optional(&asked.rate, |text| {
                count("--rate", text, 1, MOST_RATE).map(|rate| rate as f64)
            })?,
            hold_ns: optional(&asked.hold, |text| duration_ns("--hold", text))?,
            think_ns: optional(&asked.think, think_ns)?,
            work: optional(&asked.work, |text| choice("--work", text, &works))?,
            read_shares: optional(&asked.read_share, |text| shares("--read-share", text))?,
            tasks: optional(&asked.tasks, |text| count("--tasks", text, 1, MOST_TASKS))?,
            time_ns: common.time_ns,
        };
        let sleeps = wanted.work == Some(Work::Sleep);
        if let Some(rate) = wanted.rate_per_s.filter(|rate| sleeps && *rate > MOST_ASLEEP_PER_S) {
            return Err(Failure::usage(format!(
                "--rate {rate} with --work sleep: no sleep is that short"
            ))
            .hint(format!("give at most {MOST_ASLEEP_PER_S}, or --work spin")));
        }
        if wanted.read_shares.is_some() {
            let named = locks.iter().filter_map(|name| Named::parse(name).ok());
            if !named.filter_map(|named| named.lock).any(|lock| lock.shares) {
                let known: Vec<&str> =
                    lock::ALL.iter().filter(|lock| lock.shares).map(|lock| lock.name).collect();
                return Err(Failure::usage(
                    "--read-share says nothing of locks that do not tell readers from writers",
                )
                .hint(format!("name one that does: {}", known.join(", "))));
            }
        }
        Ok(ContentionRequest { scenario: found, locks, wanted })
    }

    pub(crate) fn given(&self) -> Options {
        let mut given = Options::new();
        let wanted = &self.wanted;
        let mut note = |name: &str, value: Option<serde_json::Value>| {
            if let Some(value) = value {
                given.insert(name.into(), value);
            }
        };
        note("scenario", self.scenario.map(|scenario| json!(scenario.name)));
        note("locks", (!self.locks.is_empty()).then(|| json!(self.locks)));
        note("threads", wanted.threads.as_ref().map(|threads| json!(threads)));
        note("hold_share", wanted.hold_shares.as_ref().map(|shares| json!(shares)));
        note("rate", wanted.rate_per_s.map(|rate| json!(rate)));
        note("hold_ns", wanted.hold_ns.map(|ns| json!(ns)));
        note("think_ns", wanted.think_ns.map(|ns| json!(ns)));
        note("work", wanted.work.map(|work| json!(work)));
        note("read_share", wanted.read_shares.as_ref().map(|shares| json!(shares)));
        note("tasks", wanted.tasks.map(|tasks| json!(tasks)));
        given
    }
}

fn scenarios() -> String {
    SCENARIOS.iter().map(|scenario| scenario.name).collect::<Vec<_>>().join(", ")
}

fn find_scenario(name: &str) -> Result<&'static Scenario, Failure> {
    scenario(name).ok_or_else(|| {
        let otherwise = match Named::parse(name) {
            Ok(_) => format!("that is a lock; the scenario stands before it: {}", scenarios()),
            Err(_) => format!("it is one of: {}", scenarios()),
        };
        let names = SCENARIOS.iter().map(|scenario| scenario.name);
        unknown(format!("there is no scenario “{name}”"), name, names, otherwise)
    })
}

/// Refuses options that a scenario has no use for.
fn has_options(scenario: &Scenario, asked: &Contention) -> Result<(), Failure> {
    let given = [
        ("threads", asked.threads.is_some()),
        ("hold-share", asked.hold_share.is_some()),
        ("rate", asked.rate.is_some()),
        ("hold", asked.hold.is_some()),
        ("think", asked.think.is_some()),
        ("work", asked.work.is_some()),
        ("read-share", asked.read_share.is_some()),
        ("tasks", asked.tasks.is_some()),
    ];
    match given.iter().find(|(name, given)| *given && !scenario.options.contains(name)) {
        None => Ok(()),
        Some((name, _)) => {
            let has: Vec<String> =
                scenario.options.iter().map(|option| format!("--{option}")).collect();
            Err(Failure::usage(format!("{} has no --{name}", scenario.name))
                .hint(format!("it has: {}", has.join(", "))))
        }
    }
}

fn check_lock(name: &str) -> Result<(), Failure> {
    let error = match Named::parse(name) {
        // The absence of a lock is in every group anyway.
        Ok(Named { lock: None, .. }) => NameError::Unknown(name.to_string()),
        Ok(_) => return Ok(()),
        Err(error) => error,
    };
    let what = error.to_string();
    Err(match &error {
        NameError::Unknown(plain) => unknown(
            what,
            plain,
            lock::ALL.iter().map(|lock| lock.name),
            "`threadtoll list locks` names them all",
        ),
        NameError::Stripes(_) => {
            Failure::usage(what).hint(format!("write {STRIPED}, such as striped/8:std-mutex"))
        }
        NameError::Unstriped(_) => {
            Failure::usage(what).hint("name a lock, such as striped/8:std-mutex")
        }
    })
}

fn threads(text: &str) -> Result<Vec<u32>, Failure> {
    let threads = numbers_of_threads(text)?;
    match threads.iter().find(|threads| **threads > MOST_THREADS) {
        Some(most) => {
            Err(Failure::usage(format!("--threads {text}: {most} are more than are ever measured"))
                .hint(format!("give at most {MOST_THREADS}")))
        }
        None => Ok(threads),
    }
}

/// Reads `0.5`, `50%`, or several of them.
fn shares(option: &str, text: &str) -> Result<Vec<Share>, Failure> {
    let hint = "shares are written 0.5 or 50%, from 0 to 1";
    let mut all = Vec::new();
    for part in text.split(',') {
        let part = part.trim();
        let (number, scale) = match part.strip_suffix('%') {
            Some(number) => (number, 100.0),
            None => (part, 1.0),
        };
        let plain = !number.is_empty()
            && number.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-');
        let value = number.parse::<f64>().ok().filter(|_| plain);
        let share = value.and_then(|value| Share::new(value / scale)).ok_or_else(|| {
            let why = if value.is_some() { "is no share" } else { "is no number" };
            Failure::usage(format!("{option} {text}: “{part}” {why}")).hint(hint)
        })?;
        if all.contains(&share) {
            return Err(Failure::usage(format!("{option} {text}: {part} stands in it twice"))
                .hint("name each share once"));
        }
        all.push(share);
    }
    Ok(all)
}

/// A think time may be nothing: then everybody wants the lock all the time.
fn think_ns(text: &str) -> Result<u64, Failure> {
    match duration(text) {
        Ok(0.0) => Ok(0),
        Ok(_) => duration_ns("--think", text),
        Err(why) => Err(Failure::usage(format!("--think {text}: {why}")).hint(DURATIONS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
