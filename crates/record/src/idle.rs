use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rounding::significant;
use crate::{Count, Fraction, Text};

/// Time that the receiver's CPU spent in idle states, from just before a block until just after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleBlock {
    /// Time between the two readings of the kernel's counters, in nanoseconds.
    pub window_ns: Count,
    /// States from the shallowest to the deepest; empty if the kernel has no counters.
    pub states: Vec<IdleStateBlock>,
}

/// Use of one idle state, from just before a block until just after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleStateBlock {
    /// Name of the state in the kernel.
    pub name: Text,
    /// Time that the CPU spent in the state, in nanoseconds.
    pub time_ns: Count,
    /// Number of times that the CPU entered the state.
    pub entered: Count,
}

/// Idle states of the receiver's CPU, over all blocks of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Idle {
    /// States from the shallowest to the deepest; empty if the kernel has no counters.
    pub states: Vec<IdleState>,
}

/// Use of one idle state, over all blocks of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdleState {
    /// Name of the state in the kernel.
    pub name: Text,
    /// Fraction of the time that the CPU spent in the state.
    pub share: Fraction,
    /// Number of times that the CPU entered the state.
    pub entered: Count,
}

impl Idle {
    pub(crate) fn of<'a>(blocks: impl Iterator<Item = &'a IdleBlock>) -> Option<Self> {
        let blocks: Vec<&IdleBlock> = blocks.collect();
        let window_ns = blocks.iter().map(|block| block.window_ns).sum::<Count>().as_f64();
        let names = &blocks.first()?.states;
        let state = |(at, name): (usize, &Text)| {
            let own = || blocks.iter().filter_map(move |block| block.states.get(at));
            let time_ns = own().map(|own| own.time_ns).sum::<Count>().as_f64();
            IdleState {
                name: name.clone(),
                share: significant((time_ns / window_ns.max(1.0)).min(1.0)).into(),
                entered: own().map(|own| own.entered).sum(),
            }
        };
        let names = names.iter().map(|own| &own.name);
        Some(Idle { states: names.enumerate().map(state).collect() })
    }

    /// The deepest state that the CPU entered; `None` if it entered none.
    pub fn deepest(&self) -> Option<&IdleState> {
        self.states.iter().rfind(|state| state.entered.get() > 0)
    }
}
