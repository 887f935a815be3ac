//! `threadtoll list`: what can be named.

use std::process::ExitCode;

use threadtoll_lab::queue::{SCENARIOS, ours};
use threadtoll_lab::{contention, lock, mechanism};

use crate::arguments::List;
use crate::console;
use crate::failure::Failure;
use crate::nearest::nearest;
use crate::queues::peers;

const KINDS: [&str; 5] = ["mechanisms", "queues", "locks", "scenarios", "peers"];

pub(crate) fn run(list: &List) -> Result<ExitCode, Failure> {
    match list.what.as_str() {
        "mechanisms" => entries(mechanism::ALL.iter().map(|one| (one.name, one.sentence))),
        "queues" => entries(ours().iter().map(|one| (one.name.as_str(), one.sentence.as_str()))),
        "peers" => entries(peers().iter().map(|one| (one.name.as_str(), one.sentence.as_str()))),
        "locks" => entries(
            lock::ALL
                .iter()
                .map(|one| (one.name, one.sentence))
                .chain([(lock::STRIPED, lock::STRIPED_SENTENCE)]),
        ),
        "scenarios" => {
            let queues = SCENARIOS.iter().map(|one| (one.name, one.sentence));
            entries(queues.chain(contention::SCENARIOS.iter().map(|one| (one.name, one.sentence))));
        }
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

/// A name and a sentence a line.
fn entries<'e>(entries: impl Iterator<Item = (&'e str, &'e str)> + Clone) {
    let widest = entries.clone().map(|(name, _)| name.len()).max().unwrap_or(0);
    if widest == 0 {
        console::err("note: there are none in this build.");
    }
    for (name, sentence) in entries {
        console::out(&format!("{name:widest$}  {sentence}"));
    }
}
