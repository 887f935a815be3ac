use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// The interval from `low` to `high`, both included. In files: `[low, high]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    try_from = "[T; 2]",
    into = "[T; 2]",
    bound(
        serialize = "T: Copy + Serialize",
        deserialize = "T: Copy + PartialOrd + Deserialize<'de>"
    )
)]
pub struct Interval<T> {
    low: T,
    high: T,
}

impl<T: Copy + PartialOrd> Interval<T> {
    /// Creates an interval; `None` if `low` is above `high`, or if either end is NaN.
    pub fn new(low: T, high: T) -> Option<Self> {
        (low <= high).then_some(Interval { low, high })
    }

    /// The lower end.
    pub fn low(&self) -> T {
        self.low
    }

    /// The upper end.
    pub fn high(&self) -> T {
        self.high
    }
}

impl<T: Copy + PartialOrd> TryFrom<[T; 2]> for Interval<T> {
    type Error = &'static str;

    fn try_from([low, high]: [T; 2]) -> Result<Self, Self::Error> {
        Interval::new(low, high).ok_or("the ends of an interval are out of order")
    }
}

impl<T> From<Interval<T>> for [T; 2] {
    fn from(interval: Interval<T>) -> [T; 2] {
        [interval.low, interval.high]
    }
}

impl<T: JsonSchema> JsonSchema for Interval<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Interval_of_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        <[T; 2]>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fraction;

    #[test]
    fn intervals_are_pairs_in_order() {
        let interval: Interval<Fraction> = serde_json::from_str("[0.25, 0.5]").unwrap();
        assert_eq!((interval.low().get(), interval.high().get()), (0.25, 0.5));
        assert_eq!(serde_json::to_string(&interval).unwrap(), "[0.25,0.5]");
        for wrong in ["[0.5, 0.25]", "[0.5]", "[0.5, 1.5]", "0.5"] {
            assert!(serde_json::from_str::<Interval<Fraction>>(wrong).is_err(), "{wrong}");
        }
        assert!(Interval::new(f64::NAN, 1.0).is_none());
    }
}
