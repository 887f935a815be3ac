//! Experiments, as tables are divided by them. No other file of this crate knows a scenario by
//! name.

use threadtoll_record::{Experiment, Record, RecordKind};

pub(crate) const HOLD_SWEEP: &str = "hold-sweep";
pub(crate) const FREQUENCY_SWEEP: &str = "frequency-sweep";
pub(crate) const POOL: &str = "pool";

/// What the threads of a queue's cell do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum QueueScenario {
    AskReply,
    Stream,
}

pub(crate) fn queue_scenario(record: &Record) -> Option<QueueScenario> {
    match (&record.experiment, record.kind) {
        (Experiment::Queue(_), RecordKind::RoundTrip) => Some(QueueScenario::AskReply),
        (Experiment::Queue(_), RecordKind::Stream) => Some(QueueScenario::Stream),
        _ => None,
    }
}

/// The scenario of the command `contention`, such as [`POOL`].
pub(crate) fn contention_scenario(record: &Record) -> Option<&str> {
    match &record.experiment {
        Experiment::Contention(scenario) => Some(scenario),
        Experiment::Latency | Experiment::Matrix | Experiment::Queue(_) => None,
    }
}
