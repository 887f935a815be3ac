use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

/// A text of at most [`Text::MAX_BYTES`]. Longer texts are truncated when created, and rejected
/// when read from a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Text(String);

impl Text {
    /// Maximum length in bytes.
    pub const MAX_BYTES: usize = 10_000;

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Text {
    fn from(mut text: String) -> Self {
        text.truncate(text.floor_char_boundary(Text::MAX_BYTES));
        Text(text)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        text.to_string().into()
    }
}

impl From<Text> for String {
    fn from(text: Text) -> String {
        text.0
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.len() <= Text::MAX_BYTES {
            Ok(Text(text))
        } else {
            Err(serde::de::Error::custom(format!(
                "a text of {} bytes is too long: the limit is {}",
                text.len(),
                Text::MAX_BYTES
            )))
        }
    }
}

impl JsonSchema for Text {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "maxLength": Text::MAX_BYTES })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_off_when_made_and_refused_when_read() {
        let long = "ä".repeat(Text::MAX_BYTES);
        assert_eq!(Text::from(long.as_str()).len(), Text::MAX_BYTES);
        let refused = serde_json::from_str::<Text>(&format!("\"{long}\"")).unwrap_err();
        assert!(refused.to_string().contains("too long"), "{refused}");
        assert_eq!(serde_json::from_str::<Text>("\"ä\"").unwrap(), "ä");
    }
}
