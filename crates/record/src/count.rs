use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

/// Number of messages, switches, bytes or nanoseconds.
///
/// Numbers above [`Count::MAX`] are rejected when they are read from a file, so that the sum over
/// all blocks of a cell cannot overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Count(u64);

impl Count {
    /// Largest number in a file; as nanoseconds, about three days.
    pub const MAX: Count = Count(1 << 48);

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number as a float.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }
}

impl From<u64> for Count {
    fn from(count: u64) -> Self {
        Count(count)
    }
}

impl From<Count> for u64 {
    fn from(count: Count) -> u64 {
        count.0
    }
}

impl PartialEq<u64> for Count {
    fn eq(&self, other: &u64) -> bool {
        self.0 == *other
    }
}

impl PartialOrd<u64> for Count {
    fn partial_cmp(&self, other: &u64) -> Option<Ordering> {
        self.0.partial_cmp(other)
    }
}

/// Saturates instead of overflowing, because an edited file can contain any number of large counts.
impl AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl Sum for Count {
    fn sum<I: Iterator<Item = Count>>(counts: I) -> Count {
        counts.fold(Count::default(), |mut sum, count| {
            sum += count;
            sum
        })
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let count = Count(u64::deserialize(deserializer)?);
        if count <= Count::MAX {
            Ok(count)
        } else {
            Err(serde::de::Error::custom(format!(
                "{count} is out of range: it must be from 0 to {}",
                Count::MAX
            )))
        }
    }
}

impl JsonSchema for Count {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Count".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "integer", "format": "uint64", "minimum": 0, "maximum": Count::MAX.0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_would_overflow_sums_are_refused() {
        assert_eq!(serde_json::from_str::<Count>("7").unwrap(), Count::from(7));
        assert_eq!(serde_json::to_string(&Count::from(7)).unwrap(), "7");
        assert!(serde_json::from_str::<Count>("18446744073709551615").is_err());
        assert_eq!([Count(u64::MAX), Count(1)].into_iter().sum::<Count>(), Count(u64::MAX));
    }
}
