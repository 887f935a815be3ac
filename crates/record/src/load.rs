use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{Checksum, Count, Text};

/// Load of a scenario: its messages, and the times at which they are sent. Parameters that do not
/// apply are absent; scenarios that send as fast as possible have none.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Load {
    /// Distribution of the times between arrivals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Name of the arrivals file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals_file: Option<Text>,
    /// SHA-256 of the arrivals file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals_sha256: Option<Checksum>,
    /// Factor by which the times in the arrivals file are multiplied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
    /// Intended messages per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<Count>,
    /// Number of messages that are due at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Count>,
    /// Time between two bursts or, without bursts, between two messages, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_ns: Option<Count>,
    /// Number of messages that the queue holds while its calls are timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<Count>,
    /// Number of receivers. They share the messages or, if there is a `graph`, each of them gets
    /// every message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receivers: Option<Count>,
    /// How every message gets to every receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Graph>,
    /// The message that is lost if the queue is full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lose: Option<Lose>,
    /// Number of senders of rare, important messages; the other senders are chatty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub important: Option<Count>,
    /// Way in which the bytes of a message get into the queue and out of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carry: Option<Carry>,
}

impl Load {
    /// The load of scenarios that send as fast as possible.
    pub const NONE: Load = Load {
        arrivals: None,
        arrivals_file: None,
        arrivals_sha256: None,
        scale: None,
        rate_per_s: None,
        burst: None,
        gap_ns: None,
        depth: None,
        receivers: None,
        graph: None,
        lose: None,
        important: None,
        carry: None,
    };

    /// Returns `true` if messages are sent singly, with a fixed time between them.
    pub fn is_rare(&self) -> bool {
        self.gap_ns.is_some() && self.burst.is_none()
    }

    /// The load with which this one is compared: one receiver instead of several, or moved messages
    /// instead of messages in place. `None` if there is no such load.
    pub fn base(&self) -> Option<Load> {
        if self.carry == Some(Carry::InPlace) {
            return Some(Load { carry: Some(Carry::Moved), ..self.clone() });
        }
        let several = self.graph.is_none() && self.receivers.is_some_and(|number| number > 1);
        several.then(|| Load { receivers: Some(1.into()), ..self.clone() })
    }

    /// Number of threads that are not senders.
    pub fn other_threads(&self) -> u64 {
        self.receivers.map_or(1, Count::get)
    }

    pub(crate) fn label(&self) -> String {
        let mut label = String::new();
        if let Some(arrivals) = self.arrivals {
            label.push_str(&format!(", {arrivals}"));
        }
        if let Some(file) = &self.arrivals_file {
            label.push_str(&format!(" {file}"));
        }
        if let Some(scale) = self.scale.filter(|scale| scale.value() != 1.0) {
            label.push_str(&format!(" × {}", scale.value()));
        }
        if let Some(rate) = self.rate_per_s {
            label.push_str(&format!(", {}/s", rate.get()));
        }
        if let Some(burst) = self.burst {
            label.push_str(&format!(", bursts of {}", burst.get()));
        }
        if let Some(gap_ns) = self.gap_ns {
            let comma = if self.burst.is_none() { "," } else { "" };
            label.push_str(&format!("{comma} every {}", duration(gap_ns.get())));
        }
        if let Some(depth) = self.depth {
            label.push_str(&format!(", depth {}", depth.get()));
        }
        if let Some(important) = self.important {
            label.push_str(&format!(", {} important", important.get()));
        }
        if let Some(lose) = self.lose {
            label.push_str(&format!(", loses {}", lose.name()));
        }
        if let Some(carry) = self.carry {
            label.push_str(&format!(", {}", carry.label()));
        }
        match self.receivers.map(Count::get) {
            None => {}
            Some(1) => label.push_str(", 1 receiver"),
            Some(number) => label.push_str(&format!(", {number} receivers")),
        }
        if self.graph == Some(Graph::Diamond) {
            label.push_str(" in a diamond");
        }
        label
    }
}

/// Such as `250us`: in the largest unit in which the time is a whole number.
pub fn duration(ns: u64) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    let whole = units.into_iter().find(|(_, unit)| ns >= *unit && ns.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{ns}ns"), |(name, unit)| format!("{}{name}", ns / unit))
}

/// Distribution of the times between arrivals.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// All times are equal.
    Uniform,
    /// Exponentially distributed times, as with many independent sources.
    Poisson,
    /// Times read from a file.
    File,
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Arrivals::Uniform => "uniform",
            Arrivals::Poisson => "poisson",
            Arrivals::File => "file",
        })
    }
}

/// The message that is lost if a queue is full.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Lose {
    /// None: the sender waits, or the queue grows.
    Never,
    /// The newest: the queue refuses the message that is being sent.
    Newest,
    /// The oldest: the message that has been in the queue for longest.
    Oldest,
}

impl Lose {
    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            Lose::Never => "never",
            Lose::Newest => "newest",
            Lose::Oldest => "oldest",
        }
    }
}

/// How every message gets to every receiver.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Graph {
    /// The receivers do not depend on each other.
    FanOut,
    /// The last receiver gets a message after all others have handled it.
    Diamond,
}

impl Graph {
    /// All graphs.
    pub const ALL: [Graph; 2] = [Graph::FanOut, Graph::Diamond];

    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            Graph::FanOut => "fan-out",
            Graph::Diamond => "diamond",
        }
    }
}

/// Way in which the bytes of a message get into a queue and out of it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Carry {
    /// The message is a value that is moved into the queue and out of it.
    Moved,
    /// The sender fills a free slot of the queue, and the receiver reads the message there.
    InPlace,
}

impl Carry {
    /// All variants, in the order in which tables list them.
    pub const ALL: [Carry; 2] = [Carry::Moved, Carry::InPlace];

    /// Name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Carry::Moved => "moved",
            Carry::InPlace => "in-place",
        }
    }

    /// Description in tables and labels.
    pub fn label(self) -> &'static str {
        match self {
            Carry::Moved => "moved",
            Carry::InPlace => "in place",
        }
    }
}

impl fmt::Display for Carry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A factor, stored in whole millionths because it is part of cells, which are compared and sorted.
/// In files, a number such as 0.25.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Scale(u64);

impl Scale {
    /// Largest factor.
    pub const MAX: f64 = 1e6;

    /// The factor 1.
    pub const ONE: Scale = Scale(1_000_000);

    /// Rounds `factor` to the nearest millionth; `None` if it is below a millionth or above
    /// [`Scale::MAX`].
    pub fn new(factor: f64) -> Option<Scale> {
        let millionths = (factor * 1e6).round();
        (1.0..=Self::MAX * 1e6).contains(&millionths).then_some(Scale(millionths as u64))
    }

    /// The factor.
    pub fn value(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl TryFrom<f64> for Scale {
    type Error = &'static str;

    fn try_from(factor: f64) -> Result<Self, Self::Error> {
        Scale::new(factor).ok_or("a scale must be from a millionth to a million")
    }
}

impl From<Scale> for f64 {
    fn from(scale: Scale) -> f64 {
        scale.value()
    }
}

impl JsonSchema for Scale {
    fn schema_name() -> Cow<'static, str> {
        "Scale".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A factor.", "type": "number", "minimum": 1e-6, "maximum": Self::MAX
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_positive_numbers_in_files() {
        let scale = Scale::new(0.25).unwrap();
        assert_eq!(serde_json::to_string(&scale).unwrap(), "0.25");
        assert_eq!(serde_json::from_str::<Scale>("0.25").unwrap(), scale);
        for wrong in ["0", "-1", "1e-7", "1e7", "\"twice\""] {
            assert!(serde_json::from_str::<Scale>(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Scale::new(f64::NAN), None);
    }

    #[test]
    fn labels_name_what_is_given() {
        let load = Load {
            arrivals: Some(Arrivals::Poisson),
            rate_per_s: Some(64_000.into()),
            ..Load::NONE
        };
        assert_eq!(load.label(), ", poisson, 64000/s");
        let load = Load { burst: Some(8.into()), gap_ns: Some(1000.into()), ..Load::NONE };
        assert_eq!(load.label(), ", bursts of 8 every 1us");
        let rare = Load { burst: None, ..load.clone() };
        assert_eq!(rare.label(), ", every 1us");
        assert!(rare.is_rare() && !load.is_rare());
        assert_eq!(Load::NONE.label(), "");
        let load = Load { receivers: Some(4.into()), ..Load::NONE };
        assert_eq!((load.label().as_str(), load.other_threads()), (", 4 receivers", 4));
    }

    #[test]
    fn several_receivers_are_compared_with_one() {
        let several = Load { receivers: Some(3.into()), ..Load::NONE };
        let one = Load { receivers: Some(1.into()), ..Load::NONE };
        assert_eq!((several.base(), several.other_threads()), (Some(one.clone()), 3));
        assert_eq!((one.base(), Load::NONE.base()), (None, None));
    }

    #[test]
    fn messages_in_place_are_compared_with_moved_ones() {
        let carried = |carry| Load { carry: Some(carry), ..Load::NONE };
        assert_eq!(carried(Carry::InPlace).base(), Some(carried(Carry::Moved)));
        assert_eq!(carried(Carry::Moved).base(), None);
        for carry in Carry::ALL {
            assert_eq!(serde_json::to_value(carry).unwrap(), carry.name());
        }
    }
}
