//! Idle states of the receiver's CPU, as blocks and records describe them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Count, Fraction, Text};

/// Time in idle states around a block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleBlock {
    /// Time between the readings of the counters, in nanoseconds.
    pub window_ns: Count,
    /// States from the shallowest to the deepest; empty if the kernel has no counters.
    pub states: Vec<IdleStateBlock>,
}

/// One idle state around a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleStateBlock {
    /// Its name in the kernel.
    pub name: Text,
    /// Time that the CPU spent in it, in nanoseconds.
    pub time_ns: Count,
    /// Number of times that the CPU entered it.
    pub entered: Count,
}

/// Idle states of the receiver's CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Idle {
    /// States from the shallowest to the deepest; empty if the kernel has no counters.
    pub states: Vec<IdleState>,
}

/// One idle state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdleState {
    /// Its name in the kernel.
    pub name: Text,
    /// Share of the time that the CPU spent in it.
    pub share: Fraction,
    /// Number of times that the CPU entered it.
    pub entered: Count,
}

impl Idle {
    /// The deepest state that the CPU entered.
    pub fn deepest(&self) -> Option<&IdleState> {
        self.states.iter().rfind(|state| state.entered.get() > 0)
    }
}
