//! Figures that only one kind of cell has, such as those of cells with a lock.
//!
//! In a file, these figures are not nested, but are members of the block, record or regime itself.
//! A reader recognises the kind by a member that no other kind has.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::{
    CallsBlock, Contention, ContentionBlock, DepthFigures, HandOffBlockFigures, HandOffFigures,
    Lost, OpenLoopBlockFigures, OpenLoopFigures, Workers, WorkersBlock,
};

/// Declares an enum of figures from three lists. The first has kinds with several members, each
/// with a member that identifies the kind. The second has kinds with a single member. The third has
/// the kind of lines without any of these members.
macro_rules! by_kind {
    (
        $(#[$doc:meta])*
        $name:ident {
            $($(#[$of_several:meta])* $first:literal => $several:ident: $Several:ident($of:ty),)*;
            $($(#[$of_one:meta])* $one:ident: $One:ident($member:ty),)*;
            $(#[$of_rest:meta])* $rest:ident: $Rest:ident($others:ty)
        }
    ) => {
        $(#[$doc])*
        #[allow(clippy::large_enum_variant, reason = "most lines of a file are of the largest kind")]
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum $name {
            $($(#[$of_several])* $Several($of),)*
            $($(#[$of_one])* $One {
                /// The only member.
                $one: $member,
            },)*
            $(#[$of_rest])* $Rest($others),
        }

        impl $name {
            $($(#[$of_several])* pub fn $several(&self) -> Option<&$of> {
                if let $name::$Several(own) = self { Some(own) } else { None }
            })*
            $($(#[$of_one])* pub fn $one(&self) -> Option<&$member> {
                if let $name::$One { $one } = self { Some($one) } else { None }
            })*
            $(#[$of_rest])* pub fn $rest(&self) -> Option<&$others> {
                if let $name::$Rest(own) = self { Some(own) } else { None }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                $name::$Rest(<$others>::default())
            }
        }

        // Not derived: a derived implementation would take a line with an invalid member for a line
        // of another kind.
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let mut members = Map::<String, Value>::deserialize(deserializer)?;
                members.retain(|_, member| !member.is_null());
                $(if members.contains_key($first) {
                    return read(Value::Object(members)).map($name::$Several);
                })*
                $(if let Some($one) = members.remove(stringify!($one)) {
                    return Ok($name::$One { $one: read($one)? });
                })*
                read(Value::Object(members)).map($name::$Rest)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            /// Schema that contains the members of all kinds.
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let mut all = Map::new();
                $(all.extend(members::<$of>(generator));)*
                $(all.insert(
                    stringify!($one).into(),
                    generator.subschema_for::<$member>().to_value(),
                );)*
                all.extend(members::<$others>(generator));
                json_schema!({ "type": "object", "properties": all })
            }
        }
    };
}

fn read<T: DeserializeOwned, E: Error>(value: Value) -> Result<T, E> {
    serde_json::from_value(value).map_err(E::custom)
}

fn members<T: JsonSchema>(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let mut schema = T::json_schema(generator);
    match schema.remove("properties") {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

by_kind! {
    /// Figures of a block.
    BlockFigures {
        /// Messages sent on a schedule: the sender's lateness, and the numbers of messages due and
        /// received. The block's values (`mean`, `histogram` and so on) are the times from when a
        /// message was due until it was received.
        "open_loop" => open_loop: OpenLoop(OpenLoopBlockFigures),;
        /// Acquisitions of a lock. The block's values are waiting times or, in a stretch block, the
        /// mean time between two acquisitions by any of the threads.
        contention: Contention(ContentionBlock),
        /// A queue that holds many messages. Each of the block's values is the time of a send call
        /// plus a receive call.
        calls: Depth(CallsBlock),
        /// Receivers that share messages.
        workers: Shared(WorkersBlock),
        /// Sends into a flooded queue. The block's values are the times of send calls.
        sends: SendCall(Lost),;
        /// Round trips, or messages in one direction.
        hand_offs: HandOffs(HandOffBlockFigures)
    }
}

by_kind! {
    /// Figures of a record, or of a regime.
    Figures {
        /// Messages sent on a schedule: rate, lateness of the sender, and saturation. The record's
        /// values are the times from when a message was due until it was received.
        "open_loop" => open_loop: OpenLoop(OpenLoopFigures),
        /// A queue that holds many messages: times of send and receive calls, and memory.
        "calls" => depth: Depth(DepthFigures),
        /// Sends into a flooded queue.
        "refused" => sends: SendCall(Lost),;
        /// Locks: the measured speed-up, queue and fairness, and the prediction.
        contention: Contention(Contention),
        /// Receivers that share messages, and the evenness of their shares.
        workers: Shared(Workers),;
        /// Round trips, or messages in one direction.
        hand_offs: HandOffs(HandOffFigures)
    }
}

impl BlockFigures {
    /// Numbers of lost messages; `None` if the queue is not allowed to lose any.
    pub fn lost(&self) -> Option<Lost> {
        match self {
            BlockFigures::OpenLoop(own) => own.sends,
            BlockFigures::SendCall { sends } => Some(*sends),
            _ => None,
        }
    }
}

impl Figures {
    /// Numbers of lost messages; `None` if the queue is not allowed to lose any.
    pub fn lost(&self) -> Option<Lost> {
        match self {
            Figures::OpenLoop(own) => Some(Lost { refused: own.refused?, dropped: own.dropped? }),
            Figures::SendCall(lost) => Some(*lost),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    struct Line {
        count: u64,
        #[serde(flatten)]
        figures: BlockFigures,
        clean: bool,
    }

    #[test]
    fn figures_come_back_as_they_were_written_and_spoilt_ones_do_not() {
        let lateness = serde_json::to_string(&crate::Histogram::new()).unwrap();
        let open_loop = |received: &str| {
            format!(
                r#""open_loop":{{"lateness":{lateness},"window_ns":7,"due":1,"received":{received},"busy_ns":1,"busy_messages":1,"negative":0,"clock_bound_ns":0.1}},"sends":{{"refused":1,"dropped":2}}"#
            )
        };
        let calls = |ns: &str| {
            format!(r#""calls":{{"send_ns":{ns},"receive_ns":2.0,"resident_bytes":null}}"#)
        };
        let workers =
            |messages: &str| format!(r#""workers":{{"bundle":true,"messages":{messages}}}"#);
        let sends = |dropped: &str| format!(r#""sends":{{"refused":0,"dropped":{dropped}}}"#);
        let share = |share: &str| format!(r#""same_cpu_share":{share}"#);
        let cases = [
            [open_loop("1"), open_loop("-1")],
            [calls("0.1"), calls("-0.1")],
            [workers("[1,2]"), workers("[1,2.5]")],
            [sends("281474976710655"), sends("281474976710657")],
            [share("0.3"), share("3.0")],
        ];
        for members in cases {
            let [text, spoilt] = members
                .map(|own| format!(r#"{{"count":18446744073709551615,{own},"clean":true}}"#));
            let line: Line = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&line).unwrap(), text);
            assert!(serde_json::from_str::<Line>(&spoilt).is_err(), "{spoilt}");
        }
    }
}
