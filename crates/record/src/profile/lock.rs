//! A lock as a profile saw it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Address, Change, Interval, NameFrom, Site};
use crate::{Count, Fraction, Histogram, Ns, Ratio, Text};

/// A lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lock {
    /// Its number in the process.
    pub id: u32,
    /// Its kind.
    pub kind: LockKind,
    /// Its name.
    pub name: Text,
    /// Origin of the name.
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
    /// Hold times.
    pub hold: Option<Durations>,
    /// Waiting times.
    pub wait: Option<Durations>,
    /// Number of threads that use the lock: those seen holding it or waiting for it.
    pub threads: u32,
    /// Bounds on the number of threads that use the lock: the number of threads seen using it, and
    /// the number of all threads that ever lived.
    pub threads_interval: Option<Interval<u32>>,
    /// Fraction of the time for which the lock was held; for `rwlock-read`, held by a writer,
    /// because readers do not wait for each other.
    pub held_share: Option<Fraction>,
    /// Its 95% interval.
    pub held_share_interval95: Option<Interval<Fraction>>,
    /// Number of waiting threads, averaged over time, without the holder.
    pub queue_mean: Option<Ratio>,
    /// Its 95% interval.
    pub queue_mean_interval95: Option<Interval<Ratio>>,
    /// True if the holds are too short for the sampler, so that the mean queue is a lower bound.
    pub queue_is_lower_bound: bool,
    /// Maximum number of threads seen waiting at once. More may have waited between two samples, or
    /// among threads that a sample left out.
    pub queue_max: Option<u32>,
    /// True if samples saw only some of the threads, so that `queue_max` and `threads` are lower
    /// bounds.
    #[serde(default)]
    pub seen_in_part: bool,
    /// Increase of the program's throughput, relative to the current throughput, if no thread had
    /// to wait for this lock.
    pub gain: Option<Ratio>,
    /// Its 95% interval.
    pub gain_interval95: Option<Interval<Ratio>>,
    /// True if the lock was held in every sample, and the threads that wait for it were never seen
    /// to go on. It is then unknown what these threads would do with the lock, so the gain is
    /// unknown, too.
    #[serde(default)]
    pub never_taken: bool,
    /// True if the lock's holder waits for work, as in a pool whose idle threads take turns to hold
    /// the lock. The lock costs nothing unless the other threads have work to do, so its gain is
    /// unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_turns: bool,
    /// True if the lock is used like an event: its owner itself waits for it, or a thread that is
    /// not its owner releases it. The releasing thread sets the pace, so the gain is unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released_by_others: bool,
    /// Share of the threads that are not waiting: 1 − `queue_mean` / `threads`.
    pub efficiency: Option<Fraction>,
    /// Its 95% interval.
    pub efficiency_interval95: Option<Interval<Fraction>>,
    /// The verdict; if the intervals allow several verdicts, a combination of these.
    pub verdict: Option<Verdict>,
    /// PIDs of the processes that share the lock; empty unless there are several. The lock's
    /// figures then cover all of them.
    #[serde(default)]
    pub shared_by: Vec<u32>,
    /// Among the samples in which a thread waited, the fraction in which the holder is unknown.
    pub holder_not_seen_share: Option<Fraction>,
    /// Its 95% interval.
    #[serde(default)]
    pub holder_not_seen_interval95: Option<Interval<Fraction>>,
    /// Number of samples in which a thread waited; the shares in `causes` are fractions of this
    /// number. Null in older files.
    #[serde(default)]
    pub waiting_samples: Option<Count>,
    /// Among the samples in which a thread waited, the fraction in which the holder released the
    /// lock before the holder's state was read. This happens with short holds, if context switches
    /// were not recorded.
    #[serde(default)]
    pub holder_let_go_share: Option<Fraction>,
    /// The holders while a thread waited, the most frequent first, each with its share of the
    /// samples in which a thread waited.
    pub holders: Vec<ThreadShare>,
    /// The waiters, the most frequent first.
    pub waiters: Vec<ThreadShare>,
    /// Other locks for which the holder waited while a thread waited for this one.
    pub waits_for: Vec<ChainLink>,
    /// Causes of the waiting, the most important first.
    pub causes: Vec<Cause>,
    /// Times from a release until the next thread has the lock.
    pub handoff_ns: Option<HandOffs>,
    /// Predicted speed-ups by number of threads.
    pub predicted: Vec<Predicted>,
    /// Predicted effects of changes, the most beneficial first.
    pub what_if: Vec<WhatIf>,
    /// The code that waits for the lock and the code that holds it, those with the most samples
    /// first.
    pub sites: Vec<Site>,
}

/// Kind of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LockKind {
    /// A mutex of the C library.
    Mutex,
    /// A readers-writer lock of the C library; these figures are those of its readers.
    RwlockRead,
    /// A readers-writer lock of the C library; these figures are those of its writers.
    RwlockWrite,
    /// A spinlock.
    Spinlock,
    /// A mutex of the Rust standard library.
    RustMutex,
    /// A readers-writer lock of the Rust standard library.
    RustRwlock,
    /// A futex that is used as a lock, of an unknown kind.
    Futex,
    /// A word of parking_lot or the JVM on which a single thread sleeps.
    Parker,
}

/// Minimum gain that is worth changing the program for.
const WORTHWHILE: f64 = 0.01;

impl Lock {
    /// Cost of the lock, for sorting: first the program's gain if no thread had to wait for the
    /// lock, then the mean queue. If the gain is unknown, a lock for which threads waited comes
    /// before those that cost nothing.
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
    /// Sum.
    pub total_ns: Option<Ns>,
    /// Mean.
    pub mean_ns: Option<Ns>,
    /// Median.
    pub p50_ns: Option<Ns>,
    /// 99th percentile.
    pub p99_ns: Option<Ns>,
    /// Maximum.
    pub max_ns: Option<Ns>,
    /// All of them.
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

/// A thread, and its share of the holding or waiting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadShare {
    /// The kernel's number of the thread.
    pub tid: u32,
    /// Name of the thread; empty if the thread had ended before its name was read.
    pub name: Text,
    /// Process of the thread, if that is not the process under which the lock is listed.
    #[serde(default)]
    pub pid: Option<u32>,
    /// True if it has ended.
    #[serde(default)]
    pub ended: bool,
    /// Its share.
    pub share: Fraction,
    /// Its 95% interval.
    #[serde(default)]
    pub interval95: Option<Interval<Fraction>>,
    /// True if the lock's word does not name its holder, so that the holder was inferred from its
    /// place in the code.
    pub inferred: bool,
}

/// Another lock for which the holder waited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChainLink {
    /// Number of the other lock.
    pub lock: u32,
    /// Among the samples in which a thread waited, the fraction in which the holder waited for the
    /// other lock.
    pub share: Fraction,
    /// Its 95% interval.
    #[serde(default)]
    pub interval95: Option<Interval<Fraction>>,
}

/// A cause of the waiting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// The cause.
    pub cause: CauseKind,
    /// Among the samples in which a thread waited, the fraction that shows this cause.
    pub share: Fraction,
    /// Its 95% interval.
    pub interval95: Option<Interval<Fraction>>,
    /// System call in which the holder slept; null for other causes.
    pub syscall: Option<Text>,
    /// Lock that the holder waited for, or object through which it waited for other threads, such
    /// as `condition variable reply_cv`; null for other causes.
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

/// Verdict on a lock; a combination of two or three verdicts if an interval spans a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// At most 5% of the threads wait, on average.
    Comfortable,
    /// More of them wait.
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
    /// Its 95% interval.
    pub interval95: Option<Interval<Ratio>>,
}

/// Predicted effect of a change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIf {
    /// The change.
    pub change: Change,
    /// Number of threads for which the effect is predicted. Each change has two entries if the
    /// effect depends on whether all threads use the lock, or only those that were seen using it.
    pub threads: u32,
    /// Throughput with the change, as a multiple of what one thread that never waits achieves
    /// without the change.
    pub speedup: Ratio,
    /// Its 95% interval.
    pub interval95: Option<Interval<Ratio>>,
    /// Throughput with the change, relative to the current throughput.
    pub gain: Option<Ratio>,
    /// Its 95% interval.
    pub gain_interval95: Option<Interval<Ratio>>,
}
