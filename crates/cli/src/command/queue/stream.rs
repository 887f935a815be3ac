use clap::Args;
use serde::Serialize;
use threadtoll_lab::queue::{MAX_BATCH, Overrides};

use super::ScenarioOptions;
use super::args::{CapacityArgs, senders};
use crate::failure::Failure;
use crate::parse::{List, Reader, number};

#[derive(Debug, Args, Serialize)]
pub(super) struct Stream {
    /// Largest batch, 1 for one message at a time [default: one at a time and 256]
    #[arg(long, value_name = "N", value_parser = number(1, MAX_BATCH), allow_hyphen_values = true)]
    batch: Option<u64>,
    /// Numbers of sending threads, such as 1,2,4 [default: 1]
    #[arg(long, value_name = "LIST", value_parser = Reader(senders), allow_hyphen_values = true)]
    senders: Option<List<u32>>,
    #[command(flatten)]
    #[serde(flatten)]
    capacity: CapacityArgs,
}

impl ScenarioOptions for Stream {
    fn overrides(&self, _: Option<u64>) -> Result<Overrides, Failure> {
        let Stream { batch, senders, capacity } = self;
        Ok(Overrides { batch: *batch, senders: senders.clone(), ..capacity.overrides() })
    }
}
