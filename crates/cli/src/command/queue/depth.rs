use clap::Args;
use serde::Serialize;
use threadtoll_lab::queue::Overrides;
use threadtoll_lab::queue::depth::{self, MAX_DEPTH};

use super::ScenarioOptions;
use crate::failure::Failure;
use crate::parse::{List, numbers};

#[derive(Debug, Args, Serialize)]
pub(super) struct Depth {
    /// Numbers of messages that the queue holds [default: 1 to 10,000,000 by factors of 10]
    #[arg(long, value_name = "LIST", value_parser = numbers(MAX_DEPTH), allow_hyphen_values = true)]
    depth: Option<List<u64>>,
}

impl ScenarioOptions for Depth {
    fn overrides(&self, _: Option<u64>) -> Result<Overrides, Failure> {
        let loads = depth::loads(self.depth.as_deref());
        Ok(Overrides { loads: Some(loads), ..Overrides::default() })
    }
}
