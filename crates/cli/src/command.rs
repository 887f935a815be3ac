//! The commands, one a file.

mod check;
mod contention;
mod latency;
mod list;
mod matrix;
mod predict;
mod queue;
mod report;
mod survey;

use std::process::ExitCode;

use crate::arguments::{Arguments, Command};
use crate::failure::Failure;

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let look = match &arguments.command {
        Command::Check(check) => &check.look,
        Command::Survey(survey) => &survey.measure.look,
        Command::Latency(latency) => &latency.measure.look,
        Command::Matrix(matrix) => &matrix.measure.look,
        Command::Queue(queue) => &queue.measure.look,
        Command::Contention(contention) => &contention.measure.look,
        Command::Predict(predict) => &predict.look,
        Command::Report(report) => &report.look,
        Command::List(list) => &list.look,
    };
    look.color.apply();
    match arguments.command {
        Command::Check(check) => check::run(&check),
        Command::Survey(survey) => survey::run(&survey),
        Command::Latency(latency) => latency::run(&latency),
        Command::Matrix(matrix) => matrix::run(&matrix),
        Command::Queue(queue) => queue::run(&queue),
        Command::Contention(contention) => contention::run(&contention),
        Command::Predict(predict) => predict::run(&predict),
        Command::Report(report) => report::run(&report),
        Command::List(list) => list::run(&list),
    }
}
