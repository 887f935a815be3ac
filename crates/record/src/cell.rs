//! One point of an experiment: every parameter that makes it what it is.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the two ends of a hand-off run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Each end is bound to a CPU of its own (the one-thread rungs: to one CPU).
    Pinned,
    /// Both ends are bound to the same CPU.
    SameCpu,
    /// The scheduler places both ends among the allowed CPUs.
    Free,
}

impl Placement {
    /// All placements, in the order in which tables show them.
    pub const ALL: [Placement; 3] = [Placement::Pinned, Placement::SameCpu, Placement::Free];

    /// The name that the command line and the files use.
    pub fn name(self) -> &'static str {
        match self {
            Placement::Pinned => "pinned",
            Placement::SameCpu => "same-cpu",
            Placement::Free => "free",
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How the CPUs of the two ends are related, from nearest to farthest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// One thread is both ends.
    SameThread,
    /// Two threads share one CPU.
    SameCpu,
    /// Two hardware threads of one core.
    Smt,
    /// Two cores that share their last-level cache.
    SameLlc,
    /// Two cores of one NUMA node without a common last-level cache.
    SameNode,
    /// Two cores of different NUMA nodes.
    OtherNode,
    /// The scheduler decides.
    Free,
}

impl Relation {
    /// The name that the files use.
    pub fn name(self) -> &'static str {
        match self {
            Relation::SameThread => "same-thread",
            Relation::SameCpu => "same-cpu",
            Relation::Smt => "smt",
            Relation::SameLlc => "same-llc",
            Relation::SameNode => "same-node",
            Relation::OtherNode => "other-node",
            Relation::Free => "free",
        }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where the two counters of a cache-line mechanism lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Each counter has cache lines of its own.
    Own,
    /// Both counters share one cache line.
    Shared,
}

/// Whether a spinning end executes the CPU's pause hint in its loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pause {
    /// With the hint.
    On,
    /// Without it.
    Off,
}

/// What other threads do while a cell is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Neighbour {
    /// Other threads compute and touch no memory.
    Spin,
    /// Other threads stream through memory larger than the caches.
    Memory,
    /// Other threads sleep and wake all the time.
    Churn,
}

/// One point of an experiment.
///
/// Two cells that compare equal are the same measurement. Parameters that do not apply to a cell are absent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Name of the mechanism, as `threadtoll list mechanisms` gives it.
    pub mechanism: String,
    /// Where the ends run.
    pub placement: Placement,
    /// The CPUs: of the first and the second end when pinned, one when both share it, all allowed ones when free.
    pub cpus: Vec<u32>,
    /// How those CPUs are related.
    pub relation: Relation,
    /// Bytes of one message, its 8-byte sequence number included.
    pub payload_bytes: u64,
    /// Layout of the counters, for the mechanisms that have a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<Layout>,
    /// Pause hint in the spin loop, for the mechanisms that have a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// True where a lowest-priority spinner kept the CPUs from idling.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_awake: bool,
    /// Load beside the measured threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbour: Option<Neighbour>,
}

impl Cell {
    /// The mechanism with the parameters that set it apart within one placement, as tables label it
    /// (`atomic-rmw, shared line, pause`).
    ///
    /// Payloads of 8 bytes, own lines and the absence of a pause hint are the usual case and are not mentioned.
    pub fn label(&self) -> String {
        let mut label = self.mechanism.clone();
        if self.line == Some(Layout::Shared) {
            label.push_str(", shared line");
        }
        if self.pause == Some(Pause::On) {
            label.push_str(", pause");
        }
        if self.keep_awake {
            label.push_str(", kept awake");
        }
        if self.payload_bytes != 8 {
            label.push_str(&format!(", {} B", self.payload_bytes));
        }
        match self.neighbour {
            None => {}
            Some(Neighbour::Spin) => label.push_str(", beside spinners"),
            Some(Neighbour::Memory) => label.push_str(", beside memory streams"),
            Some(Neighbour::Churn) => label.push_str(", beside churn"),
        }
        label
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_mention_only_what_is_unusual() {
        let mut cell = Cell {
            mechanism: "atomic-rmw".into(),
            placement: Placement::Pinned,
            cpus: vec![0, 1],
            relation: Relation::SameLlc,
            payload_bytes: 8,
            line: Some(Layout::Own),
            pause: Some(Pause::Off),
            keep_awake: false,
            neighbour: None,
        };
        assert_eq!(cell.label(), "atomic-rmw");
        cell.line = Some(Layout::Shared);
        cell.pause = Some(Pause::On);
        cell.keep_awake = true;
        cell.payload_bytes = 4096;
        cell.neighbour = Some(Neighbour::Churn);
        assert_eq!(cell.label(), "atomic-rmw, shared line, pause, kept awake, 4096 B, beside churn");
    }
}
