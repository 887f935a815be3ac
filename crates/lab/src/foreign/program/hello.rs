//! A program's description of itself and its peers.

use serde::{Deserialize, Deserializer, Serialize};
use threadtoll_record::{Class, StrikeReason, Wait};

use super::talk::Fault;
use crate::foreign::description::check_name;

/// Longest name, version, sentence and description of a compiler, in bytes.
const LONGEST: usize = 500;
/// Most peers of a program.
const MOST: usize = 256;

/// A program's description of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the protocol.
    program: u32,
    /// Programming language.
    pub language: String,
    /// Runtime and its version.
    pub runtime: String,
    /// Compiler and its version.
    pub compiler: String,
    /// Flags of the compiler, the runtime or both.
    pub flags: String,
    /// The peers that it can measure.
    pub peers: Vec<Peer>,
}

/// A peer of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Peer {
    /// A queue.
    Queue(ProgramQueue),
    /// A mechanism, for `latency`.
    Mechanism {
        /// Its name.
        name: String,
        /// Version of the measured code.
        version: String,
        /// One-sentence description.
        sentence: String,
        /// The ends' way of waiting.
        class: Class,
    },
    /// A lock, for a scenario of `contention`.
    Contention {
        /// The scenario.
        scenario: String,
        /// Its name.
        name: String,
        /// Version of the measured code.
        version: String,
        /// One-sentence description.
        sentence: String,
    },
}

/// A queue of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramQueue {
    /// Its name.
    pub name: String,
    /// Version of the measured code.
    pub version: String,
    /// One-sentence description.
    pub sentence: String,
    /// Scenarios that the program knows for it.
    pub scenarios: Vec<String>,
    /// True if several threads may send.
    #[serde(rename = "senders", deserialize_with = "many", serialize_with = "one_or_many")]
    pub many_senders: bool,
    /// True if a sender may have to wait.
    #[serde(rename = "capacity", deserialize_with = "bounded", serialize_with = "bounds")]
    pub bounded: bool,
    /// Memory for a message of 8 bytes, of a bounded queue.
    #[serde(default)]
    pub slot_bytes: Option<u32>,
    /// True if its capacity is a power of two.
    #[serde(default)]
    pub power_of_two: bool,
    /// Its ways of waiting.
    #[serde(deserialize_with = "waits")]
    pub waits: Vec<Wait>,
    /// True if it has batch calls.
    #[serde(default)]
    pub batches: bool,
}

fn choice<'de, D: Deserializer<'de>>(
    deserializer: D,
    [no, yes]: [&str; 2],
) -> Result<bool, D::Error> {
    let word = String::deserialize(deserializer)?;
    if word == no || word == yes {
        return Ok(word == yes);
    }
    Err(serde::de::Error::custom(format!("“{word}” is neither “{no}” nor “{yes}”")))
}

fn many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    choice(deserializer, ["one", "many"])
}

fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    choice(deserializer, ["unbounded", "bounded"])
}

fn one_or_many<S: serde::Serializer>(many: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if *many { "many" } else { "one" })
}

fn bounds<S: serde::Serializer>(bounded: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if *bounded { "bounded" } else { "unbounded" })
}

/// Only the ways of peers: a program's queue is none of ours.
fn waits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Wait>, D::Error> {
    let waits = Vec::<Wait>::deserialize(deserializer)?;
    let peers = [Wait::Poll, Wait::PollBackoff, Wait::Block];
    match waits.iter().find(|wait| !peers.contains(wait)) {
        Some(wait) => Err(serde::de::Error::custom(format!(
            "a peer waits by poll, poll-backoff or block, not by {}",
            wait.name()
        ))),
        None => Ok(waits),
    }
}

impl Peer {
    /// Its name, of whatever kind it is.
    pub fn name(&self) -> &str {
        match self {
            Peer::Queue(queue) => &queue.name,
            Peer::Mechanism { name, .. } | Peer::Contention { name, .. } => name,
        }
    }

    fn texts(&self) -> [&str; 3] {
        match self {
            Peer::Queue(ProgramQueue { name, version, sentence, .. })
            | Peer::Mechanism { name, version, sentence, .. }
            | Peer::Contention { name, version, sentence, .. } => [name, version, sentence],
        }
    }
}

impl Hello {
    pub(super) fn read(line: &str) -> Result<Hello, Fault> {
        let fault = |what: String| {
            let clause = format!("its description cannot be read: {what}");
            Fault::new(StrikeReason::Crashed, clause)
        };
        let hello: Hello = serde_json::from_str(line).map_err(|error| fault(error.to_string()))?;
        hello.validate().map_err(fault)?;
        Ok(hello)
    }

    fn validate(&self) -> Result<(), String> {
        if self.program != 1 {
            return Err(format!("it speaks version {} of the protocol, not 1", self.program));
        }
        if self.peers.is_empty() || self.peers.len() > MOST {
            return Err(format!("it has {} peers, not 1 to {MOST}", self.peers.len()));
        }
        let own = [&self.language, &self.runtime, &self.compiler, &self.flags];
        let own = own.into_iter().map(String::as_str);
        let mut texts = own.chain(self.peers.iter().flat_map(|peer| peer.texts()));
        if texts.any(|text| text.len() > LONGEST || text.contains(char::is_control)) {
            return Err(format!("a text has over {LONGEST} bytes, or characters of control"));
        }
        for (at, peer) in self.peers.iter().enumerate() {
            let name = peer.name();
            if let Err(why) = check_name(name) {
                return Err(format!("it has a peer “{}”: {why}", super::answer::said(name)));
            }
            if self.peers[..at].iter().any(|other| other.name() == name) {
                return Err(format!("two peers are called {name}"));
            }
            let scenario = |peer: &Peer| match peer {
                Peer::Contention { scenario, .. } => Some(scenario.clone()),
                _ => None,
            };
            if matches!(peer, Peer::Mechanism { class: Class::OneThread, .. }) {
                return Err(format!("{name} has two ends, so its class is spin, poll or sleep"));
            }
            // A request names the scenario alone.
            let mut others = self.peers[..at].iter().filter_map(scenario);
            if let Some(own) = scenario(peer).filter(|own| others.any(|other| other == *own)) {
                return Err(format!("two peers are for contention {own}"));
            }
            if let Peer::Queue(queue) = peer {
                queue.validate().map_err(|why| format!("{name} {why}"))?;
            }
        }
        Ok(())
    }

    /// The queue with this name.
    pub fn queue(&self, name: &str) -> Option<&ProgramQueue> {
        self.peers.iter().find_map(|peer| match peer {
            Peer::Queue(queue) if queue.name == name => Some(queue),
            _ => None,
        })
    }
}

impl ProgramQueue {
    fn validate(&self) -> Result<(), String> {
        if self.waits.is_empty() || self.scenarios.is_empty() {
            return Err("has no way of waiting, or no scenario".into());
        }
        let again = |at: usize| self.waits[..at].contains(&self.waits[at]);
        if (0..self.waits.len()).any(again) {
            return Err("has a way of waiting twice".into());
        }
        match self.slot_bytes {
            Some(bytes) if !(1..=1 << 20).contains(&bytes) => {
                Err(format!("has slots of {bytes} bytes"))
            }
            None if self.bounded => Err("is bounded, and has no “slot_bytes”".into()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: &str = r#"{"kind":"queue","name":"java-abq","version":"17","sentence":"s","scenarios":["stream"],"senders":"many","capacity":"bounded","slot_bytes":28,"waits":["poll","block"],"new":1}"#;

    fn program(peers: &str) -> String {
        format!(
            r#"{{"program":1,"language":"java","runtime":"r","compiler":"c","flags":"","peers":[{peers}]}}"#
        )
    }

    #[test]
    fn a_description_is_read_and_unknown_members_are_passed_over() {
        let pool =
            r#"{"kind":"contention","scenario":"pool","name":"fair","version":"1","sentence":"s"}"#;
        let volatile = r#"{"kind":"mechanism","name":"java-volatile","version":"1","sentence":"s","class":"spin","waits":[]}"#;
        let hello = Hello::read(&program(&[QUEUE, pool, volatile].join(","))).unwrap();
        let queue = hello.queue("java-abq").unwrap();
        assert!(queue.many_senders && queue.bounded && !queue.power_of_two && !queue.batches);
        assert_eq!(
            (queue.slot_bytes, &queue.waits[..]),
            (Some(28), &[Wait::Poll, Wait::Block][..])
        );
        let names: Vec<&str> = hello.peers.iter().map(Peer::name).collect();
        assert_eq!(names, ["java-abq", "fair", "java-volatile"]);
        assert!(hello.queue("fair").is_none());
        let again = serde_json::to_string(&hello).unwrap();
        assert_eq!(Hello::read(&again).unwrap(), hello);
    }

    #[test]
    fn a_wrong_description_is_refused_with_the_reason() {
        let wrong = |from: &str, to: &str| QUEUE.replace(from, to);
        for (peers, why) in [
            (String::new(), "0 peers"),
            (wrong("\"many\"", "\"some\""), "neither “one” nor “many”"),
            (wrong("\"poll\"", "\"spin\""), "not by spin"),
            (wrong("\"poll\"", "\"block\""), "twice"),
            (wrong("[\"poll\",\"block\"]", "[]"), "no way of waiting"),
            (wrong("\"slot_bytes\":28,", ""), "no “slot_bytes”"),
            (wrong("28", "0"), "slots of 0 bytes"),
            (wrong("java-abq", "Java ABQ"), "“Java ABQ”: a name has at most 40 lowercase letters"),
            (wrong("java-abq", "--quiet"), "of which the first is a letter"),
            (wrong("java-abq", r"\u001b[2J"), "characters of control"),
            (format!("{QUEUE},{QUEUE}"), "two peers are called java-abq"),
        ] {
            let fault = Hello::read(&program(&peers)).unwrap_err();
            assert!(fault.clause.contains(why), "{}", fault.clause);
        }
        let fault = Hello::read("{}").unwrap_err();
        assert!(fault.clause.starts_with("its description cannot be read: "), "{}", fault.clause);
        let later = program(QUEUE).replace("\"program\":1", "\"program\":2");
        assert!(Hello::read(&later).unwrap_err().clause.contains("version 2"));
    }
}
