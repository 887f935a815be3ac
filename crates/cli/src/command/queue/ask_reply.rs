use clap::Args;
use serde::Serialize;
use threadtoll_lab::queue::Overrides;

use super::ScenarioOptions;
use super::args::StampedArgs;
use crate::failure::Failure;

#[derive(Debug, Args, Serialize)]
pub(super) struct AskReply {
    #[command(flatten)]
    #[serde(flatten)]
    stamped: StampedArgs,
}

impl ScenarioOptions for AskReply {
    fn overrides(&self, _: Option<u64>) -> Result<Overrides, Failure> {
        Ok(self.stamped.overrides())
    }
}
