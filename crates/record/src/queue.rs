use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::MAX_THREADS;
use crate::{Load, Text};

/// A queue and its use.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct QueueSubject {
    /// Name of the queue, as in `threadtoll list queues` or `threadtoll list peers`.
    pub queue: Text,
    /// Origin of the queue.
    pub origin: Origin,
    /// Wait strategy of the receiver.
    pub wait: Wait,
    /// Capacity in messages; null for unbounded queues, and in files older than this field.
    #[serde(default)]
    pub capacity: Option<u64>,
    /// Bytes that `capacity` messages take in the queue; null if `capacity` is null.
    #[serde(default)]
    pub ring_bytes: Option<u64>,
    /// Maximum number of messages in a batch; 1 if messages are sent one at a time. For `raw-copy`:
    /// number of words per copied block.
    pub batch: u64,
    /// Version of the queue.
    pub version: Text,
    /// Number of senders.
    pub senders: u32,
    /// Load on the queue, such as the times at which messages are sent.
    #[serde(flatten)]
    pub load: Load,
}

impl QueueSubject {
    const MAX_BATCH: u64 = 1 << 32;

    pub(crate) fn validate(&self) -> Result<(), String> {
        if !(1..=Self::MAX_BATCH).contains(&self.batch) {
            return Err(format!("a batch of {} messages is out of range", self.batch));
        }
        if !(1..=MAX_THREADS).contains(&self.senders) {
            return Err(format!("{} senders are out of range", self.senders));
        }
        if self.load.other_threads() > u64::from(MAX_THREADS) {
            return Err("its number of receivers is out of range".into());
        }
        Ok(())
    }

    /// Number of threads: senders and receivers.
    pub fn threads(&self) -> usize {
        self.senders as usize + self.load.other_threads() as usize
    }
}

/// Origin of a queue, mechanism or lock.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// This project.
    #[default]
    Ours,
    /// A Rust crate or the standard library.
    Rust,
    /// A C library.
    C,
    /// A C++ library.
    #[serde(rename = "c++")]
    Cpp,
    /// A Java library.
    Java,
    /// The Go language.
    Go,
    /// The D language.
    D,
    /// Another language.
    Other,
    /// A bare copy from one core to another, the upper limit for any queue.
    Raw,
}

impl Origin {
    /// The origin of a program written in this language.
    pub fn of_language(language: &str) -> Self {
        let languages = [Origin::Rust, Origin::C, Origin::Cpp, Origin::Java, Origin::Go, Origin::D];
        let named = languages.into_iter().find(|one| one.name().eq_ignore_ascii_case(language));
        named.unwrap_or(Origin::Other)
    }

    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Ours => "ours",
            Origin::Rust => "rust",
            Origin::C => "c",
            Origin::Cpp => "c++",
            Origin::Java => "java",
            Origin::Go => "go",
            Origin::D => "d",
            Origin::Other => "other",
            Origin::Raw => "raw",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Wait strategy of a queue's receiver.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// Spin without yielding the CPU.
    Spin,
    /// Spin, and yield the CPU in between.
    SpinYield,
    /// Sleep in the kernel until woken.
    Park,
    /// Spin for as long as spinning is probably cheaper, then sleep.
    Adaptive,
    /// Call the queue's non-blocking receive function in a tight loop, for queues that cannot spin
    /// by themselves.
    Poll,
    /// Like `poll`, with about a hundred pause hints after each failed attempt.
    PollBackoff,
    /// Call the queue's blocking receive function.
    Block,
}

impl Wait {
    /// All wait strategies, in the order in which tables list them.
    pub const ALL: [Wait; 7] = [
        Wait::Spin,
        Wait::SpinYield,
        Wait::Poll,
        Wait::PollBackoff,
        Wait::Adaptive,
        Wait::Park,
        Wait::Block,
    ];

    /// Name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Wait::Spin => "spin",
            Wait::SpinYield => "spin-yield",
            Wait::Park => "park",
            Wait::Adaptive => "adaptive",
            Wait::Poll => "poll",
            Wait::PollBackoff => "poll-backoff",
            Wait::Block => "block",
        }
    }

    /// Returns `true` if the option `--wait` with this strategy also selects rows with the strategy
    /// `other`. Threadtoll's queues have other strategies than the peers with which they are
    /// compared.
    pub fn brings(self, other: Wait) -> bool {
        self == other
            || matches!(
                (self, other),
                (Wait::Spin, Wait::Poll | Wait::PollBackoff)
                    | (Wait::Park | Wait::Adaptive, Wait::Block)
            )
    }

    /// Wait family of the strategy. Ratios are taken only within a family, so that spinning queues
    /// are not compared with sleeping ones.
    pub fn family(self) -> WaitFamily {
        match self {
            Wait::Spin | Wait::SpinYield | Wait::Poll | Wait::PollBackoff => WaitFamily::Spinning,
            Wait::Park | Wait::Adaptive | Wait::Block => WaitFamily::Blocking,
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Wait strategies that are compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitFamily {
    /// The receiver polls and is never woken.
    Spinning,
    /// The receiver may sleep and be woken.
    Blocking,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_files_are_those_that_are_shown() {
        for wait in Wait::ALL {
            assert_eq!(serde_json::to_value(wait).unwrap(), wait.name());
        }
        let origins = [
            Origin::Ours,
            Origin::Rust,
            Origin::C,
            Origin::Cpp,
            Origin::Java,
            Origin::Go,
            Origin::D,
            Origin::Other,
            Origin::Raw,
        ];
        for origin in origins {
            assert_eq!(serde_json::to_value(origin).unwrap(), origin.name());
        }
    }
}
