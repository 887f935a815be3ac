use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A change to how a program uses a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Change {
    /// `hold/2`: half the hold time.
    HalveHold,
    /// `move-out`: the operation in which the holder sleeps is moved outside the lock.
    MoveOut,
    /// `stripe/K`: K locks instead of one.
    Stripe(u32),
    /// `threads/N`: N threads instead of the current number.
    Threads(u32),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::HalveHold => f.pad("hold/2"),
            Change::MoveOut => f.pad("move-out"),
            Change::Stripe(locks) => f.pad(&format!("stripe/{locks}")),
            Change::Threads(threads) => f.pad(&format!("threads/{threads}")),
        }
    }
}

impl From<Change> for String {
    fn from(change: Change) -> String {
        change.to_string()
    }
}

impl TryFrom<String> for Change {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let number = |digits: &str| digits.parse().ok().filter(|number| *number > 0);
        match text.split_once('/') {
            None if text == "move-out" => Some(Change::MoveOut),
            Some(("hold", "2")) => Some(Change::HalveHold),
            Some(("stripe", locks)) => number(locks).map(Change::Stripe),
            Some(("threads", threads)) => number(threads).map(Change::Threads),
            _ => None,
        }
        .ok_or("a change must be one of hold/2, move-out, stripe/K and threads/N")
    }
}

impl JsonSchema for Change {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Change".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string", "pattern": "^(hold/2|move-out|(stripe|threads)/[0-9]{1,10})$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_written_by_name() {
        for change in [Change::HalveHold, Change::MoveOut, Change::Stripe(4), Change::Threads(16)] {
            let text = serde_json::to_string(&change).unwrap();
            assert_eq!(serde_json::from_str::<Change>(&text).unwrap(), change, "{text}");
        }
        for wrong in ["", "hold/3", "stripe", "stripe/0", "stripe/-1", "threads/many"] {
            assert!(Change::try_from(wrong.to_string()).is_err(), "{wrong}");
        }
    }
}
