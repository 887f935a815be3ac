//! Waits that are not for a lock that was seen, by the function of the program that waits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{IoKind, Site};
use crate::{Ns, Ratio, Text};

/// Threads that wait in the same way, in the same function of the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// Kind of time.
    pub kind: WaitKind,
    /// Kind of input or output; null for other kinds of time.
    pub io: Option<IoKind>,
    /// Thing that they wait for.
    pub what: WaitFor,
    /// System call in which they sleep; null for a futex, and for a page fault.
    pub syscall: Option<Text>,
    /// Name of the thing, if they all wait for one and it is a variable of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// They are threads of a runtime or library that wait for work of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_runtime: bool,
    /// Function of the program that waits: the innermost one that belongs to no lock and to no
    /// library for waiting. Null if its stacks were not read.
    pub function: Option<Text>,
    /// Function between that one and the wait whose name says that it takes a lock.
    pub lock_function: Option<Text>,
    /// Number of waiting threads, averaged over time.
    pub queue_mean: Ratio,
    /// Mean length of a sleep, where switches of the threads tell it; null for other waits.
    pub sleep_ns: Option<Ns>,
    /// For an initialisation: the function that runs it, if a thread was seen there.
    pub run_by: Option<Text>,
    /// The code that waits, the most samples first.
    pub sites: Vec<Site>,
}

/// Kind of time that a thread spends waiting.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum WaitKind {
    /// For other threads or processes, for a reason that is not known.
    Thread,
    /// For work.
    Idle,
    /// For input or output.
    Io,
    /// For time to pass.
    Sleep,
    /// In a system call that does not tell.
    Unknown,
}

/// Thing that threads wait for.
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
    /// A word whose purpose could not be told.
    Word,
    /// A lock on a file.
    FileLock,
    /// A semaphore of System V.
    SysvSemaphore,
    /// A message of another thread or process.
    Message,
    /// A signal.
    Signal,
    /// Descriptors.
    Descriptor,
    /// A pipe without a name, both ends of which the process has.
    Pipe,
    /// Memory to be mapped or filled.
    Memory,
    /// Anything else.
    Other,
}

/// A runtime that parks threads without a sign of the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Runtime {
    /// Go's.
    Go,
    /// A virtual machine of Java.
    Java,
}
