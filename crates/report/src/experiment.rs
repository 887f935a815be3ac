//! Names of experiments; no other file of this crate compares them.

use threadtoll_record::Record;

pub(crate) const HOLD_SWEEP: &str = "hold-sweep";
pub(crate) const FREQUENCY_SWEEP: &str = "frequency-sweep";
pub(crate) const POOL: &str = "pool";

pub(crate) fn is_latency(record: &Record) -> bool {
    record.experiment == "latency"
}

pub(crate) fn is_matrix(record: &Record) -> bool {
    record.experiment == "matrix"
}

/// A scenario of the command `queue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum QueueScenario {
    AskReply,
    Stream,
}

pub(crate) fn queue_scenario(record: &Record) -> Option<QueueScenario> {
    match record.experiment.as_str() {
        "queue/ask-reply" => Some(QueueScenario::AskReply),
        "queue/stream" => Some(QueueScenario::Stream),
        _ => None,
    }
}

/// The scenario of the command `contention`, such as [`POOL`].
pub(crate) fn contention_scenario(record: &Record) -> Option<&str> {
    record.experiment.strip_prefix("contention/")
}
