use clap::Args;
use serde::Serialize;
use threadtoll_lab::contention::{Load, MAX_TASKS, pool};
use threadtoll_record::Work;

use super::ScenarioOptions;
use crate::failure::Failure;
use crate::parse::{Reader, duration_ns, duration_or_zero_ns, number};

#[derive(Debug, Args, Serialize)]
pub(super) struct Pool {
    /// Hold time of the lock (250ns, 2.5us, 5ms, 2s) [default: 500us]
    #[arg(long = "hold", value_name = "D", value_parser = Reader(duration_ns))]
    #[arg(allow_hyphen_values = true)]
    hold_ns: Option<u64>,
    /// Time between release and next request; 0 for none [default: 9.5ms]
    #[arg(long = "think", value_name = "D", value_parser = Reader(duration_or_zero_ns))]
    #[arg(allow_hyphen_values = true)]
    think_ns: Option<u64>,
    /// Number of tasks that the threads share [default: 1000]
    #[arg(long, value_name = "N", value_parser = number(1, MAX_TASKS), allow_hyphen_values = true)]
    tasks: Option<u64>,
}

impl ScenarioOptions for Pool {
    fn loads(&self, work: Option<Work>) -> Result<Vec<Load>, Failure> {
        Ok(pool::loads(work, self.hold_ns, self.think_ns, self.tasks))
    }
}
