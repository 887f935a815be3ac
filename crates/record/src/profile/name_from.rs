//! Origin of a name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Origin of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NameFrom {
    /// Given by the program.
    Given,
    /// The symbol at its address.
    Symbol,
    /// The code that created it.
    CreationSite,
    /// The code that waited for it most often.
    WaiterSite,
    /// Its address.
    Address,
}
