use clap::Args;
use serde::Serialize;
use threadtoll_lab::queue::{MAX_RECEIVERS, Overrides, workers};

use super::ScenarioOptions;
use super::args::CapacityArgs;
use crate::failure::Failure;
use crate::parse::{List, numbers};

#[derive(Debug, Args, Serialize)]
pub(super) struct Workers {
    /// Numbers of receiving threads that share the messages; 1 is always measured for comparison
    /// [default: 1,2,4,8]
    #[arg(long, value_name = "LIST", value_parser = numbers(MAX_RECEIVERS))]
    #[arg(allow_hyphen_values = true)]
    receivers: Option<List<u64>>,
    #[command(flatten)]
    #[serde(flatten)]
    capacity: CapacityArgs,
}

impl ScenarioOptions for Workers {
    fn overrides(&self, _: Option<u64>) -> Result<Overrides, Failure> {
        let loads = workers::loads(self.receivers.as_deref());
        Ok(Overrides { loads: Some(loads), ..self.capacity.overrides() })
    }
}
