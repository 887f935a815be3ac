use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Origin of the name of a lock, or of another object that threads wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NameFrom {
    /// The program, which named the object.
    Given,
    /// Symbol at the object's address.
    Symbol,
    /// Code that created the object.
    CreationSite,
    /// Code that waited for the object most often.
    WaiterSite,
    /// The object's address.
    Address,
}
