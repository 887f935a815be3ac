//! `threadtoll matrix`: latency for pairs of CPUs.

use std::process::ExitCode;

use threadtoll_lab::mechanism;
use threadtoll_lab::plan::{budget, matrix};
use threadtoll_machine::topology::Level;

use super::{Command, CommonArgs};
use crate::arguments::Matrix;
use crate::failure::Failure;
use crate::measure::{Asked, Site, run as measure};
use crate::request::{Common, MatrixRequest};

/// Measuring time per pair where none is given: there are many pairs.
const TIME_NS: u64 = 210_000_000;

impl Command for Matrix {
    const NAME: &'static str = "matrix";
    const RESUMABLE: bool = true;

    fn common(&self) -> &CommonArgs {
        &self.measure.common
    }

    fn run(&self) -> Result<ExitCode, Failure> {
        run(self)
    }
}

fn run(arguments: &Matrix) -> Result<ExitCode, Failure> {
    let common = Common::check(&arguments.measure)?;
    let request = MatrixRequest::check(arguments)?;
    let mut given = common.given();
    given.extend(request.given());
    measure(Asked::new("matrix", &arguments.measure, &common, given, &|site: &Site<'_>| {
        let budget = budget(common.time_ns.unwrap_or(TIME_NS), common.samples);
        let mechanism = request.mechanism.or_else(|| mechanism::find("atomic-store"));
        matrix(site, mechanism, request.level.unwrap_or(Level::All), budget)
    }))
}
