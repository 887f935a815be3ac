use clap::Args;
use serde::Serialize;
use threadtoll_lab::queue::{MAX_RATE, MAX_SENDERS, Overrides, funnel_load};

use super::ScenarioOptions;
use super::args::{StampedArgs, senders};
use crate::failure::Failure;
use crate::parse::{List, Reader, number, numbers};

#[derive(Debug, Args, Serialize)]
pub(super) struct Funnel {
    /// Messages per second of all chatty senders together [default: 200000]
    #[arg(long, value_name = "LIST", value_parser = numbers(MAX_RATE), allow_hyphen_values = true)]
    rate: Option<List<u64>>,
    /// Number of senders whose messages are rare and important (1000 per second each); the other
    /// senders are chatty [default: 1]
    #[arg(long, value_name = "N", value_parser = number(1, MAX_SENDERS.into()))]
    #[arg(allow_hyphen_values = true)]
    important: Option<u64>,
    /// Numbers of sending threads, such as 1,2,4 [default: up to twice the CPUs]
    #[arg(long, value_name = "LIST", value_parser = Reader(senders), allow_hyphen_values = true)]
    senders: Option<List<u32>>,
    #[command(flatten)]
    #[serde(flatten)]
    stamped: StampedArgs,
}

impl ScenarioOptions for Funnel {
    fn overrides(&self, _: Option<u64>) -> Result<Overrides, Failure> {
        let important = self.important.unwrap_or(1);
        let mut senders = self.senders.iter().flatten();
        if let Some(senders) = senders.find(|senders| u64::from(**senders) < important) {
            return Err(Failure::usage(format!(
                "--important {important} is more than --senders {senders}"
            ))
            .hint("use more senders, or make fewer of them important"));
        }
        let loads = Some(funnel_load::loads(self.rate.as_deref(), self.important));
        Ok(Overrides { loads, senders: self.senders.clone(), ..self.stamped.overrides() })
    }
}
