use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A SHA-256 as 64 lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Checksum(String);

impl Checksum {
    /// The checksum of these bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self::of(Sha256::new_with_prefix(bytes))
    }

    pub(crate) fn of(digest: Sha256) -> Self {
        Checksum(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl TryFrom<String> for Checksum {
    type Error = &'static str;

    fn try_from(digits: String) -> Result<Self, Self::Error> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if digits.len() == 64 && digits.bytes().all(is_digit) {
            Ok(Checksum(digits))
        } else {
            Err("the raw file's checksum is not 64 lower-case hexadecimal digits")
        }
    }
}

impl From<Checksum> for String {
    fn from(checksum: Checksum) -> String {
        checksum.0
    }
}

impl JsonSchema for Checksum {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Checksum".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
    }
}
