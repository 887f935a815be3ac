use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use threadtoll_lab::mechanism::{Class, Mechanism};
use threadtoll_lab::plan::{CpuSelection, Planned, budget, matrix};
use threadtoll_machine::topology::Level;
use threadtoll_record::Placement;

use crate::by_name;
use crate::failure::Failure;
use crate::measure::{MeasureArgs, MeasureCommand, MeasureRequest, SamplesArgs};
use crate::mechanisms::find;
use crate::parse::{choice, optional};
use crate::registry::registry;

/// Default measuring time per pair of CPUs; short, because there are many pairs.
const TIME_NS: u64 = 210_000_000;

/// Measure the latency between pairs of CPUs
#[derive(Debug, Args)]
pub(crate) struct Matrix {
    /// Mechanism to measure [default: atomic-store]
    #[arg(id = "mechanisms", value_name = "MECHANISM")]
    mechanism: Option<String>,
    /// Pairs to measure: CPUs of one core (smt), of one last-level cache (llc), of one NUMA node
    /// (node), or all [default: all]
    #[arg(long, value_name = "LEVEL")]
    level: Option<String>,
    /// Write the latencies of all pairs to this new file as comma-separated values
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    #[command(flatten)]
    samples: SamplesArgs,
    #[command(flatten)]
    measure: MeasureArgs,
}

#[derive(Debug, Serialize)]
pub(crate) struct Request {
    #[serde(rename = "mechanisms", serialize_with = "by_name::list")]
    mechanism: Option<&'static Mechanism>,
    #[serde(serialize_with = "by_name::one")]
    level: Option<Level>,
    samples: Option<u64>,
}

impl MeasureCommand for Matrix {
    const NAME: &'static str = "matrix";
    const NOTHING_LEFT: &'static str =
        "try another --level or mechanism: `threadtoll list mechanisms`";
    type Request = Request;

    fn measure_args(&self) -> &MeasureArgs {
        &self.measure
    }

    fn csv(&self) -> Option<&Path> {
        self.csv.as_deref()
    }

    fn check(&self, common: &MeasureRequest) -> Result<Request, Failure> {
        let levels = Level::ALL.map(|level| (level.name(), level));
        let request = Request {
            mechanism: optional(&self.mechanism, find)?,
            level: optional(&self.level, |text| choice("--level", text, &levels))?,
            samples: self.samples.samples,
        };
        if let Some(mechanism) = request.mechanism
            && mechanism.class == Class::OneThread
        {
            return Err(Failure::usage(format!(
                "{} runs on one thread, but a matrix needs pairs of CPUs",
                mechanism.name
            ))
            .hint("choose a mechanism with two threads, such as atomic-store or futex"));
        }
        if common.placement.iter().any(|placement| *placement != Placement::Pinned) {
            return Err(Failure::usage("a matrix is always pinned").hint("omit --placement"));
        }
        Ok(request)
    }

    fn plan(request: &Request, common: &MeasureRequest, site: &CpuSelection<'_>) -> Planned {
        let mechanism = request.mechanism.or_else(|| registry().mechanisms.find("atomic-store"));
        let budget = budget(common.time_ns.unwrap_or(TIME_NS), request.samples);
        matrix(site, mechanism, request.level.unwrap_or(Level::All), budget)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Matrix;
    use crate::measure::plan_options;

    #[test]
    fn plans_keep_the_options_that_were_given() {
        assert_eq!(plan_options::<Matrix>(""), json!({}));
        let options = json!({"mechanisms": ["futex"], "level": "llc"});
        assert_eq!(plan_options::<Matrix>("futex --level llc"), options);
    }
}
