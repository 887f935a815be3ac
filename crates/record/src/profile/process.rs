use std::collections::{BTreeMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{IdleWait, Interval, IoKind, Lock, Runtime, Site, Stuck, Wait};
use crate::{Fraction, Seconds, Text};

/// A process, since its start or its last `exec`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// Process id (PID).
    pub pid: u32,
    /// Number of programs that the process has executed so far, including this one.
    pub image: u32,
    /// Command line of the process.
    pub command: Vec<Text>,
    /// PID of the process that started this one; null for the first process.
    pub parent: Option<u32>,
    /// Number of unprofiled child processes at the end of the profile.
    #[serde(default, skip_serializing_if = "are_none")]
    pub children: u32,
    /// Maximum number of threads seen at once.
    pub threads_max: u32,
    /// Way in which the process ended.
    pub ended: Ended,
    /// Signal that ended the process; null if none did.
    pub signal: Option<u8>,
    /// Time, in seconds, over which the means of the process's threads and locks are taken.
    #[serde(default)]
    pub seconds: Option<Seconds>,
    /// Share of each thread state in the time of the process's threads; null if the process ended
    /// before it was sampled.
    pub time: Option<ThreadTime>,
    /// The most serious standstill at the end of the observation; null if there was none.
    #[serde(default)]
    pub stuck: Option<Stuck>,
    /// Further standstills, the most serious first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_stuck: Vec<Stuck>,
    /// The locks, in descending order of [`gain`](Lock::gain). If there are very many, the cheapest
    /// ones are left out.
    pub locks: Vec<Lock>,
    /// Number of locks left out of `locks`.
    pub locks_left_out: u32,
    /// Waits on condition variables.
    pub condvars: Vec<IdleWait>,
    /// Waits on semaphores.
    pub semaphores: Vec<IdleWait>,
    /// Waits at barriers.
    pub barriers: Vec<IdleWait>,
    /// Waits for a thread to end.
    pub joins: Vec<IdleWait>,
    /// Waits for an initialisation that runs once.
    pub onces: Vec<IdleWait>,
    /// Stacks of threads that spun for a lock.
    #[serde(default)]
    pub spins: Vec<Site>,
    /// Stacks of threads that spun in the program's own code until another thread changed a word in
    /// memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spin_loops: Vec<Site>,
    /// Stacks of threads that ran in functions that take or release locks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locking: Vec<Site>,
    /// Waits of parked threads, each of which sleeps on a word of its own until another thread
    /// unparks it.
    pub parkers: Vec<IdleWait>,
    /// Waits on futex words whose purpose is unknown.
    pub unknown: Vec<IdleWait>,
    /// Waits for anything but a known lock, grouped by the waiting function of the program. Waits
    /// with the most threads come first.
    #[serde(default)]
    pub waits: Vec<Wait>,
    /// Runtime in the process that parks threads without showing the reason; null if there is none.
    #[serde(default)]
    pub runtime: Option<Runtime>,
}

/// Way in which a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The process exited.
    Exit,
    /// The process executed another program, which has an entry of its own.
    Exec,
    /// A signal ended the process.
    Signal,
    /// The process was still running at the end of the profile.
    Running,
}

fn are_none(children: &u32) -> bool {
    *children == 0
}

fn is_zero(share: &Fraction) -> bool {
    share.get() == 0.0
}

/// Share of each thread state in the time of all threads. The shares that are not part of another
/// share sum to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadTime {
    /// On a CPU or waiting for one: `running` and `runnable` together.
    pub on_cpu: Fraction,
    /// On a CPU; null without `perf_event`.
    pub running: Option<Fraction>,
    /// Part of `running`: in a function that spins until it has a lock.
    #[serde(default)]
    pub spinning: Fraction,
    /// Part of `running`: in functions that take or release locks, spinning included; 0 without
    /// `perf_event`. Inlined code and time in the kernel are not included.
    #[serde(default)]
    pub in_locking: Fraction,
    /// Part of `running`: in loops of the program's own code that spin until another thread changes
    /// a word in memory, for a lock or for anything else; 0 without `perf_event`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_spin_loops: Fraction,
    /// Part of `on_cpu`: of threads that leave their CPUs again and again although they could go
    /// on, as loops that call `sched_yield` do; an estimate from the kernel's counts of switches.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub yielding: Fraction,
    /// Waiting for a CPU; null without `perf_event`.
    pub runnable: Option<Fraction>,
    /// Waiting for a lock that another thread holds.
    pub lock_wait: Fraction,
    /// Waiting for other threads or processes for an unknown reason: on condition variables,
    /// semaphores, joins, barriers, initialisations and unrecognised words, or parked.
    #[serde(default)]
    pub thread_wait: Fraction,
    /// Waiting for work, as shown by a socket, a timer or a watched file.
    #[serde(default)]
    pub idle: Fraction,
    /// Waiting for input or output, by kind.
    pub io: BTreeMap<IoKind, Fraction>,
    /// Sleeping for a set time.
    pub sleep: Fraction,
    /// In other system calls, which [`Process::waits`] names, or in an unknown state.
    pub unknown: Fraction,
    /// 95% intervals of the shares.
    pub interval95: TimeIntervals,
}

/// 95% intervals of the shares in [`ThreadTime`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TimeIntervals {
    /// On a CPU or waiting for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_cpu: Option<Interval<Fraction>>,
    /// On a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<Interval<Fraction>>,
    /// In a function that spins until it has a lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spinning: Option<Interval<Fraction>>,
    /// Waiting for a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runnable: Option<Interval<Fraction>>,
    /// Waiting for a lock that another thread holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_wait: Option<Interval<Fraction>>,
    /// Waiting for other threads or processes for an unknown reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_wait: Option<Interval<Fraction>>,
    /// Waiting for work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Interval<Fraction>>,
    /// Waiting for input or output, by kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub io: BTreeMap<IoKind, Interval<Fraction>>,
    /// Sleeping for a set time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleep: Option<Interval<Fraction>>,
    /// In other system calls, or in an unknown state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Interval<Fraction>>,
}

impl ThreadTime {
    /// Share of the time spent waiting for input or output of any kind.
    pub fn io_total(&self) -> f64 {
        self.io.values().map(|share| share.get()).sum()
    }
}

impl Process {
    /// All standstills of the process's threads, the most serious first.
    pub fn stand_stills(&self) -> impl Iterator<Item = &Stuck> {
        self.stuck.iter().chain(&self.also_stuck)
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        let mut ids = HashSet::new();
        match self.locks.iter().find(|lock| !ids.insert(lock.id)) {
            Some(lock) => {
                Err(format!("process {} has two locks with number {}", self.pid, lock.id))
            }
            None => Ok(()),
        }
    }
}
