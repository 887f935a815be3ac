use clap::Args;
use serde::Serialize;
use threadtoll_lab::queue::Overrides;
use threadtoll_lab::queue::burst::{self, MAX_BURST};

use super::ScenarioOptions;
use super::args::{StampedArgs, gaps};
use crate::failure::Failure;
use crate::parse::{List, Reader, numbers};

#[derive(Debug, Args, Serialize)]
pub(super) struct Burst {
    /// Numbers of messages that are due at the same time [default: 1,8,64,512,4096]
    #[arg(long, value_name = "LIST", value_parser = numbers(MAX_BURST), allow_hyphen_values = true)]
    burst: Option<List<u64>>,
    /// Times from one burst to the next, such as 100us,1ms [default: 10us,100us,1ms]
    #[arg(long = "gap", value_name = "LIST", value_parser = Reader(gaps))]
    #[arg(allow_hyphen_values = true)]
    gap_ns: Option<List<u64>>,
    #[command(flatten)]
    #[serde(flatten)]
    stamped: StampedArgs,
}

impl ScenarioOptions for Burst {
    fn overrides(&self, _: Option<u64>) -> Result<Overrides, Failure> {
        let loads = burst::loads(self.burst.as_deref(), self.gap_ns.as_deref());
        Ok(Overrides { loads: Some(loads), ..self.stamped.overrides() })
    }
}
