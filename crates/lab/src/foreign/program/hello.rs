use serde::{Deserialize, Serialize};
use threadtoll_record::{Class, Wait};

use crate::foreign::description::{are_of_peers, check_name, clean};

/// Maximum length of a text in bytes.
const LONGEST: usize = 500;
/// Maximum number of peers of a program.
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
    /// Peers that the program can measure.
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
        /// Name of the mechanism.
        name: String,
        /// One-sentence description.
        sentence: String,
        /// Way in which the ends wait.
        class: Class,
    },
    /// A lock, for a scenario of `contention`.
    Contention {
        /// Name of the scenario.
        scenario: String,
        /// Name of the lock.
        name: String,
        /// One-sentence description.
        sentence: String,
    },
}

/// A queue of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramQueue {
    /// Name of the queue.
    pub name: String,
    /// Version of the measured code.
    pub version: String,
    /// One-sentence description.
    pub sentence: String,
    /// Scenarios in which the program can measure the queue.
    pub scenarios: Vec<String>,
    /// Memory per 8-byte message, if the queue is bounded.
    #[serde(default)]
    pub slot_bytes: Option<u32>,
    /// True if the capacity is rounded to a power of two.
    #[serde(default)]
    pub power_of_two: bool,
    /// Wait strategies that the queue supports.
    pub waits: Vec<Wait>,
    /// True if the queue has batch calls.
    #[serde(default)]
    pub batches: bool,
}

impl Peer {
    fn texts(&self) -> [&str; 3] {
        match self {
            Peer::Queue(ProgramQueue { name, version, sentence, .. }) => [name, version, sentence],
            Peer::Mechanism { name, sentence, .. } | Peer::Contention { name, sentence, .. } => {
                [name, sentence, ""]
            }
        }
    }

    /// Name of the queue, mechanism or lock.
    pub fn name(&self) -> &str {
        self.texts()[0]
    }
}

impl Hello {
    pub(super) fn read(line: &str) -> Result<Hello, String> {
        let hello: Result<Hello, String> =
            serde_json::from_str(line).map_err(|error| error.to_string());
        let checked = hello.and_then(|hello| hello.validate().map(|()| hello));
        checked.map_err(|why| format!("its description cannot be read: {why}"))
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
        let mut texts = own.chain(self.peers.iter().flat_map(Peer::texts));
        if texts.any(|text| text.len() > LONGEST || text.contains(char::is_control)) {
            return Err(format!("a text has more than {LONGEST} bytes, or control characters"));
        }
        for peer in &self.peers {
            let name = peer.name();
            check_name(name).map_err(|why| format!("it has a peer “{}”: {why}", clean(name)))?;
            match peer {
                Peer::Queue(queue) => queue.validate().map_err(|why| format!("{name} {why}"))?,
                Peer::Mechanism { class: Class::OneThread, .. } => {
                    return Err(format!(
                        "{name} runs on two threads, so its class must be spin, poll or sleep"
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl ProgramQueue {
    fn validate(&self) -> Result<(), String> {
        if !are_of_peers(&self.waits) {
            return Err(
                "must have some of the wait strategies poll, poll-backoff and block, and no others"
                    .into(),
            );
        }
        match self.slot_bytes {
            Some(bytes) if !(1..=1 << 20).contains(&bytes) => {
                Err(format!("has slots of {bytes} bytes, which must be from 1 to 1048576"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: &str = r#"{"kind":"queue","name":"java-abq","version":"17","sentence":"s","scenarios":["stream"],"capacity":"bounded","slot_bytes":28,"waits":["poll","block"],"new":1}"#;

    fn program(peers: &str) -> String {
        format!(
            r#"{{"program":1,"language":"java","runtime":"r","compiler":"c","flags":"","peers":[{peers}]}}"#
        )
    }

    #[test]
    fn a_description_is_read_and_unknown_members_are_passed_over() {
        let pool = r#"{"kind":"contention","scenario":"pool","name":"fair","sentence":"s"}"#;
        let volatile = r#"{"kind":"mechanism","name":"java-volatile","version":"1","sentence":"s","class":"spin"}"#;
        let hello = Hello::read(&program(&[QUEUE, pool, volatile].join(","))).unwrap();
        let Peer::Queue(queue) = &hello.peers[0] else { panic!("{hello:?}") };
        assert!(!queue.power_of_two && !queue.batches);
        let waits = [Wait::Poll, Wait::Block];
        assert_eq!((queue.slot_bytes, &queue.waits[..]), (Some(28), &waits[..]));
        let names: Vec<&str> = hello.peers.iter().map(Peer::name).collect();
        assert_eq!(names, ["java-abq", "fair", "java-volatile"]);
        let again = serde_json::to_string(&hello).unwrap();
        assert_eq!(Hello::read(&again).unwrap(), hello);
    }

    #[test]
    fn a_wrong_description_is_refused_with_the_reason() {
        let wrong = |from: &str, to: &str| program(&QUEUE.replace(from, to));
        for (description, why) in [
            (program(""), "0 peers"),
            (wrong("\"poll\"", "\"spin\""), "java-abq must have some of the wait strategies"),
            (wrong("\"poll\",\"block\"", ""), "java-abq must have some of the wait strategies"),
            (wrong("28", "0"), "slots of 0 bytes"),
            (wrong("java-abq", "Java ABQ"), "“Java ABQ”: a name has at most 40 lowercase letters"),
            (wrong("java-abq", "--quiet"), "and starts with a letter"),
            (wrong("java-abq", r"\u001b[2J"), "control characters"),
            (program(QUEUE).replace("\"program\":1", "\"program\":2"), "version 2"),
            ("{}".into(), "missing field"),
        ] {
            let found = Hello::read(&description).unwrap_err();
            assert!(found.starts_with("its description cannot be read: "), "{found}");
            assert!(found.contains(why), "{found}");
        }
    }
}
