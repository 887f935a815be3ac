//! `threadtoll queue`: queues between threads, in scenarios.

use std::process::ExitCode;

use threadtoll_lab::plan::{QueueChoice, ask_reply_budget, queue, stream_budget};
use threadtoll_record::{Kind, Placement};

use crate::arguments::Queue;
use crate::failure::Failure;
use crate::measure::{Asked, Site, run as measure};
use crate::queues::queues;
use crate::request::{Common, QueueRequest};

/// Measuring time per cell of an ask-reply where none is given.
const ASK_REPLY_NS: u64 = 744_000_000;
/// The same of a stream: 31 blocks of 12 ms.
const STREAM_NS: u64 = 372_000_000;

pub(crate) fn run(arguments: &Queue) -> Result<ExitCode, Failure> {
    let common = Common::check(&arguments.measure)?;
    let request = QueueRequest::check(arguments, &common)?;
    let mut given = common.given();
    given.extend(request.given());
    let choice = QueueChoice {
        queues: if request.queues.is_empty() {
            queues().all().collect()
        } else {
            request.queues.clone()
        },
        placements: if common.placements.is_empty() {
            vec![Placement::Pinned]
        } else {
            common.placements.clone()
        },
        waits: request.waits.clone(),
        batch: request.batch,
        senders: request
            .senders
            .as_ref()
            .map_or_else(|| vec![1], |all| all.iter().map(|senders| *senders as u32).collect()),
        capacities: request.capacities.clone().unwrap_or_default(),
        neighbour: request.neighbour,
    };
    measure(Asked::new("queue", &arguments.measure, &common, given, &|site: &Site<'_>| {
        // A run that is resumed has its plan, and may be asked for without a scenario.
        let Some(scenario) = request.scenario else { return (Vec::new(), Vec::new()) };
        let budget = if scenario.kind == Kind::Stream {
            stream_budget(common.time_ns.unwrap_or(STREAM_NS))
        } else {
            ask_reply_budget(common.time_ns.unwrap_or(ASK_REPLY_NS), common.samples)
        };
        queue(site, scenario, queues(), &choice, budget)
    }))
}
