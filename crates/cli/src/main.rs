//! `threadtoll` measures the cost of communication between threads.
//!
//! Each command is a file under `command`, with its options, their validation, and its `run`
//! function. `measure` is the workflow that measuring commands share.

mod by_name;
mod command;
mod command_line;
mod console;
mod draft;
mod entry;
mod failure;
mod inspect;
mod kept;
mod measure;
mod mechanisms;
mod nearest;
mod neighbour;
mod page;
mod parse;
mod patience;
mod peers;
mod progress;
mod registry;
mod scenario;
mod syntax;
mod tables;
mod this_program;

use std::process::ExitCode;

use command_line::Parsed;

fn main() -> ExitCode {
    let first = std::env::args_os().nth(1).unwrap_or_default();
    // Another process of this program has started this one.
    if first == measure::share::COMMAND {
        return measure::share::serve().unwrap_or_else(|failure| failure.report());
    }
    if first == peers::COMMAND {
        return peers::serve().unwrap_or_else(|failure| failure.report());
    }
    let result = command_line::parse(std::env::args_os()).and_then(|parsed| match parsed {
        Parsed::Text(text) => {
            console::out(&text);
            Ok(ExitCode::SUCCESS)
        }
        Parsed::Command(entry, matches) => entry.run(&matches),
    });
    result.unwrap_or_else(|failure| failure.report())
}
