use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Count;

/// A program in another language that measured a cell itself: the figures come from its own threads
/// and clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnProgram {
    /// Warm-up time of a block, in milliseconds: until the program's figures levelled off. In a
    /// record, the median over its blocks. Null if the program does not report this time.
    pub warm_up_ms: Option<Count>,
}
