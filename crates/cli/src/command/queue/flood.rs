use clap::Args;
use serde::Serialize;
use threadtoll_lab::queue::{MAX_BATCH, MAX_RATE, Overrides, flood};

use super::ScenarioOptions;
use super::args::StampedArgs;
use crate::failure::Failure;
use crate::parse::{List, number, numbers};

#[derive(Debug, Args, Serialize)]
pub(super) struct Flood {
    /// Lines per second [default: 10000]
    #[arg(long, value_name = "LIST", value_parser = numbers(MAX_RATE), allow_hyphen_values = true)]
    rate: Option<List<u64>>,
    /// Largest batch that the dumping thread sends; 1 for one message at a time [default: both 1
    /// and 32768]
    #[arg(long, value_name = "N", value_parser = number(1, MAX_BATCH), allow_hyphen_values = true)]
    batch: Option<u64>,
    #[command(flatten)]
    #[serde(flatten)]
    stamped: StampedArgs,
}

impl ScenarioOptions for Flood {
    fn overrides(&self, _: Option<u64>) -> Result<Overrides, Failure> {
        let loads = Some(flood::loads(self.rate.as_deref()));
        Ok(Overrides { loads, batch: self.batch, ..self.stamped.overrides() })
    }
}
