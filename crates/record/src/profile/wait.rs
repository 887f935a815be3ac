//! Waits for anything but a known lock, grouped by the function of the program that waits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{IoKind, Site};
use crate::{Fraction, Ns, Ratio, Text};

/// Threads that wait in the same function of the program, for the same kind of thing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// Kind of time.
    pub kind: WaitKind,
    /// Kind of input or output; null if the threads wait for something else.
    pub io: Option<IoKind>,
    /// Kind of thing that the threads wait for.
    pub what: WaitFor,
    /// System call in which the threads sleep; null for a futex, and for a page fault.
    pub syscall: Option<Text>,
    /// Name of the object, if all of the threads wait for the same one and it is a variable of the
    /// program; for a lock on a file, the file's path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// True if the threads belong to a runtime or library and wait for internal work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_runtime: bool,
    /// Function of the program that waits: the innermost function on the stack that belongs neither
    /// to a lock nor to a library that waits. Null if the stacks were not read.
    pub function: Option<Text>,
    /// Function on the stack between `function` and the wait, if its name indicates that it takes a
    /// lock.
    pub lock_function: Option<Text>,
    /// Number of waiting threads, averaged over time.
    pub queue_mean: Ratio,
    /// Mean length of a sleep, if the threads' context switches show it; null for other waits.
    pub sleep_ns: Option<Ns>,
    /// For an initialisation: the function that runs it, if a thread was seen in that function.
    pub run_by: Option<Text>,
    /// For a lock on a file: processes that held it while threads waited, those that held it most
    /// often first. Empty if the kernel does not name them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_by: Vec<HoldingProcess>,
    /// What one other thread at a time did while threads waited here; null if no such thread was
    /// found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meanwhile: Option<Meanwhile>,
    /// The code that waits, in descending order of samples.
    pub sites: Vec<Site>,
}

/// What one thread did while others waited. At four of five such instants or more, exactly one
/// thread was in its function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Meanwhile {
    /// The innermost such function.
    pub function: Text,
    /// Number of threads seen there at different times.
    pub threads: u32,
    /// True if these threads wait in the same place as the others at other times, as threads do
    /// that take turns with a lock.
    pub takes_turns: bool,
    /// What the thread did, the most frequent first.
    pub states: Vec<StateShare>,
}

/// A state in which a thread was at some instants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateShare {
    /// State of the thread.
    pub state: StateThen,
    /// System call in which it slept; null for a futex, and if it did not sleep.
    pub syscall: Option<Text>,
    /// Its stack, innermost function first; empty if there were several, or none was read.
    pub frames: Vec<Text>,
    /// Share of the instants.
    pub share: Fraction,
}

/// State of a thread.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum StateThen {
    /// On a CPU, or waiting for one if that is not known.
    Running,
    /// Waiting for a CPU.
    Runnable,
    /// Waiting for a lock.
    Lock,
    /// Asleep.
    Asleep,
}

/// A process that held a lock on a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HoldingProcess {
    /// The process that took the lock, or that has it through an open file that it inherited.
    pub pid: u32,
    /// Its name; empty if it had ended before that could be read.
    pub name: Text,
    /// Share of the readings of the kernel's list of locks that showed the profiled process
    /// waiting, in which this process held the lock. Readers can hold one lock at the same time.
    pub share: Fraction,
    /// Share of these readings in which it held the lock while its main thread waited for
    /// connections or events.
    #[serde(default)]
    pub waiting_for_work: Fraction,
}

/// Kind of time that a thread spends waiting.
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

/// Kind of thing that threads wait for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum WaitFor {
    /// A condition variable.
    ConditionVariable,
    /// A semaphore.
    Semaphore,
    /// A barrier.
    Barrier,
    /// The end of a thread.
    Join,
    /// An initialisation that runs once.
    Once,
    /// Another thread that unparks this one.
    Parker,
    /// A futex word whose purpose is unknown.
    Word,
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
