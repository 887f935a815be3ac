//! `threadtoll`: what do this machine's threads pay to talk to each other?
//!
//! Arguments in, tables and files out. [`arguments`] declares the command line, [`request`] makes
//! typed and checked values of it, and each command is a file under `command`.

mod arguments;
mod command;
mod console;
mod contention;
mod failure;
mod measure;
mod nearest;
mod page;
mod parse;
mod progress;
mod queues;
mod request;
mod shape;
mod workload;

use std::process::ExitCode;

fn main() -> ExitCode {
    let parsed = match arguments::parse(std::env::args_os()) {
        Ok(parsed) => parsed,
        Err(arguments::Ended::Shown(text)) => {
            console::out(&text);
            return ExitCode::SUCCESS;
        }
        Err(arguments::Ended::Failed(failure)) => return failure.report(),
    };
    match command::run(parsed) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
