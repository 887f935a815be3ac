use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A share, stored in whole millionths because it is part of cells, which are compared and sorted.
/// In files, a number from 0 to 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "f64", into = "f64")]
pub struct Share(u32);

impl Share {
    /// Zero.
    pub const NONE: Share = Share(0);

    /// Rounds `share` to the nearest millionth; `None` if it is not from 0 to 1.
    pub fn new(share: f64) -> Option<Share> {
        (0.0..=1.0).contains(&share).then(|| Share((share * 1e6).round() as u32))
    }

    /// The share, from 0 to 1.
    pub fn value(self) -> f64 {
        f64::from(self.0) / 1e6
    }
}

impl TryFrom<f64> for Share {
    type Error = &'static str;

    fn try_from(share: f64) -> Result<Self, Self::Error> {
        Share::new(share).ok_or("a share must be from 0 to 1")
    }
}

impl From<Share> for f64 {
    fn from(share: Share) -> f64 {
        share.value()
    }
}

impl JsonSchema for Share {
    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "From 0 to 1.", "type": "number", "minimum": 0, "maximum": 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_numbers_in_files() {
        let share = Share::new(0.05).unwrap();
        assert_eq!(serde_json::to_string(&share).unwrap(), "0.05");
        assert_eq!(serde_json::from_str::<Share>("0.05").unwrap(), share);
        for wrong in ["-0.1", "1.1", "\"half\""] {
            assert!(serde_json::from_str::<Share>(wrong).is_err(), "{wrong}");
        }
        assert_eq!((Share::new(f64::NAN), Share::new(1.0).map(Share::value)), (None, Some(1.0)));
    }
}
