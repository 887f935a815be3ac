//! `threadtoll list`: what can be named.

use std::process::ExitCode;

use threadtoll_lab::mechanism;

use crate::arguments::List;
use crate::console;
use crate::failure::Failure;
use crate::nearest::nearest;

const KINDS: [&str; 5] = ["mechanisms", "queues", "locks", "scenarios", "peers"];

pub(crate) fn run(list: &List) -> Result<ExitCode, Failure> {
    match list.what.as_str() {
        "mechanisms" => {
            let widest = mechanism::ALL.iter().map(|mechanism| mechanism.name.len()).max().unwrap_or(0);
            for mechanism in mechanism::ALL {
                console::out(&format!("{:widest$}  {}", mechanism.name, mechanism.sentence));
            }
        }
        kind if KINDS.contains(&kind) => console::err(&format!("note: this version measures no {kind} yet.")),
        other => {
            let failure = Failure::usage(format!("there is no list of “{other}”"));
            let near = nearest(other, KINDS);
            let hint = if near.is_empty() {
                format!("it takes one of: {}", KINDS.join(", "))
            } else {
                format!("nearest: {}", near.join(", "))
            };
            return Err(failure.hint(hint));
        }
    }
    Ok(ExitCode::SUCCESS)
}
