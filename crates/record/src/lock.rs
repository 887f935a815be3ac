use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::MAX_THREADS;
use crate::{Count, Overload, Share, Text};

/// Name of the baseline for speed-ups: a single thread without a lock.
pub const NO_LOCK: &str = "none";

/// Kind of work that threads do, both while they hold the lock and outside it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Compute: draw random numbers.
    Spin,
    /// Sleep instead of computing, so that more threads than CPUs can work at the same time.
    Sleep,
}

impl Work {
    /// Name on the command line and in files.
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

/// Distribution of hold times and think times (times outside the lock).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// All times are equal.
    Fixed,
    /// Exponential.
    Exponential,
}

/// A lock and its workload.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct LockSubject {
    /// Name of the lock, as in `threadtoll list locks`; `none` for a single thread without a lock.
    pub lock: Text,
    /// Number of threads that share the lock.
    pub threads: u32,
    /// Kind of work that the threads do.
    pub work: Work,
    /// Distribution of hold times and think times (times outside the lock).
    pub spread: Spread,
    /// Intended mean hold time, in nanoseconds.
    pub hold_ns: u64,
    /// Intended mean think time of a thread (time outside the lock), in nanoseconds.
    pub think_ns: u64,
    /// Share of the acquisitions that only read; absent for locks without readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_share: Option<Share>,
    /// Number of tasks that the threads share. Each task has one hold time and one think time.
    /// Absent if the threads run for a set time instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u64>,
    /// Arrival of callers from outside, whom the threads serve; absent if the threads set the pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overload: Option<Overload>,
}

impl LockSubject {
    pub(crate) fn validate(&self) -> Result<(), String> {
        if !(1..=MAX_THREADS).contains(&self.threads) {
            return Err(format!("a lock cannot have {} threads", self.threads));
        }
        if !(1..=Count::MAX.get()).contains(&self.cycle_ns()) {
            return Err(format!("a cycle of {} ns is out of range", self.cycle_ns()));
        }
        if let Some(overload) = &self.overload {
            overload.validate()?;
        }
        match self.tasks {
            Some(tasks) if !(1..=Count::MAX.get()).contains(&tasks) => {
                Err(format!("{tasks} tasks are out of range"))
            }
            _ => Ok(()),
        }
    }

    /// Mean time between two acquisitions of a thread that never waits, in nanoseconds.
    pub fn cycle_ns(&self) -> u64 {
        self.hold_ns.saturating_add(self.think_ns)
    }

    /// Fraction of [`LockSubject::cycle_ns`] during which a thread that never waits holds the lock.
    pub fn hold_share(&self) -> f64 {
        self.hold_ns as f64 / self.cycle_ns().max(1) as f64
    }

    /// Number of locks in a striped set (`striped/K:LOCK`), 1 for any other lock; `None` if the
    /// name is not valid.
    pub fn stripes(&self) -> Option<u32> {
        match self.lock.strip_prefix("striped/") {
            Some(striped) => striped.split(':').next()?.parse().ok(),
            None => Some(1),
        }
    }

    /// Returns `true` for the baseline, one thread without a lock.
    pub fn is_alone(&self) -> bool {
        self.lock == NO_LOCK
    }

    /// Returns `true` if `alone` is the baseline of this cell's speed-up: a single thread with the
    /// same work, without the lock.
    ///
    /// For a thread that computes, only the sum of hold time and think time must be the same. For a
    /// thread that sleeps, each time must be the same, because every sleep is slightly too long.
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
            overload: None,
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
            "each sleep is longer than intended"
        );
        assert!(!locked.is_against(&sleeping(&alone)));
    }
}
