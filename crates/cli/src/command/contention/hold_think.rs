use clap::Args;
use serde::Serialize;
use threadtoll_lab::contention::{Load, hold_think};
use threadtoll_record::{Share, Work};

use super::ScenarioOptions;
use super::args::ReadShareArgs;
use crate::failure::Failure;
use crate::parse::{Reader, duration_ns, duration_or_zero_ns};

#[derive(Debug, Args, Serialize)]
pub(super) struct HoldThink {
    /// Hold time of the lock (250ns, 2.5us, 5ms, 2s) [default: 5us]
    #[arg(long = "hold", value_name = "D", value_parser = Reader(duration_ns))]
    #[arg(allow_hyphen_values = true)]
    hold_ns: Option<u64>,
    /// Time between release and next request; 0 for none [default: 45us]
    #[arg(long = "think", value_name = "D", value_parser = Reader(duration_or_zero_ns))]
    #[arg(allow_hyphen_values = true)]
    think_ns: Option<u64>,
    #[command(flatten)]
    #[serde(flatten)]
    reads: ReadShareArgs,
}

impl ScenarioOptions for HoldThink {
    fn loads(&self, work: Option<Work>) -> Result<Vec<Load>, Failure> {
        Ok(hold_think::loads(work, self.hold_ns, self.think_ns))
    }

    fn read_shares(&self) -> Option<&[Share]> {
        self.reads.read_share.as_deref()
    }
}
