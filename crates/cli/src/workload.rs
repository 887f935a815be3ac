//! What `predict` was asked for, checked.

use threadtoll_machine::allowed_cpus;
use threadtoll_model::choose::Options;
use threadtoll_model::{HandOff, ModelError, Policy, Workload};
use threadtoll_record::PredictedPolicy;

use crate::arguments::Predict;
use crate::failure::Failure;
use crate::parse::{choice, count, numbers_of_threads};
use crate::shape::{Spread, time};

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
                choice("--policy", text, &known)?
            }
            None => PredictedPolicy::Fifo,
        };
        let threads = match &predict.threads {
            Some(text) => numbers_of_threads(text)?,
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
