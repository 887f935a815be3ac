//! `threadtoll contention`: threads that queue for a lock.

use std::process::ExitCode;

use threadtoll_lab::plan::{LockChoice, contention};
use threadtoll_record::Placement;

use super::{Command, CommonArgs};
use crate::arguments::Contention;
use crate::contention::ContentionRequest;
use crate::failure::Failure;
use crate::measure::{Asked, Site, run as measure};
use crate::request::Common;

impl Command for Contention {
    const NAME: &'static str = "contention";
    const RESUMABLE: bool = true;

    fn common(&self) -> &CommonArgs {
        &self.measure.common
    }

    fn run(&self) -> Result<ExitCode, Failure> {
        run(self)
    }
}

fn run(arguments: &Contention) -> Result<ExitCode, Failure> {
    let common = Common::check(&arguments.measure)?;
    let request = ContentionRequest::check(arguments, &common)?;
    let mut given = common.given();
    given.extend(request.given());
    let choice = LockChoice {
        locks: request.locks.clone(),
        placements: if common.placements.is_empty() {
            vec![Placement::Pinned]
        } else {
            common.placements.clone()
        },
        wanted: request.wanted.clone(),
    };
    measure(Asked::new("contention", &arguments.measure, &common, given, &|site: &Site<'_>| {
        // A run that is resumed has its plan, and may be asked for without a scenario.
        let Some(scenario) = request.scenario else { return (Vec::new(), Vec::new()) };
        contention(site, scenario, &choice)
    }))
}
