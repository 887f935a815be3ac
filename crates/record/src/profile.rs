//! A profile: how the threads of a running program spent their time, and the locks for which they
//! waited.
//!
//! [`Profile`] is a line of a profile's file, and the object that `profile --json` prints. It
//! describes everything seen so far, so a reader needs only the last complete line of a file.
//! Figures that the method cannot determine are `None`.

mod address;
mod change;
mod interval;
mod io_kind;
mod lock;
mod name_from;
mod process;
mod semaphore;
mod site;
mod stuck;
mod trace;
mod wait;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Count, Fraction, Machine, Ns, PerSecond, Ratio, Seconds, Text};

pub use address::Address;
pub use change::Change;
pub use interval::Interval;
pub use io_kind::IoKind;
pub use lock::{
    Cause, CauseKind, ChainLink, Durations, HandOffs, Lock, LockKind, Predicted, ThreadShare,
    Verdict, WhatIf,
};
pub use name_from::NameFrom;
pub use process::{Ended, Process, ThreadTime, TimeIntervals};
pub use semaphore::{LastChange, SemaphoreUse, SysvSemaphore};
pub use site::{IdleWait, Role, Site};
pub use stuck::{Stuck, StuckKind, StuckThread};
pub use trace::{HoldingThread, LockHolders, ThreadState, Trace, TracedThread};
pub use wait::{
    HoldingProcess, Meanwhile, Runtime, StateShare, StateThen, Wait, WaitFor, WaitKind,
};

/// Everything seen so far of a running program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// Id of the run.
    pub run: Text,
    /// Time at which the profile was written, RFC 3339 UTC.
    pub at: Text,
    /// True in the last line of a run, unless the run was killed.
    pub finished: bool,
    /// The command line of the program.
    pub program: Vec<Text>,
    /// Exit code of a launched program (128+S if signal S ended the program). Null while the
    /// program runs, and for a program that the profiler did not launch.
    pub exit_code: Option<u8>,
    /// Length of the observed time, in seconds.
    pub seconds: Seconds,
    /// First and last observed instant, in nanoseconds on `CLOCK_MONOTONIC`.
    pub interval_ns: Option<Interval<Ns>>,
    /// The machine. Absent in a file, whose first line is the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Box<Machine>>,
    /// States of the threads over time; a file has a separate line for them.
    #[serde(skip)]
    pub trace: Option<Box<Trace>>,
    /// Method with which the figures were obtained.
    pub method: Method,
    /// Number of samples.
    pub samples: Count,
    /// Achieved number of samples per second.
    pub rate_per_s: Option<PerSecond>,
    /// Lateness of the samples.
    pub late: Option<Late>,
    /// Limit on the profiler's own CPU time, as a fraction of one CPU.
    pub budget: Ratio,
    /// True if the kernel granted `perf_event`. Without `perf_event`, running, runnable and
    /// preempted threads cannot be told apart, and running holders have no stacks.
    pub perf_event: bool,
    /// Fraction of the stacks that are incomplete: unwinding stopped before the function in which
    /// the thread started.
    pub stacks_cut_share: Option<Fraction>,
    /// Share of each thread state in the time of all threads; null if no thread was sampled.
    #[serde(default)]
    pub time: Option<ThreadTime>,
    /// The observed processes. A process that executed another program has one entry per program.
    pub processes: Vec<Process>,
    /// PIDs of the processes that a launched program left running when it ended.
    #[serde(default)]
    pub background: Vec<u32>,
    /// Sentences, each about one thing that this profile could not see, and how to make it visible.
    pub unseen: Vec<Text>,
    /// Cost of profiling to the program and to the machine.
    pub perturbation: Perturbation,
}

/// Method with which the figures were obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Samples at random times, taken from outside the program.
    Sampled,
    /// Every acquisition, recorded by code inside the program.
    Exact,
}

/// Lateness of samples. A sampler that has to wait for a CPU gets one just when another thread
/// gives up its CPU, so the time of a late sample may depend on the program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Late {
    /// 99th percentile of the time by which a sample came later than intended.
    pub p99_ns: Ns,
    /// Fraction of the samples that came too late for their times to be independent of the program.
    pub share: Fraction,
}

/// Cost of profiling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Perturbation {
    /// Time added to each acquisition, in nanoseconds; null for a profiler outside the program.
    pub per_acquisition_ns: Option<Ns>,
    /// CPU time of the profiler, as a fraction of one CPU.
    pub share_of_cpu: Option<Ratio>,
    /// CPU time of the profiler so far.
    #[serde(default)]
    pub cpu_seconds: Option<Seconds>,
}

impl Profile {
    pub(crate) fn validate(&self) -> Result<(), String> {
        self.processes.iter().try_for_each(Process::validate)
    }
}
