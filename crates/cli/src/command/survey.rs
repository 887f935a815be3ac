//! `threadtoll survey`: the card of this machine.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use threadtoll_lab::plan::{Depth, budget, survey};
use threadtoll_record::Machine;

use super::{Command, CommonArgs};
use crate::arguments::Survey;
use crate::failure::Failure;
use crate::measure::{Asked, Site, run as measure};
use crate::request::{Common, survey_given};

impl Command for Survey {
    const NAME: &'static str = "survey";
    const RESUMABLE: bool = true;

    fn common(&self) -> &CommonArgs {
        &self.measure.common
    }

    fn run(&self) -> Result<ExitCode, Failure> {
        run(self)
    }
}

fn run(arguments: &Survey) -> Result<ExitCode, Failure> {
    let common = Common::check(&arguments.measure)?;
    let mut given = common.given();
    given.extend(survey_given(arguments));
    let depth = match (arguments.quick, arguments.full) {
        (true, _) => Depth::Quick,
        (_, true) => Depth::Full,
        _ => Depth::Standard,
    };
    let mut options = given.clone();
    options.entry("depth".into()).or_insert(json!("standard"));
    measure(Asked {
        name: "survey",
        measure: &arguments.measure,
        common: &common,
        given,
        options,
        default_out: Some(&default_out),
        page: arguments.html.clone(),
        makes_page: true,
        plan: &|site: &Site<'_>| {
            let budget = (common.time_ns.is_some() || common.samples.is_some())
                .then(|| budget(common.time_ns.unwrap_or(1_000_000_000), common.samples));
            survey(site, depth, &common.placements, budget)
        },
    })
}

/// A new file that says when it was made.
fn default_out(machine: &Machine) -> PathBuf {
    PathBuf::from(format!("threadtoll-results/survey-{}.jsonl", machine.run))
}
