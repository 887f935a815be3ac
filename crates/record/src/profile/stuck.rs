use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Count, Seconds, Text};

/// Threads that cannot go on. A lock at which threads are stuck has no causes, no gain and no
/// predicted effects of changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stuck {
    /// Kind of the standstill.
    pub kind: StuckKind,
    /// Lower bound on the time for which the threads have been stuck, in seconds.
    pub seconds: Option<Seconds>,
    /// Numbers of the listed locks that no thread can acquire.
    pub locks: Vec<u32>,
    /// The stuck threads, in the order of their cycle or, without a cycle, the holder before the
    /// waiters. A long list is cut off.
    pub threads: Vec<StuckThread>,
    /// Number of stuck threads that are not in `threads`.
    pub more_threads: Count,
    /// Description of the standstill, in sentences.
    pub text: Text,
    /// Advice, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mend: Option<Text>,
}

/// A thread that cannot go on, or that prevents others from going on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StuckThread {
    /// Thread id (TID).
    pub tid: u32,
    /// Name of the thread.
    pub name: Text,
    /// Number of a lock that the thread holds, if any.
    pub holds: Option<u32>,
    /// Number of the lock that the thread waits for, if any.
    pub waits_for: Option<u32>,
    /// TID of the thread that this thread joins, if any.
    pub joins: Option<u32>,
    /// Stack of the thread, innermost function first.
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
    /// Threads wait, and nothing was seen that could end their waiting.
    StandStill,
    /// A lock is free, but its waiters still sleep.
    LostWakeUp,
    /// The holder of a lock no longer exists.
    OwnerEnded,
    /// The holder of a lock is a thread of another process, or already held the lock when this
    /// process was forked.
    OwnerElsewhere,
    /// Threads wait for each other in a cycle until their waits time out.
    Circle,
    /// A lock is not released for a long time. Its holder, if known, waits for something other than
    /// a lock.
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

    /// Returns `true` for a cycle of waits that nothing will end.
    pub fn is_deadlock(self) -> bool {
        matches!(self, StuckKind::Deadlock | StuckKind::SelfDeadlock)
    }
}
