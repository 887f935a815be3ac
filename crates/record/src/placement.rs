use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Placement of a cell's threads.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Each thread is pinned to a CPU of its own.
    Pinned,
    /// All threads are pinned to the same CPU.
    SameCpu,
    /// The scheduler places the threads on any of the allowed CPUs.
    Free,
}

impl Placement {
    /// All placements, in the order in which tables list them.
    pub const ALL: [Placement; 3] = [Placement::Pinned, Placement::SameCpu, Placement::Free];

    /// Name on the command line and in files.
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

/// Relation of the threads' CPUs, from the nearest to the farthest.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// A single thread both sends and receives.
    SameThread,
    /// Two threads share one CPU.
    SameCpu,
    /// Two hardware threads of one core.
    Smt,
    /// Two cores that share their last-level cache.
    SameLlc,
    /// Two cores of one NUMA node with different last-level caches.
    SameNode,
    /// Two cores of different NUMA nodes.
    OtherNode,
    /// Any relation: the scheduler places the threads.
    Free,
}

impl Relation {
    /// Name in files.
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
