//! Threads that cannot go on, and programs that stand still.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Count, Seconds, Text};

/// Threads that cannot go on. Locks of which threads are stuck have no causes, no gain and no
/// effects of changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stuck {
    /// Its kind.
    pub kind: StuckKind,
    /// Time for which it has lasted at least.
    pub seconds: Option<Seconds>,
    /// Numbers of the locks that nobody gets, as far as they are listed.
    pub locks: Vec<u32>,
    /// The threads: those of a circle in its order; otherwise those that wait, the holder first. Of
    /// very many, the first.
    pub threads: Vec<StuckThread>,
    /// Number of further threads that cannot go on.
    pub more_threads: Count,
    /// All of it in sentences.
    pub text: Text,
    /// Advice, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mend: Option<Text>,
}

/// A thread that cannot go on, or one that keeps others from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StuckThread {
    /// The kernel's number of the thread.
    pub tid: u32,
    /// Its name.
    pub name: Text,
    /// Number of a lock that it holds.
    pub holds: Option<u32>,
    /// Number of the lock that it waits for.
    pub waits_for: Option<u32>,
    /// The thread whose end it waits for.
    pub joins: Option<u32>,
    /// Its stack, innermost first.
    pub frames: Vec<Text>,
}

/// Kind of a standstill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StuckKind {
    /// The program is, or was for long, stopped by a signal or a debugger.
    Stopped,
    /// Threads wait for locks, or for the end of each other, in a circle.
    Deadlock,
    /// A thread waits for a lock that it holds itself.
    SelfDeadlock,
    /// Nothing that could end the waiting was seen.
    StandStill,
    /// A lock is free, and those that wait for it sleep on.
    LostWakeUp,
    /// The holder of a lock does not exist any more.
    OwnerEnded,
    /// The holder of a lock is a thread of another process, or was one when this one was forked.
    OwnerElsewhere,
    /// Threads wait in a circle until their waits time out.
    Circle,
    /// A lock was not released while it was watched, by a thread that waits for something else.
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

    /// Threads wait for each other, and nothing ends it.
    pub fn is_deadlock(self) -> bool {
        matches!(self, StuckKind::Deadlock | StuckKind::SelfDeadlock)
    }
}
