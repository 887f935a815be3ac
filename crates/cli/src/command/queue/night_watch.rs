use clap::Args;
use serde::Serialize;
use threadtoll_lab::queue::{Overrides, night_watch};

use super::ScenarioOptions;
use super::args::{StampedArgs, gaps};
use crate::failure::Failure;
use crate::parse::{List, Reader};

#[derive(Debug, Args, Serialize)]
pub(super) struct NightWatch {
    /// Times from one message to the next, such as 100us,1ms [default: from 1us to 1s]
    #[arg(long = "gap", value_name = "LIST", value_parser = Reader(gaps))]
    #[arg(allow_hyphen_values = true)]
    gap_ns: Option<List<u64>>,
    #[command(flatten)]
    #[serde(flatten)]
    stamped: StampedArgs,
}

impl ScenarioOptions for NightWatch {
    fn overrides(&self, _: Option<u64>) -> Result<Overrides, Failure> {
        let loads = night_watch::loads(self.gap_ns.as_deref());
        Ok(Overrides { loads: Some(loads), ..self.stamped.overrides() })
    }
}
