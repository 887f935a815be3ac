//! `threadtoll latency`: ask-reply latency of mechanisms.

use std::process::ExitCode;

use threadtoll_lab::mechanism;
use threadtoll_lab::plan::{Choice, budget, latency};
use threadtoll_record::{Layout, Pause, Placement};

use super::{Command, CommonArgs};
use crate::arguments::Latency;
use crate::failure::Failure;
use crate::measure::{Asked, Site, run as measure};
use crate::request::{Common, LatencyRequest};

/// Measuring time per cell where none is given.
const TIME_NS: u64 = 1_000_000_000;

impl Command for Latency {
    const NAME: &'static str = "latency";
    const RESUMABLE: bool = true;

    fn common(&self) -> &CommonArgs {
        &self.measure.common
    }

    fn run(&self) -> Result<ExitCode, Failure> {
        run(self)
    }
}

fn run(arguments: &Latency) -> Result<ExitCode, Failure> {
    let common = Common::check(&arguments.measure)?;
    let request = LatencyRequest::check(arguments)?;
    let mut given = common.given();
    given.extend(request.given());
    let choice = Choice {
        placements: if common.placements.is_empty() {
            Placement::ALL.to_vec()
        } else {
            common.placements.clone()
        },
        layouts: request
            .layout
            .map_or_else(|| vec![Layout::Own, Layout::Shared], |layout| vec![layout]),
        pauses: request.pause.map_or_else(|| vec![Pause::Off, Pause::On], |pause| vec![pause]),
        payloads: vec![request.payload.unwrap_or(8)],
        // Beside the kept-awake wake-up stands the plain one: their difference is what is asked
        // for.
        awake: if request.keep_awake { vec![false, true] } else { vec![false] },
        neighbour: request.neighbour,
    };
    let mechanisms = if request.mechanisms.is_empty() {
        mechanism::ALL.iter().collect()
    } else {
        request.mechanisms.clone()
    };
    measure(Asked::new("latency", &arguments.measure, &common, given, &|site: &Site<'_>| {
        let budget = budget(common.time_ns.unwrap_or(TIME_NS), common.samples);
        latency(site, &mechanisms, &choice, budget, common.placements.is_empty())
    }))
}
