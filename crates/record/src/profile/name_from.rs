//! Origin of a name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Origin of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NameFrom {
    /// Given by the program.
    Given,
    /// The symbol at the address of the named object.
    Symbol,
    /// The code that created the named object.
    CreationSite,
    /// The code that waited for the named object most often.
    WaiterSite,
    /// The address of the named object.
    Address,
}
