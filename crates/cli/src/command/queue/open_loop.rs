use clap::Args;
use serde::Serialize;
use threadtoll_lab::queue::{Overrides, open_loop};

use super::ScenarioOptions;
use super::args::{ArrivalsArgs, StampedArgs};
use crate::failure::Failure;

#[derive(Debug, Args, Serialize)]
pub(super) struct OpenLoop {
    #[command(flatten)]
    #[serde(flatten)]
    arrivals: ArrivalsArgs,
    #[command(flatten)]
    #[serde(flatten)]
    stamped: StampedArgs,
}

impl ScenarioOptions for OpenLoop {
    fn overrides(&self, time_ns: Option<u64>) -> Result<Overrides, Failure> {
        self.arrivals.check(time_ns)?;
        let ArrivalsArgs { arrivals, scale, rate } = &self.arrivals;
        let loads = open_loop::loads(arrivals.as_ref(), *scale, rate.as_deref());
        Ok(Overrides { loads: Some(loads), ..self.stamped.overrides() })
    }

    fn until_saturated(&self) -> bool {
        self.arrivals.rate.is_none() && !self.arrivals.is_file()
    }
}
