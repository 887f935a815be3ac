use clap::Args;
use serde::Serialize;
use threadtoll_lab::queue::{MAX_BATCH, MAX_RECEIVERS, Overrides, broadcast};
use threadtoll_record::Graph;

use super::ScenarioOptions;
use super::args::CapacityArgs;
use crate::failure::Failure;
use crate::parse::{List, Reader, choice, list, number, numbers};

#[derive(Debug, Args, Serialize)]
pub(super) struct Broadcast {
    /// Numbers of receivers, each of which gets every message [default: 1,2,3,4; diamond: 3]
    #[arg(long, value_name = "LIST", value_parser = numbers(MAX_RECEIVERS))]
    #[arg(allow_hyphen_values = true)]
    receivers: Option<List<u64>>,
    /// How messages get to receivers: fan-out (they do not depend on each other) or diamond (the
    /// last receiver gets a message after all others; with 3 receivers or more) [default: both]
    #[arg(long, value_name = "LIST", value_parser = Reader(graphs))]
    graph: Option<List<Graph>>,
    /// Messages that the sender sends at once, 1 for one at a time [default: one at a time and
    /// 256]
    #[arg(long, value_name = "N", value_parser = number(1, MAX_BATCH), allow_hyphen_values = true)]
    batch: Option<u64>,
    #[command(flatten)]
    #[serde(flatten)]
    capacity: CapacityArgs,
}

fn graphs(option: &str, text: &str) -> Result<Vec<Graph>, Failure> {
    let all = Graph::ALL.map(|graph| (graph.name(), graph));
    list(option, text, "graph", |part| choice(option, part, &all))
}

impl ScenarioOptions for Broadcast {
    fn overrides(&self, _: Option<u64>) -> Result<Overrides, Failure> {
        let loads = broadcast::loads(self.receivers.as_deref(), self.graph.as_deref());
        let least = broadcast::LEAST_DIAMOND;
        let asks_diamond = self.graph.as_deref().is_some_and(|all| all.contains(&Graph::Diamond));
        let has_few = self.receivers.as_deref().is_some_and(|all| all.iter().any(|n| *n < least));
        if asks_diamond && has_few {
            return Err(Failure::usage(format!("a diamond has {least} receivers or more"))
                .hint("use --receivers 3, or --graph fan-out"));
        }
        Ok(Overrides { loads: Some(loads), batch: self.batch, ..self.capacity.overrides() })
    }
}
