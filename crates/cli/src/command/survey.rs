use clap::Args;
use serde::Serialize;
use threadtoll_lab::plan::{CpuSelection, Depth, Planned, budget, survey};

use crate::by_name;
use crate::failure::Failure;
use crate::measure::{
    MeasureArgs, MeasureCommand, MeasureRequest, PROCESSES, REPEAT_NS, SamplesArgs,
};
use crate::registry::registry;

const TIME_NS: u64 = 1_000_000_000;

/// Measure the whole ladder of hand-offs, in about a minute
#[derive(Debug, Args)]
pub(crate) struct Survey {
    /// Measure every mechanism within 15 seconds
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Measure every mechanism with all variants and message sizes; takes minutes (see --plan)
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    samples: SamplesArgs,
    #[command(flatten)]
    measure: MeasureArgs,
}

#[derive(Debug, Serialize)]
pub(crate) struct Request {
    /// `None` only if a run is resumed, because its file has the depth.
    #[serde(serialize_with = "by_name::one")]
    depth: Option<Depth>,
    samples: Option<u64>,
}

impl MeasureCommand for Survey {
    const NAME: &'static str = "survey";
    // With split blocks, a survey would take longer than its help promises.
    const SPLITS_BLOCKS: bool = false;
    const NEXT: Option<(&'static str, &'static str)> =
        Some(("queue ask-reply", "which queue suits a question and its answer?"));
    type Request = Request;

    fn measure_args(&self) -> &MeasureArgs {
        &self.measure
    }

    fn check(&self, _: &MeasureRequest) -> Result<Request, Failure> {
        let depth = match (self.quick, self.full) {
            (true, _) => Some(Depth::Quick),
            (_, true) => Some(Depth::Full),
            _ => self.measure.resume.is_none().then_some(Depth::Standard),
        };
        Ok(Request { depth, samples: self.samples.samples })
    }

    fn processes(request: &Request) -> u32 {
        if request.depth == Some(Depth::Full) { PROCESSES } else { 1 }
    }

    fn repeat_ns(request: &Request, _: &MeasureRequest) -> Option<u64> {
        (request.depth == Some(Depth::Full)).then_some(REPEAT_NS)
    }

    fn plan(request: &Request, common: &MeasureRequest, site: &CpuSelection<'_>) -> Planned {
        let budget = (common.time_ns.is_some() || request.samples.is_some())
            .then(|| budget(common.time_ns.unwrap_or(TIME_NS), request.samples));
        let depth = request.depth.unwrap_or(Depth::Standard);
        survey(site, &registry().mechanisms, depth, &common.placement, budget)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Survey;
    use crate::measure::plan_options;

    #[test]
    fn plans_keep_the_depth() {
        assert_eq!(plan_options::<Survey>(""), json!({"depth": "standard"}));
        assert_eq!(plan_options::<Survey>("--quick"), json!({"depth": "quick"}));
        assert_eq!(plan_options::<Survey>("--full --html page"), json!({"depth": "full"}));
        assert_eq!(plan_options::<Survey>("--resume file"), json!({}));
    }
}
