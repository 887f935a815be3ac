use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{IoKind, Site, SysvSemaphore};
use crate::{Fraction, Ns, Ratio, Text};

/// Threads that wait in one function of the program for one kind of object, except for known locks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// Broad kind of the wait.
    pub kind: WaitKind,
    /// Kind of input or output; null for other waits.
    pub io: Option<IoKind>,
    /// Kind of object that the threads wait for.
    pub what: WaitFor,
    /// System call in which the threads sleep; null for a futex or a page fault.
    pub syscall: Option<Text>,
    /// Name of the object, if all threads wait for one variable of the program. For a lock on a
    /// file, the file's path; for a System V semaphore, its number and those of its set; for a lock
    /// of a runtime or library, its usual name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// True if the threads belong to a runtime or library and wait for its internal work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_runtime: bool,
    /// Function of the program that waits: the innermost one on the stack that belongs neither to a
    /// lock nor to a library that waits. Null if the stacks were not read.
    pub function: Option<Text>,
    /// Function on the stack between `function` and the wait whose name suggests that it takes a
    /// lock; null if there is none.
    pub lock_function: Option<Text>,
    /// Number of waiting threads, averaged over time.
    pub queue_mean: Ratio,
    /// Mean length of a sleep, in nanoseconds; null unless the threads' context switches show it.
    pub sleep_ns: Option<Ns>,
    /// Function that runs the awaited initialisation, if a thread was seen in that function.
    pub run_by: Option<Text>,
    /// For a lock on a file, and for a System V semaphore that is used as a lock: processes that
    /// held the lock while threads waited, the most frequent first. Empty if the holders are not
    /// known. Those of a semaphore are inferred: they were the last to change it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_by: Vec<HoldingProcess>,
    /// The System V semaphore, if all threads wait for one or for one set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semaphore: Option<SysvSemaphore>,
    /// Activity of the one other thread that was usually in a certain function while threads waited
    /// here. Null if there is no such function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meanwhile: Option<Meanwhile>,
    /// The code that waits, in descending order of samples.
    pub sites: Vec<Site>,
}

/// Activity of one thread at a time while others waited. In at least four of five samples with
/// waiting threads, exactly one thread was in `function`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Meanwhile {
    /// Innermost function that usually had exactly one thread in it while others waited.
    pub function: Text,
    /// Number of different threads seen in `function`.
    pub threads: u32,
    /// True if these threads wait in the same place as the others at other times, like threads that
    /// take turns with a lock.
    pub takes_turns: bool,
    /// True if the waits ended as waits for a lock do: one at a time, each after a thread had run
    /// that waits there at other times, and after no other thread.
    pub is_like_a_lock: bool,
    /// States of the thread in `function`, the most frequent first.
    pub states: Vec<StateShare>,
}

/// A state of a thread, and its share of the samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateShare {
    /// State of the thread.
    pub state: StateThen,
    /// System call in which the thread slept; null for a futex, and if the thread did not sleep.
    pub syscall: Option<Text>,
    /// Stack of the thread, innermost function first; empty if there were several stacks, or none.
    pub frames: Vec<Text>,
    /// Share of the samples that show this state.
    pub share: Fraction,
}

/// State of a thread.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum StateThen {
    /// On a CPU, or waiting for one if the samples do not distinguish the two.
    Running,
    /// Waiting for a CPU.
    Runnable,
    /// Waiting for a lock.
    Lock,
    /// Asleep.
    Asleep,
}

/// A process that held a lock on a file, or a System V semaphore that is used as a lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HoldingProcess {
    /// PID of the process that took the lock, or that inherited the open file with the lock.
    pub pid: u32,
    /// Name of the process; empty if the process ended before its name was read.
    pub name: Text,
    /// Share of the samples in which this process held the lock. A sample is a reading of the
    /// kernel's list of locks that shows the profiled process waiting, or of a semaphore with
    /// waiters. Several readers can hold one lock.
    pub share: Fraction,
    /// Share of the samples in which this process held the lock while its main thread waited for
    /// connections or events.
    #[serde(default)]
    pub waiting_for_work: Fraction,
}

/// Broad kind of a wait.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum WaitKind {
    /// Waiting for other threads or processes, for an unknown reason.
    Thread,
    /// Waiting for work.
    Idle,
    /// Waiting for input or output.
    Io,
    /// Sleeping for a set time.
    Sleep,
    /// In a system call whose purpose is unknown.
    Unknown,
}

/// Kind of object that threads wait for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum WaitFor {
    /// A condition variable.
    ConditionVariable,
    /// A semaphore.
    Semaphore,
    /// A barrier, or a System V semaphore that is to become zero.
    Barrier,
    /// The end of a thread.
    Join,
    /// An initialisation that runs once.
    Once,
    /// A call by another thread that unparks this one.
    Parker,
    /// A futex word whose purpose is unknown.
    Word,
    /// A lock of a runtime or library, with the lock's name.
    LibraryLock,
    /// A lock on a file.
    FileLock,
    /// A System V semaphore.
    SysvSemaphore,
    /// A message from another thread or process.
    Message,
    /// A signal.
    Signal,
    /// File descriptors.
    Descriptor,
    /// An unnamed pipe with both ends in the process.
    Pipe,
    /// Memory to be mapped or filled.
    Memory,
    /// Anything else.
    Other,
}

/// A runtime that parks threads without showing the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Runtime {
    /// The Go runtime.
    Go,
    /// A Java virtual machine.
    Java,
}
