//! `--neighbour`: other threads that put load on the machine during a measurement.

use clap::Args;
use serde::Serialize;
use threadtoll_record::Neighbour;

use crate::failure::Failure;
use crate::parse::{choice, list, optional};

const NEIGHBOURS: [(&str, Neighbour); 3] =
    [("spin", Neighbour::Spin), ("memory", Neighbour::Memory), ("churn", Neighbour::Churn)];

const NONE: &str = "none";

#[derive(Debug, Args)]
pub(crate) struct NeighbourArgs {
    /// Load that other threads put on the machine: spin, memory or churn [default: none]
    #[arg(long, value_name = "KIND")]
    neighbour: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NeighboursArgs {
    /// Loads that other threads put on the machine, each measured in turn: none, spin, memory or
    /// churn, such as none,memory [default: none]
    #[arg(long, value_name = "LIST")]
    neighbour: Option<String>,
}

/// Load of other threads on the machine; `None` for no load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(into = "&'static str")]
pub(crate) struct Beside(pub(crate) Option<Neighbour>);

impl From<Beside> for &'static str {
    fn from(Beside(wanted): Beside) -> &'static str {
        NEIGHBOURS.iter().find(|(_, known)| Some(*known) == wanted).map_or(NONE, |(name, _)| *name)
    }
}

impl NeighboursArgs {
    pub(crate) fn check(&self) -> Result<Option<Vec<Beside>>, Failure> {
        let all = NEIGHBOURS.map(|(name, known)| (name, Beside(Some(known))));
        let all = [&[(NONE, Beside(None))], all.as_slice()].concat();
        optional(&self.neighbour, |text| {
            list("--neighbour", text, "load", |name| choice("--neighbour", name, &all))
        })
    }
}

impl NeighbourArgs {
    pub(crate) fn check(&self) -> Result<Option<Neighbour>, Failure> {
        optional(&self.neighbour, |text| choice("--neighbour", text, &NEIGHBOURS))
    }
}
