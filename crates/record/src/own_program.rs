//! Cells that are measured by separate programs in other languages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Count;

/// A program in another language that measured a cell itself: the figures come from its own threads
/// and clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnProgram {
    /// Warm-up time in milliseconds, until the program's figures levelled off: for a block, the
    /// warm-up before that block; for a record, the median over its blocks. Null if the program
    /// does not report it.
    pub warm_up_ms: Option<Count>,
}
