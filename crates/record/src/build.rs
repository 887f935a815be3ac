use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Checksum, Text};

/// Build of a peer (a queue of another project) that is not compiled into this program.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Build {
    /// Language of the peer.
    pub language: Text,
    /// Compiler, or compiler and runtime, with their versions.
    pub compiler: Text,
    /// Flags of the compiler or the runtime.
    pub flags: Text,
    /// SHA-256 of the file that was loaded.
    pub sha256: Checksum,
}
