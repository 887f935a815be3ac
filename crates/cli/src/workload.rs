//! What `predict` was asked for, checked.

use threadtoll_machine::allowed_cpus;
use threadtoll_model::choose::Options;
use threadtoll_model::{HandOff, ModelError, Policy, Workload};
use threadtoll_record::PredictedPolicy;

use crate::arguments::Predict;
use crate::failure::Failure;
use crate::request::{count, one_of};
use crate::shape::{Spread, time};

/// More threads than this no process has.
const MOST_THREADS: u64 = 1_000_000;
/// More rows than this nobody reads.
const MOST_ROWS: usize = 1000;
const MOST_CORES: u64 = 1_000_000;
/// A lock that is striped further has no threads left to queue for it.
const MOST_STRIPES: u64 = 100_000;
const MOST_TASKS: u64 = 1_000_000_000;

/// The threads and their lock, and what is to be said about them.
#[derive(Clone, Debug)]
pub(crate) struct PredictRequest {
    pub(crate) workload: Workload,
    pub(crate) threads: Vec<u32>,
    pub(crate) options: Options,
    pub(crate) policy: PredictedPolicy,
    pub(crate) handoff_ns: f64,
    pub(crate) hold_shape: String,
    pub(crate) think_shape: String,
}

impl PredictRequest {
    pub(crate) fn check(predict: &Predict) -> Result<Self, Failure> {
        let given = |option: &str, text: &Option<String>| {
            text.as_deref().map(|text| time(option, text)).transpose()
        };
        let hold_ns = given("--hold", &predict.hold)?;
        let think_ns = given("--think", &predict.think)?;
        let handoff_ns = given("--handoff", &predict.handoff)?.unwrap_or(0.0);
        let limit = |option: &str, text: &Option<String>, least: u64, most: u64| {
            text.as_deref().map(|text| count(option, text, least, most)).transpose()
        };
        // At most a million each, so they fit.
        let cores = limit("--cores", &predict.cores, 1, MOST_CORES)?.map(|cores| cores as u32);
        let stripes = limit("--stripes", &predict.stripes, 1, MOST_STRIPES)?.unwrap_or(1) as u32;
        let tasks = limit("--tasks", &predict.tasks, 1, MOST_TASKS)?;
        let seed = limit("--seed", &predict.seed, 0, u64::MAX)?.unwrap_or(Options::default().seed);
        let policy = match &predict.policy {
            Some(text) => {
                let known = [PredictedPolicy::Fifo, PredictedPolicy::Barging]
                    .map(|policy| (policy.name(), policy));
                one_of("--policy", text, &known)?
            }
            None => PredictedPolicy::Fifo,
        };
        let threads = match &predict.threads {
            Some(text) => threads(text)?,
            None => (1..=2 * allowed_cpus().len().max(1) as u32).collect(),
        };
        let hold_spread = match &predict.hold_shape {
            Some(text) => Spread::read("--hold-shape", text)?,
            None => Spread::Exponential,
        };
        let hold = hold_spread.shape("--hold", hold_ns)?;
        let think_spread = match &predict.think_shape {
            Some(text) => Spread::read("--think-shape", text)?,
            None => hold_spread.clone(),
        };
        if think_ns.is_none() && predict.think_shape.is_none() {
            return Err(Failure::usage("predict needs --think, the mean time outside the lock")
                .hint(
                    "such as --think 95ms; or name a file of measured times with --think-shape",
                ));
        }
        let think = think_spread.shape("--think", think_ns)?;
        if hold.mean_ns() == 0.0 && think.mean_ns() == 0.0 {
            return Err(Failure::usage(
                "hold time and think time are both zero: there is nothing to predict",
            )
            .hint("give at least one of --hold and --think a length"));
        }
        let workload = Workload {
            hand_off: HandOff::fixed(handoff_ns)?,
            policy: match policy {
                PredictedPolicy::Fifo => Policy::Fifo,
                PredictedPolicy::Barging => Policy::Barging,
            },
            stripes,
            cores,
            ..Workload::new(hold, think)
        };
        Ok(PredictRequest {
            workload,
            threads,
            options: Options { tasks, simulate: predict.simulate, seed },
            policy,
            handoff_ns,
            hold_shape: hold_spread.name().to_string(),
            think_shape: think_spread.name().to_string(),
        })
    }
}

/// Whatever a model refuses was asked for.
impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Failure::usage(error.to_string()).hint("`threadtoll predict --help` says what is accepted")
    }
}

/// Reads `1,2,4`, `1..32`, or both together.
pub(crate) fn threads(text: &str) -> Result<Vec<u32>, Failure> {
    let hint = "numbers of threads are written 1,2,4 or 1..32";
    let bad = |why: String| Failure::usage(format!("--threads {text}: {why}")).hint(hint);
    let number =
        |part: &str| count("--threads", part.trim(), 1, MOST_THREADS).map(|number| number as u32);
    let mut all = Vec::new();
    for part in text.split(',') {
        let (from, to) = match part.split_once("..") {
            Some((from, to)) => (number(from)?, number(to)?),
            None => {
                let only = number(part)?;
                (only, only)
            }
        };
        if from > to {
            return Err(bad(format!("{from}..{to} counts down")));
        }
        if all.len() + (to - from) as usize >= MOST_ROWS {
            return Err(Failure::usage(format!(
                "--threads {text}: that is more than {MOST_ROWS} rows"
            ))
            .hint("name fewer numbers of threads, such as 1,10,100,1000"));
        }
        all.extend(from..=to);
    }
    let mut sorted = all.clone();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Failure::usage(format!("--threads {text}: {} stands in it twice", twice[0]))
            .hint("name each number once"));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_threads_are_lists_and_ranges() {
        assert_eq!(threads("1,2,4").unwrap(), [1, 2, 4]);
        assert_eq!(threads("2..5").unwrap(), [2, 3, 4, 5]);
        assert_eq!(threads("8, 1..3,16").unwrap(), [8, 1, 2, 3, 16]);
        assert_eq!(threads("1..1000").unwrap().len(), 1000);
        for text in [
            "", "0", "0..4", "4..1", "1,,2", "1...4", "a", "1..", "..4", "-1", "2,2", "1..4,3",
            "1..1001",
        ] {
            assert!(threads(text).is_err(), "{text}");
        }
        assert!(threads("1..4294967295").is_err());
        assert!(threads("99999999999").is_err());
    }
}
