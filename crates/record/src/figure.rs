//! Fractional numbers, each with its valid range in files.
//!
//! Files may come from anywhere, and their figures are summed, sorted, drawn on logarithmic axes
//! and printed. So reading a file rejects numbers out of range. Code that measures or computes a
//! figure must keep to the range itself.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

/// Larger than any real figure: as nanoseconds, over 30 years.
const MAX: f64 = 1e18;

macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident: $min:expr, $max:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize)]
        #[serde(transparent)]
        pub struct $name(f64);

        impl $name {
            /// Wraps a measured or computed number without checking its range.
            pub const fn new(value: f64) -> Self {
                $name(value)
            }

            /// The number.
            pub const fn get(self) -> f64 {
                self.0
            }
        }

        impl From<f64> for $name {
            fn from(value: f64) -> Self {
                $name(value)
            }
        }

        impl From<$name> for f64 {
            fn from(figure: $name) -> f64 {
                figure.0
            }
        }

        impl PartialEq<f64> for $name {
            fn eq(&self, other: &f64) -> bool {
                self.0 == *other
            }
        }

        impl PartialOrd<f64> for $name {
            fn partial_cmp(&self, other: &f64) -> Option<Ordering> {
                self.0.partial_cmp(other)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                in_range(f64::deserialize(deserializer)?, $min, $max).map($name)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "number", "format": "double", "minimum": $min, "maximum": $max
                })
            }
        }
    )*};
}

figures! {
    /// Nanoseconds.
    Ns: 0.0, MAX;
    /// Nanoseconds between stamps of two CPUs; negative if the CPUs' clocks disagree.
    SignedNs: -MAX, MAX;
    /// Seconds.
    Seconds: 0.0, MAX;
    /// A rate per second.
    PerSecond: 0.0, MAX;
    /// A dimensionless number, such as a speed-up or a mean.
    Ratio: 0.0, MAX;
    /// A dimensionless number that may be negative.
    SignedRatio: -MAX, MAX;
    /// Part of a whole, 0 to 1.
    Fraction: 0.0, 1.0;
}

fn in_range<E: serde::de::Error>(value: f64, min: f64, max: f64) -> Result<f64, E> {
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(E::custom(format!("{value:?} is out of range: it must be from {min:?} to {max:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_out_of_their_range_are_refused() {
        assert_eq!(serde_json::from_str::<Ns>("12.5").unwrap(), Ns::from(12.5));
        assert_eq!(serde_json::to_string(&Ns::from(12.0)).unwrap(), "12.0");
        let refused = serde_json::from_str::<Ns>("-12.5").unwrap_err().to_string();
        assert!(refused.contains("-12.5 is out of range"), "{refused}");
        assert!(serde_json::from_str::<Ns>("1e300").is_err());
        assert!(serde_json::from_str::<SignedNs>("-12.5").is_ok());
        assert!(serde_json::from_str::<Fraction>("1.01").is_err());
    }
}
