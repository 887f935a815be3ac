//! Locks that threads queue for: what a cell, a block and a record say of them, and what was
//! foretold.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The name that stands where a lock's would, of one thread alone that takes none: what speed-ups
/// are against.
pub const NO_LOCK: &str = "none";

/// A share as a whole number of millionths, so that cells can be compared and sorted; a number from
/// 0 to 1 in files.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "f64", into = "f64")]
pub struct Share(u32);

impl Share {
    /// Nothing.
    pub const NONE: Share = Share(0);

    /// The nearest millionth; nothing if it is no share.
    pub fn new(share: f64) -> Option<Share> {
        (0.0..=1.0).contains(&share).then(|| Share((share * 1e6).round() as u32))
    }

    /// From 0 to 1.
    pub fn value(self) -> f64 {
        f64::from(self.0) / 1e6
    }
}

impl TryFrom<f64> for Share {
    type Error = &'static str;

    fn try_from(share: f64) -> Result<Self, Self::Error> {
        Share::new(share).ok_or("a share lies between 0 and 1")
    }
}

impl From<Share> for f64 {
    fn from(share: Share) -> f64 {
        share.value()
    }
}

impl JsonSchema for Share {
    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "From 0 to 1.", "type": "number", "minimum": 0, "maximum": 1 })
    }
}

/// What threads do while they hold the lock, and while they do not.
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

/// How the lengths of the stretches with and without the lock are spread.
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
    pub lock: String,
    /// How many threads take it.
    pub threads: u32,
    /// What they do.
    pub work: Work,
    /// How the lengths of their stretches are spread.
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
    /// Mean time from one acquisition to the next of a thread that never waits, in nanoseconds.
    pub fn cycle_ns(&self) -> u64 {
        self.hold_ns.saturating_add(self.think_ns)
    }

    /// The share of that time for which it holds the lock.
    pub fn hold_share(&self) -> f64 {
        self.hold_ns as f64 / self.cycle_ns().max(1) as f64
    }

    /// Whether it is the thread alone, without a lock.
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

/// What the threads of one block did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContentionBlock {
    /// Work done by all of them: units, or nanoseconds that were to be slept.
    pub work: f64,
    /// Acquisitions of each thread.
    pub acquisitions: Vec<u64>,
    /// Of one thread alone that has worked on each CPU of its cell in turn: its work per nanosecond
    /// on each. CPUs need not be equally fast.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work_by_cpu: Vec<f64>,
    /// What stamps showed; absent in blocks of stretches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<ContentionSeen>,
}

/// What the stamps around each acquisition show, all threads together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContentionSeen {
    /// Time that threads waited, in nanoseconds.
    pub wait_ns: f64,
    /// Time that they held the lock, in nanoseconds.
    pub hold_ns: f64,
    /// Time that they had nothing to do with it, in nanoseconds.
    pub think_ns: f64,
    /// Threads that still waited, summed over the moments at which one had just got the lock.
    pub queue_on_entry: u64,
    /// The most threads that waited at once.
    pub queue_max: u32,
    /// Acquisitions by threads that waited when the lock was let go of.
    pub handoffs: u64,
    /// Time from letting go of the lock until such a thread had it, summed, in nanoseconds.
    pub handoff_ns: f64,
    /// The longest that a thread waited, in nanoseconds.
    pub starved_ns: f64,
}

/// What the record of a contention cell says beside the distribution of the waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contention {
    /// How many threads.
    pub threads: u32,
    /// Share of its time for which a thread that never waits holds the lock: the intended one, or
    /// what sleeps really gave.
    pub hold_share: Option<f64>,
    /// How often a thread that never waits is to take the lock, per second.
    pub locks_per_s: f64,
    /// Work per second of all threads against one thread alone without the lock: median over pairs
    /// of blocks.
    pub speedup: Option<f64>,
    /// Its 95% interval, from resampling pairs.
    pub speedup_interval95: Option<[f64; 2]>,
    /// Share of the threads' time that they waited.
    pub wait_share: Option<f64>,
    /// Threads waiting at an average moment, the holder not counted.
    pub queue_mean: Option<f64>,
    /// Threads still waiting when one had just got the lock, on average.
    pub queue_on_entry: Option<f64>,
    /// The most threads that waited at once.
    pub queue_max: Option<u32>,
    /// Jain's index of the threads' acquisitions: 1 if all got equally many, 1/threads if one got
    /// all.
    pub fairness: Option<f64>,
    /// The longest that a thread waited, in nanoseconds.
    pub starved_ns: Option<f64>,
    /// Mean time from letting go of the lock until a thread that waited has it, in nanoseconds.
    pub handoff_ns: Option<f64>,
    /// Mean time for which the lock was really held, in nanoseconds.
    pub hold_ns: Option<f64>,
    /// Mean time that a thread really spent without it, in nanoseconds.
    pub think_ns: Option<f64>,
    /// Time for all tasks, in seconds, median over blocks; null where there is no number of tasks.
    pub total_s: Option<f64>,
    /// Its 95% interval, from resampling blocks.
    pub total_s_interval95: Option<[f64; 2]>,
    /// What was foretold before the cell was measured; null where no model speaks of it.
    pub predicted: Option<CellPrediction>,
}

/// What a model says of a cell, made from what was calibrated in its group and written before its
/// first block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellPrediction {
    /// Names the run.
    pub run: String,
    /// Index of the group in the plan.
    pub group: usize,
    /// Attempt at the group.
    pub attempt: u32,
    /// Index of the cell in its group.
    pub cell: usize,
    /// When it was foretold, RFC 3339 UTC.
    pub at: String,
    /// Whose answer it is: `bounds`, `repairman`, `takacs`, `mva`, `cores` or `simulation`.
    pub model: String,
    /// Why that model was asked.
    pub why: String,
    /// Work per second against one thread alone without the lock.
    pub speedup: f64,
    /// 99% interval of a simulated speed-up; null where a closed form answers.
    pub speedup_interval99: Option<[f64; 2]>,
    /// Share of the threads' time spent waiting.
    pub wait_share: f64,
    /// Threads waiting at an average moment.
    pub queue_mean: f64,
    /// Threads still waiting when one has just got the lock.
    pub queue_on_entry: f64,
    /// Time for all tasks, in seconds; null where there is no number of tasks.
    pub total_s: Option<f64>,
    /// What it was made from.
    pub from: Calibrated,
}

/// What was measured in the group before anything was foretold, in none of the cells that it
/// foretells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibrated {
    /// Mean time for which the lock will be held, in nanoseconds.
    pub hold_ns: f64,
    /// Mean time of a thread without it, in nanoseconds.
    pub think_ns: f64,
    /// Time for both of one thread alone without the lock, in nanoseconds.
    pub alone_ns: f64,
    /// Time from letting go of the lock until a sleeping thread that is woken for it has it, in
    /// nanoseconds; after a short sleep.
    pub handoff_ns: f64,
    /// For how long a thread looks at the lock before it sleeps, in nanoseconds; null where it
    /// never sleeps, or at once.
    pub spin_ns: Option<f64>,
    /// The same as the hand-off to a thread that looks at the lock; null where none does.
    pub takeover_ns: Option<f64>,
    /// An acquisition and a release that nobody else takes part in, in nanoseconds.
    pub pair_ns: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_numbers_in_files() {
        let share = Share::new(0.05).unwrap();
        assert_eq!(serde_json::to_string(&share).unwrap(), "0.05");
        assert_eq!(serde_json::from_str::<Share>("0.05").unwrap(), share);
        for wrong in ["-0.1", "1.1", "\"half\""] {
            assert!(serde_json::from_str::<Share>(wrong).is_err(), "{wrong}");
        }
        assert_eq!((Share::new(f64::NAN), Share::new(1.0).map(Share::value)), (None, Some(1.0)));
    }

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
