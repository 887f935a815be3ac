//! Cells that a program of another language measures itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Count;

/// A program that measured a cell itself, so that the figures come from its own threads and clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnProgram {
    /// Warm-up time in milliseconds, until the figures of the program's blocks levelled off. For a
    /// block, the warm-up before it; for a record, the median over blocks; null if the program does
    /// not report it.
    pub warm_up_ms: Option<Count>,
}
