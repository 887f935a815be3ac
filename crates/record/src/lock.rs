//! Locks as the subject of a cell: which one, and what threads do with it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cell::MAX_THREADS;
use crate::{Count, Share, Text};

/// The name that stands where a lock's would, of one thread alone that takes none: what speed-ups
/// are against.
pub const NO_LOCK: &str = "none";

/// Work of threads while they hold the lock, and while they do not.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// They draw random numbers.
    Spin,
    /// They sleep, so that more threads than CPUs do not take turns.
    Sleep,
}

impl Work {
    /// The name that the command line and the files use.
    pub fn name(self) -> &'static str {
        match self {
            Work::Spin => "spin",
            Work::Sleep => "sleep",
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Spread of the lengths of the stretches with and without the lock.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// All alike.
    Fixed,
    /// Exponentially, as of events that do not remember each other.
    Exponential,
}

/// A lock and what threads do with it.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct LockSubject {
    /// Its name, as `threadtoll list locks` gives it; `none` of one thread alone that takes no
    /// lock.
    pub lock: Text,
    /// Number of threads that take it.
    pub threads: u32,
    /// Their work.
    pub work: Work,
    /// Spread of the lengths of their stretches.
    pub spread: Spread,
    /// Mean time for which a thread is to hold the lock, in nanoseconds.
    pub hold_ns: u64,
    /// Mean time that a thread is to spend without it, in nanoseconds.
    pub think_ns: u64,
    /// Share of the acquisitions that only read; absent where the lock does not tell readers from
    /// writers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_share: Option<Share>,
    /// Tasks that the threads share, each a stretch with the lock and one without it; absent where
    /// they go on for a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u64>,
}

impl LockSubject {
    /// Checks what was read from a file.
    pub(crate) fn validate(&self) -> Result<(), String> {
        if !(1..=MAX_THREADS).contains(&self.threads) {
            return Err(format!("no lock is taken by {} threads", self.threads));
        }
        if !(1..=Count::MAX.get()).contains(&self.cycle_ns()) {
            return Err(format!("no thread takes a lock every {} ns", self.cycle_ns()));
        }
        match self.tasks {
            Some(tasks) if !(1..=Count::MAX.get()).contains(&tasks) => {
                Err(format!("no threads share {tasks} tasks"))
            }
            _ => Ok(()),
        }
    }

    /// Mean time from one acquisition to the next of a thread that never waits, in nanoseconds.
    pub fn cycle_ns(&self) -> u64 {
        self.hold_ns.saturating_add(self.think_ns)
    }

    /// The share of that time for which it holds the lock.
    pub fn hold_share(&self) -> f64 {
        self.hold_ns as f64 / self.cycle_ns().max(1) as f64
    }

    /// Returns `true` for the thread alone, without a lock.
    pub fn is_alone(&self) -> bool {
        self.lock == NO_LOCK
    }

    /// Whether `alone` is what the speed-up of this one is against: one thread that does the same
    /// without the lock.
    ///
    /// A thread that computes is as fast whichever part of its work it would hold a lock for; one
    /// that sleeps is not, because each sleep is a little too long.
    pub fn is_against(&self, alone: &LockSubject) -> bool {
        let alike = match self.work {
            Work::Spin => self.cycle_ns() == alone.cycle_ns(),
            Work::Sleep => (self.hold_ns, self.think_ns) == (alone.hold_ns, alone.think_ns),
        };
        alone.is_alone()
            && !self.is_alone()
            && (self.work, self.spread) == (alone.work, alone.spread)
            && alike
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_alone_does_the_same_work() {
        let alone = LockSubject {
            lock: NO_LOCK.into(),
            threads: 1,
            work: Work::Spin,
            spread: Spread::Exponential,
            hold_ns: 0,
            think_ns: 100,
            read_share: None,
            tasks: None,
        };
        let locked = LockSubject {
            lock: "std-mutex".into(),
            threads: 2,
            hold_ns: 40,
            think_ns: 60,
            ..alone.clone()
        };
        assert!(
            locked.is_against(&alone) && !alone.is_against(&alone) && !alone.is_against(&locked)
        );
        let sleeping = |subject: &LockSubject| LockSubject { work: Work::Sleep, ..subject.clone() };
        assert!(
            !sleeping(&locked).is_against(&sleeping(&alone)),
            "each sleep is longer than it was to be"
        );
        assert!(!locked.is_against(&sleeping(&alone)));
    }
}
