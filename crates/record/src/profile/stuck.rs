//! Threads that cannot go on, and programs that have come to a standstill.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Count, Seconds, Text};

/// Threads that cannot go on. A lock at which threads are stuck has no causes, no gain and no
/// predicted effects of changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stuck {
    /// Its kind.
    pub kind: StuckKind,
    /// Lower bound of the time for which the threads have been stuck, in seconds.
    pub seconds: Option<Seconds>,
    /// Numbers of the listed locks that no thread can get.
    pub locks: Vec<u32>,
    /// The threads: for a cycle, in the order of the cycle; otherwise the holder and then those
    /// that wait. If there are very many, only the first ones.
    pub threads: Vec<StuckThread>,
    /// Number of further threads that cannot go on.
    pub more_threads: Count,
    /// A description in sentences.
    pub text: Text,
    /// Advice, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mend: Option<Text>,
}

/// A thread that cannot go on, or that prevents others from going on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StuckThread {
    /// The kernel's number of the thread.
    pub tid: u32,
    /// Its name.
    pub name: Text,
    /// Number of a lock that the thread holds.
    pub holds: Option<u32>,
    /// Number of the lock that the thread waits for.
    pub waits_for: Option<u32>,
    /// The kernel's number of the thread whose end this thread waits for.
    pub joins: Option<u32>,
    /// Its stack, innermost first.
    pub frames: Vec<Text>,
}

/// Kind of a standstill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StuckKind {
    /// The program is stopped by a signal or a debugger, or was stopped for a long time.
    Stopped,
    /// Threads wait in a cycle for each other's locks, or for each other to end.
    Deadlock,
    /// A thread waits for a lock that it holds itself.
    SelfDeadlock,
    /// Nothing was seen that could end the waiting.
    StandStill,
    /// A lock is free, but its waiters still sleep.
    LostWakeUp,
    /// The holder of a lock no longer exists.
    OwnerEnded,
    /// The holder of a lock is a thread of another process, or already held the lock when this
    /// process was forked.
    OwnerElsewhere,
    /// Threads wait in a cycle until their waits time out.
    Circle,
    /// A thread held a lock for as long as the lock was observed, and waits for something else.
    NeverReleased,
}

impl StuckKind {
    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            StuckKind::Stopped => "stopped",
            StuckKind::Deadlock => "deadlock",
            StuckKind::SelfDeadlock => "self-deadlock",
            StuckKind::StandStill => "stand-still",
            StuckKind::LostWakeUp => "lost-wake-up",
            StuckKind::OwnerEnded => "owner-ended",
            StuckKind::OwnerElsewhere => "owner-elsewhere",
            StuckKind::Circle => "circle",
            StuckKind::NeverReleased => "never-released",
        }
    }

    /// Returns `true` if threads wait for each other and nothing will end that.
    pub fn is_deadlock(self) -> bool {
        matches!(self, StuckKind::Deadlock | StuckKind::SelfDeadlock)
    }
}
