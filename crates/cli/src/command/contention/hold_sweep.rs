use clap::Args;
use serde::Serialize;
use threadtoll_lab::contention::{Load, hold_sweep};
use threadtoll_record::{Share, Work};

use super::ScenarioOptions;
use super::args::SweepArgs;
use crate::failure::Failure;

#[derive(Debug, Args, Serialize)]
pub(super) struct HoldSweep {
    #[command(flatten)]
    #[serde(flatten)]
    sweep: SweepArgs,
}

impl ScenarioOptions for HoldSweep {
    fn loads(&self, work: Option<Work>) -> Result<Vec<Load>, Failure> {
        let hold_shares = self.sweep.hold_share.as_deref();
        Ok(hold_sweep::loads(work, hold_shares, self.sweep.rate(work)?))
    }

    fn read_shares(&self) -> Option<&[Share]> {
        self.sweep.reads.read_share.as_deref()
    }
}
