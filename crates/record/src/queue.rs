//! Queues as the subject of a cell: which one, and how it is used.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Text;
use crate::cell::MAX_THREADS;

/// A queue and how it is used.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct QueueSubject {
    /// Its name, as `threadtoll list queues` or `threadtoll list peers` gives it.
    pub queue: Text,
    /// Where it comes from.
    pub origin: Origin,
    /// Way in which its receiver waits.
    pub wait: Wait,
    /// Messages that it holds; null where it is not bounded, and in files that were written before
    /// this was said.
    #[serde(default)]
    pub capacity: Option<u64>,
    /// Bytes of the memory in which these lie; null as above.
    #[serde(default)]
    pub ring_bytes: Option<u64>,
    /// The largest batch; 1 where messages are sent and received one at a time. Of `raw-copy`: the
    /// words of a block.
    pub batch: u64,
    /// Its version.
    pub version: Text,
    /// Number of threads that send.
    pub senders: u32,
}

impl QueueSubject {
    /// Largest batch.
    const MAX_BATCH: u64 = 1 << 32;

    /// Checks what was read from a file.
    pub(crate) fn validate(&self) -> Result<(), String> {
        if !(1..=Self::MAX_BATCH).contains(&self.batch) {
            return Err(format!("no queue takes {} messages at once", self.batch));
        }
        if !(1..=MAX_THREADS).contains(&self.senders) {
            return Err(format!("no queue has {} senders", self.senders));
        }
        Ok(())
    }
}

/// Where a queue comes from.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The library of this project.
    Ours,
    /// A queue of this project once more, compiled and registered as a peer is. Where its ratio to
    /// the original differs from 1, other ratios may be wrong by as much.
    Twin,
    /// A crate, or the standard library of Rust.
    Rust,
    /// A C++ library.
    #[serde(rename = "c++")]
    Cpp,
    /// A Java library.
    Java,
    /// Go.
    Go,
    /// D.
    D,
    /// No queue at all: a bare copy, which is the limit of any.
    Raw,
}

impl Origin {
    /// The name that the files use.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Ours => "ours",
            Origin::Twin => "twin",
            Origin::Rust => "rust",
            Origin::Cpp => "c++",
            Origin::Java => "java",
            Origin::Go => "go",
            Origin::D => "d",
            Origin::Raw => "raw",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Way in which the receiver of a queue waits while there is no message.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// It spins.
    Spin,
    /// It spins and lets go of its CPU in between.
    SpinYield,
    /// It sleeps in the kernel until it is woken.
    Park,
    /// It spins for as long as that is likely to be cheaper, then sleeps.
    Adaptive,
    /// It calls a queue's attempt to receive in a tight loop: the spinning of a queue that knows
    /// only attempts.
    Poll,
    /// Like `poll`, with about a hundred of the CPU's pause hints after each attempt that fails.
    PollBackoff,
    /// It calls a queue's blocking receive, whatever that does.
    Block,
}

impl Wait {
    /// All ways, in the order in which tables show them.
    pub const ALL: [Wait; 7] = [
        Wait::Spin,
        Wait::SpinYield,
        Wait::Poll,
        Wait::PollBackoff,
        Wait::Adaptive,
        Wait::Park,
        Wait::Block,
    ];

    /// The name that the command line and the files use.
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

    /// Tells if asking for this way of waiting includes rows that wait like `other`: a wait of ours
    /// brings along the peers that it is compared with.
    pub fn brings(self, other: Wait) -> bool {
        self == other
            || matches!(
                (self, other),
                (Wait::Spin, Wait::Poll | Wait::PollBackoff)
                    | (Wait::Park | Wait::Adaptive, Wait::Block)
            )
    }

    /// What ratios are taken within: a queue that burns its CPU is not compared with one that
    /// sleeps.
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

/// The two ways of waiting that are compared within, and not with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitFamily {
    /// The waiting end looks again and again, and is never woken.
    Spinning,
    /// The waiting end may sleep, and is then woken.
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
            Origin::Twin,
            Origin::Rust,
            Origin::Cpp,
            Origin::Java,
            Origin::Go,
            Origin::D,
            Origin::Raw,
        ];
        for origin in origins {
            assert_eq!(serde_json::to_value(origin).unwrap(), origin.name());
        }
    }
}
