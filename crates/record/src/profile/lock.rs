use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Address, Change, Interval, NameFrom, Site};
use crate::{Count, Fraction, Histogram, Ns, Ratio, Text};

/// A lock, as the profile saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lock {
    /// Number of the lock in its process.
    pub id: u32,
    /// Kind of the lock.
    pub kind: LockKind,
    /// Name of the lock.
    pub name: Text,
    /// Origin of the lock's name.
    pub name_from: NameFrom,
    /// Address of the lock.
    pub address: Address,
    /// Number of locks that have been at this address so far, including this one.
    pub generation: u32,
    /// Stack of the first thread that was seen using the lock, innermost function first.
    pub first_seen: Vec<Text>,
    /// Number of acquisitions.
    pub acquisitions: Option<Count>,
    /// Number of acquisitions that had to wait.
    pub contended: Option<Count>,
    /// Hold times of the lock.
    pub hold: Option<Durations>,
    /// Waiting times at the lock.
    pub wait: Option<Durations>,
    /// Number of threads that use the lock: those that were seen holding it or waiting for it, and
    /// at least as many as its word showed at a time.
    pub threads: u32,
    /// Bounds on the number of threads that use the lock. The lower bound is the number of threads
    /// seen using it, the upper bound is the number of all threads that ever lived.
    pub threads_interval: Option<Interval<u32>>,
    /// Fraction of the time for which the lock was held. For `rwlock-read`, only a writer's holds
    /// count, because readers do not wait for each other.
    pub held_share: Option<Fraction>,
    /// 95% interval of `held_share`.
    pub held_share_interval95: Option<Interval<Fraction>>,
    /// Number of waiting threads, averaged over time; the holder does not count.
    pub queue_mean: Option<Ratio>,
    /// 95% interval of `queue_mean`.
    pub queue_mean_interval95: Option<Interval<Ratio>>,
    /// True if the holds are too short for the sampler, so that `queue_mean` is a lower bound.
    pub queue_is_lower_bound: bool,
    /// Maximum number of threads seen waiting at once. More threads may have waited between two
    /// samples, or may have been left out by a sample.
    pub queue_max: Option<u32>,
    /// True if samples saw only some of the threads, so that `queue_max` and `threads` are lower
    /// bounds.
    #[serde(default)]
    pub seen_in_part: bool,
    /// Relative increase of the program's throughput if no thread had to wait for this lock.
    pub gain: Option<Ratio>,
    /// 95% interval of `gain`.
    pub gain_interval95: Option<Interval<Ratio>>,
    /// True if the lock was held in every sample, and the threads waiting for it were never seen to
    /// go on. The gain is then unknown, because nothing is known about these threads' use of the
    /// lock.
    #[serde(default)]
    pub never_taken: bool,
    /// True if the lock's holder waits for work, as in a pool whose idle threads take turns to hold
    /// the lock. The gain is then unknown, because the lock costs nothing unless other threads have
    /// work to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_turns: bool,
    /// True if the lock is used like an event: its owner itself waits for it, or another thread
    /// releases it. The gain is then unknown, because the releasing thread sets the pace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released_by_others: bool,
    /// Share of the threads that are not waiting: 1 − `queue_mean` / `threads`.
    pub efficiency: Option<Fraction>,
    /// 95% interval of `efficiency`.
    pub efficiency_interval95: Option<Interval<Fraction>>,
    /// Verdict on the lock. If the intervals allow several verdicts, a combination of them.
    pub verdict: Option<Verdict>,
    /// PIDs of the processes that share the lock; empty if there is only one. The figures of a
    /// shared lock cover all of its processes.
    #[serde(default)]
    pub shared_by: Vec<u32>,
    /// Among samples with a waiting thread, the fraction in which the holder is unknown.
    pub holder_not_seen_share: Option<Fraction>,
    /// 95% interval of `holder_not_seen_share`.
    #[serde(default)]
    pub holder_not_seen_interval95: Option<Interval<Fraction>>,
    /// Number of samples in which a thread waited: the denominator of the shares in `causes`. Null
    /// in older files.
    #[serde(default)]
    pub waiting_samples: Option<Count>,
    /// Among samples with a waiting thread, the fraction in which the holder released the lock
    /// before the holder's state was read. This happens with short holds if context switches were
    /// not recorded.
    #[serde(default)]
    pub holder_let_go_share: Option<Fraction>,
    /// Threads that held the lock while another thread waited, the most frequent first. The shares
    /// are fractions of the samples with a waiting thread.
    pub holders: Vec<ThreadShare>,
    /// Threads that waited for the lock, the most frequent first.
    pub waiters: Vec<ThreadShare>,
    /// Other locks that the holder waited for while a thread waited for this lock.
    pub waits_for: Vec<ChainLink>,
    /// Causes of the waiting, the most important first.
    pub causes: Vec<Cause>,
    /// Times from a release until the next thread has the lock, in nanoseconds.
    pub handoff_ns: Option<HandOffs>,
    /// Predicted speed-ups by number of threads.
    pub predicted: Vec<Predicted>,
    /// Predicted effects of changes, the most beneficial first.
    pub what_if: Vec<WhatIf>,
    /// Code that waits for the lock or holds it, in descending order of samples.
    pub sites: Vec<Site>,
}

/// Kind of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LockKind {
    /// A mutex of the C library.
    Mutex,
    /// The readers' side of a readers-writer lock of the C library.
    RwlockRead,
    /// The writers' side of a readers-writer lock of the C library.
    RwlockWrite,
    /// A spinlock.
    Spinlock,
    /// A mutex of the Rust standard library.
    RustMutex,
    /// A readers-writer lock of the Rust standard library.
    RustRwlock,
    /// A futex used as a lock of an unknown kind.
    Futex,
    /// A word of parking_lot or the JVM on which a single thread sleeps.
    Parker,
}

/// Smallest gain that is worth changing the program for.
const WORTHWHILE: f64 = 0.01;

impl Lock {
    /// Cost of the lock, for sorting: the gain, and then the mean queue. An unknown gain counts as
    /// 1% if threads waited for the lock, and otherwise as less than zero.
    pub fn cost(&self) -> (f64, f64) {
        let queue_max = f64::from(self.queue_max.unwrap_or(0));
        let unknown = if queue_max > 0.0 { WORTHWHILE } else { -1.0 };
        let gain = self.gain.map_or(unknown, |gain| gain.get());
        (gain, self.queue_mean.map_or(queue_max, |queue| queue.get()))
    }
}

impl LockKind {
    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            LockKind::Mutex => "mutex",
            LockKind::RwlockRead => "rwlock-read",
            LockKind::RwlockWrite => "rwlock-write",
            LockKind::Spinlock => "spinlock",
            LockKind::RustMutex => "rust-mutex",
            LockKind::RustRwlock => "rust-rwlock",
            LockKind::Futex => "futex",
            LockKind::Parker => "parker",
        }
    }
}

/// A distribution of times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Durations {
    /// Sum of the times, in nanoseconds.
    pub total_ns: Option<Ns>,
    /// Mean time, in nanoseconds.
    pub mean_ns: Option<Ns>,
    /// Median time, in nanoseconds.
    pub p50_ns: Option<Ns>,
    /// 99th percentile of the times, in nanoseconds.
    pub p99_ns: Option<Ns>,
    /// Longest time, in nanoseconds.
    pub max_ns: Option<Ns>,
    /// Distribution of the times.
    pub histogram: Option<Histogram>,
}

/// Times of hand-offs, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HandOffs {
    /// Mean.
    pub mean: Option<Ns>,
    /// Median.
    pub p50: Option<Ns>,
    /// 99th percentile.
    pub p99: Option<Ns>,
    /// Maximum.
    pub max: Option<Ns>,
}

/// A thread's share in holding a lock, or in waiting for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadShare {
    /// Thread id (TID).
    pub tid: u32,
    /// Name of the thread; empty if the thread ended before its name was read.
    pub name: Text,
    /// PID of the thread's process, if that is not the process under which the lock is listed.
    #[serde(default)]
    pub pid: Option<u32>,
    /// True if the thread has ended.
    #[serde(default)]
    pub ended: bool,
    /// The thread's share in the holding or waiting.
    pub share: Fraction,
    /// 95% interval of `share`.
    #[serde(default)]
    pub interval95: Option<Interval<Fraction>>,
    /// True if the holder was inferred from its place in the code, because the lock's word does not
    /// name the holder.
    pub inferred: bool,
}

/// Another lock that the holder of a lock waited for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChainLink {
    /// Number of the other lock.
    pub lock: u32,
    /// Among samples with a waiting thread, the fraction in which the holder waited for the other
    /// lock.
    pub share: Fraction,
    /// 95% interval of `share`.
    #[serde(default)]
    pub interval95: Option<Interval<Fraction>>,
}

/// A cause of the waiting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// Kind of the cause.
    pub cause: CauseKind,
    /// Among samples with a waiting thread, the fraction that shows this cause.
    pub share: Fraction,
    /// 95% interval of `share`.
    pub interval95: Option<Interval<Fraction>>,
    /// System call in which the holder slept; null for other causes.
    pub syscall: Option<Text>,
    /// Lock that the holder waited for, or object through which the holder waited for other
    /// threads, such as `condition variable reply_cv`; null for other causes.
    #[serde(default)]
    pub awaited: Option<Text>,
    /// Advice, as a sentence.
    pub mend: Option<Text>,
}

/// Kind of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CauseKind {
    /// The holder slept in a system call.
    SleptHolding,
    /// The holder waited for another lock.
    WaitsForLock,
    /// The holder waited for other threads through an object that is not a lock.
    WaitsForThreads,
    /// The holder computed.
    Computing,
    /// The holder computed or had lost its CPU; it is unknown which.
    OnCpu,
    /// The holder had lost its CPU.
    Preempted,
    /// The holder's control group had used up its CPU quota.
    Throttled,
    /// Threads waited while the lock was free, or while its new owner was being woken.
    Convoy,
    /// Several threads were woken together and queued up for the lock.
    Herd,
    /// One thread took the lock again and again.
    Hog,
    /// Readers kept a writer waiting.
    StarvedWriter,
    /// Readers held the lock.
    HeldByReaders,
}

impl CauseKind {
    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            CauseKind::SleptHolding => "slept-holding",
            CauseKind::WaitsForLock => "waits-for-lock",
            CauseKind::WaitsForThreads => "waits-for-threads",
            CauseKind::Computing => "computing",
            CauseKind::OnCpu => "on-cpu",
            CauseKind::Preempted => "preempted",
            CauseKind::Throttled => "throttled",
            CauseKind::Convoy => "convoy",
            CauseKind::Herd => "herd",
            CauseKind::Hog => "hog",
            CauseKind::StarvedWriter => "starved-writer",
            CauseKind::HeldByReaders => "held-by-readers",
        }
    }
}

/// Verdict on a lock. If an interval spans a threshold, a combination of two or three verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// At most 5% of the threads wait, on average.
    Comfortable,
    /// Over 5% of the threads wait, on average.
    Crowded,
    /// The lock is held, or being handed over, for at least 90% of the time.
    Saturated,
    /// Undecided.
    ComfortableOrCrowded,
    /// Undecided.
    CrowdedOrSaturated,
    /// Undecided.
    ComfortableOrSaturated,
    /// Undecided.
    ComfortableOrCrowdedOrSaturated,
}

impl Verdict {
    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Comfortable => "comfortable",
            Verdict::Crowded => "crowded",
            Verdict::Saturated => "saturated",
            Verdict::ComfortableOrCrowded => "comfortable-or-crowded",
            Verdict::CrowdedOrSaturated => "crowded-or-saturated",
            Verdict::ComfortableOrSaturated => "comfortable-or-saturated",
            Verdict::ComfortableOrCrowdedOrSaturated => "comfortable-or-crowded-or-saturated",
        }
    }
}

/// Predicted speed-up for a number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Predicted {
    /// Number of threads.
    pub threads: u32,
    /// Throughput relative to one thread that never waits.
    pub speedup: Ratio,
    /// 95% interval of `speedup`.
    pub interval95: Option<Interval<Ratio>>,
}

/// Predicted effect of a change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIf {
    /// The change to the program.
    pub change: Change,
    /// Number of threads for which the effect is predicted. A change has two entries if its effect
    /// depends on whether all threads use the lock, or only those that were seen using it.
    pub threads: u32,
    /// Throughput with the change, as a multiple of the throughput of one thread that never waits,
    /// without the change.
    pub speedup: Ratio,
    /// 95% interval of `speedup`.
    pub interval95: Option<Interval<Ratio>>,
    /// Throughput with the change, relative to the current throughput.
    pub gain: Option<Ratio>,
    /// 95% interval of `gain`.
    pub gain_interval95: Option<Interval<Ratio>>,
}
