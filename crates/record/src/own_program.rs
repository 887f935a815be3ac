//! Cells that a program of another language measures itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Count;

/// A program that measured a cell itself: its figures are taken on its threads, by its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnProgram {
    /// Time for which it ran before its blocks until they levelled off, in milliseconds: the one
    /// before this block, or the median over blocks; null if it does not say.
    pub warm_up_ms: Option<Count>,
}
