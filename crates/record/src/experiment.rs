use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{Machine, Subject};

/// Largest number of CPUs for which files keep histograms of matrix cells. On larger machines, the
/// histograms would fill the disk.
const MATRIX_HISTOGRAM_CPUS: u32 = 64;
const MAX_NAME: usize = 100;

/// An experiment. In files: `latency`, `matrix`, `queue/SCENARIO` or `contention/SCENARIO`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Experiment {
    /// Mechanisms, with their threads in several placements.
    Latency,
    /// A mechanism between pairs of CPUs.
    Matrix,
    /// Queues in the named scenario.
    Queue(String),
    /// Locks in the named scenario.
    Contention(String),
}

impl Experiment {
    /// Queues in the scenario with this name.
    pub fn queue(scenario: impl Into<String>) -> Self {
        Experiment::Queue(scenario.into())
    }

    /// Locks in the scenario with this name.
    pub fn contention(scenario: impl Into<String>) -> Self {
        Experiment::Contention(scenario.into())
    }

    /// Name of the scenario; `None` if the experiment has no scenarios.
    pub fn scenario(&self) -> Option<&str> {
        match self {
            Experiment::Latency | Experiment::Matrix => None,
            Experiment::Queue(scenario) | Experiment::Contention(scenario) => Some(scenario),
        }
    }

    /// Returns `true` if files keep histograms of the experiment's cells on this machine.
    pub fn keeps_histograms(&self, machine: &Machine) -> bool {
        *self != Experiment::Matrix || machine.cpus <= MATRIX_HISTOGRAM_CPUS
    }

    pub(crate) fn usual_kind(&self, subject: &Subject) -> Kind {
        match (self, subject) {
            (_, Subject::Lock(_)) => Kind::Contention,
            (Experiment::Queue(scenario), Subject::Queue(_)) if scenario == "stream" => {
                Kind::Stream
            }
            (_, Subject::Mechanism { .. } | Subject::Queue(_)) => Kind::Exchange,
        }
    }
}

impl fmt::Display for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Experiment::Latency => f.pad("latency"),
            Experiment::Matrix => f.pad("matrix"),
            Experiment::Queue(scenario) => f.pad(&format!("queue/{scenario}")),
            Experiment::Contention(scenario) => f.pad(&format!("contention/{scenario}")),
        }
    }
}

impl TryFrom<String> for Experiment {
    type Error = &'static str;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        let is_name = |scenario: &str| {
            (1..=MAX_NAME).contains(&scenario.len())
                && scenario.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        };
        match name.split_once('/') {
            None if name == "latency" => Ok(Experiment::Latency),
            None if name == "matrix" => Ok(Experiment::Matrix),
            Some(("queue", scenario)) if is_name(scenario) => {
                Ok(Experiment::Queue(scenario.into()))
            }
            Some(("contention", scenario)) if is_name(scenario) => {
                Ok(Experiment::Contention(scenario.into()))
            }
            _ => Err("this version has no such experiment"),
        }
    }
}

impl From<Experiment> for String {
    fn from(experiment: Experiment) -> String {
        experiment.to_string()
    }
}

impl JsonSchema for Experiment {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Experiment".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// Activity of a cell's threads. It decides the contents of the cell's blocks and record.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Sends a message one way and a reply back; measures the round trips.
    Exchange,
    /// Sends messages in one direction, as fast as the queue takes them; measures their rate.
    Stream,
    /// Sends messages in one direction, each when it is due; measures the time from then until the
    /// message is received.
    OpenLoop,
    /// Sends messages to a queue that holds many, and receives them; measures the time of each
    /// call.
    Depth,
    /// Sends messages to a queue that another thread floods; measures the time of each send call.
    SendCall,
    /// Threads contend for a lock; measures their waits and their speed-up over a single thread.
    Contention,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_are_written_by_name() {
        for name in ["latency", "matrix", "queue/ask-reply", "contention/hold-sweep"] {
            let experiment = Experiment::try_from(name.to_string()).unwrap();
            assert_eq!(serde_json::to_value(&experiment).unwrap(), name);
            assert_eq!(experiment.scenario(), name.split_once('/').map(|(_, scenario)| scenario));
        }
        for name in ["", "Latency", "latency/", "queue", "queue/", "queue/a b", "lock/pool"] {
            assert!(Experiment::try_from(name.to_string()).is_err(), "{name}");
        }
        assert!(Experiment::try_from(format!("queue/{}", "a".repeat(101))).is_err());
    }
}
