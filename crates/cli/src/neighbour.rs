//! `--neighbour`: load on other threads during a measurement.

use clap::Args;
use threadtoll_record::Neighbour;

use crate::failure::Failure;
use crate::parse::{choice, optional};

const NEIGHBOURS: [(&str, Neighbour); 3] =
    [("spin", Neighbour::Spin), ("memory", Neighbour::Memory), ("churn", Neighbour::Churn)];

#[derive(Debug, Args)]
pub(crate) struct NeighbourArgs {
    /// Load on other threads: spin, memory or churn [default: none]
    #[arg(long, value_name = "KIND")]
    neighbour: Option<String>,
}

impl NeighbourArgs {
    pub(crate) fn check(&self) -> Result<Option<Neighbour>, Failure> {
        optional(&self.neighbour, |text| choice("--neighbour", text, &NEIGHBOURS))
    }
}
