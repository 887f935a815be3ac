use clap::Args;
use serde::Serialize;
use threadtoll_lab::queue::{Overrides, payload};
use threadtoll_record::Carry;

use super::ScenarioOptions;
use super::args::{CapacityArgs, sizes};
use crate::failure::Failure;
use crate::parse::{List, Reader, choice, list};

#[derive(Debug, Args, Serialize)]
pub(super) struct Payload {
    /// Message sizes in bytes, chosen from 8,64,512,4KiB,64KiB [default: all]
    #[arg(long = "payload", value_name = "LIST", value_parser = Reader(sizes))]
    #[arg(allow_hyphen_values = true)]
    payload_bytes: Option<List<u64>>,
    /// Ways to carry messages: moved by value, or in-place (written and read in the queue's slots,
    /// for queues that can) [default: both]
    #[arg(long, value_name = "LIST", value_parser = Reader(carries))]
    carry: Option<List<Carry>>,
    #[command(flatten)]
    #[serde(flatten)]
    capacity: CapacityArgs,
}

fn carries(option: &str, text: &str) -> Result<Vec<Carry>, Failure> {
    let all = Carry::ALL.map(|carry| (carry.name(), carry));
    list(option, text, "way", |part| choice(option, part, &all))
}

impl ScenarioOptions for Payload {
    fn overrides(&self, _: Option<u64>) -> Result<Overrides, Failure> {
        let capacities = self.capacity.capacity.as_deref();
        payload::check(capacities, self.payload_bytes.as_deref())?;
        let loads = Some(payload::loads(self.carry.as_deref()));
        let payloads = self.payload_bytes.clone();
        Ok(Overrides { loads, payloads, ..self.capacity.overrides() })
    }
}
