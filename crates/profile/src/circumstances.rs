//! The part of a sample that is the same for all processes, and what the records of context
//! switches show about threads at the time of the sample.

use threadtoll_stacks::process::Activity;

use crate::lookups::Lookups;
use crate::perf::{CpuState, Timeline};
use crate::sample::ThreadRead;
use crate::stacks::Stacks;

/// What the last sample of a thread showed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Last {
    pub(crate) at: u64,
    /// Index of the wait target on which the thread waited.
    pub(crate) waiting_on: Option<u32>,
    /// When the thread was last seen asleep on that wait target.
    pub(crate) asleep_at: u64,
    /// The stack with which the thread was last seen asleep, and when.
    pub(crate) asleep_with: Option<(u32, u64)>,
}

/// State of a thread at the instant at which a sample was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenDue {
    /// On a CPU, or ready to run.
    Awake,
    /// In a sleep in which an earlier sample saw the thread; it has left that sleep by now.
    AsBefore,
    /// In a sleep that no sample saw, or just woken from such a sleep.
    Unseen,
    /// In the state in which the sample saw it, as far as can be determined.
    AsNow,
}

/// The part of a sample that is the same for all processes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances<'a> {
    pub(crate) sample: u64,
    pub(crate) second: u64,
    /// When the sample was due.
    pub(crate) due: u64,
    /// Mean time between two due times, in seconds.
    pub(crate) gap_s: f64,
    /// Number of threads that each picked thread stands for.
    pub(crate) scale: f64,
    pub(crate) late: bool,
    /// True if a lock's queue is taken from the sample although it is late, because no records of
    /// switches show what the queue was when the sample was due.
    pub(crate) queue_late: bool,
    pub(crate) timeline: Option<&'a Timeline>,
    pub(crate) stacks: &'a Stacks,
    /// Stacks of running threads, in chronological order.
    pub(crate) running: &'a [RunningStack],
    /// True if the control group was throttled at about the time of the sample.
    pub(crate) throttled: bool,
    pub(crate) lookups: &'a dyn Lookups,
}

/// The stack of a thread while it ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunningStack {
    /// When the sample was taken.
    pub(crate) at: u64,
    /// The thread.
    pub(crate) tid: u32,
    /// Number of the stack.
    pub(crate) stack: u32,
}

/// Time after which a running thread may have moved to other code.
pub(crate) const NEAR_NS: u64 = 500_000;

/// A thread that loses its CPU, without going to sleep, after running for at most this long has
/// yielded or was disturbed.
const YIELDS_WITHIN_NS: u64 = 100_000;

impl Circumstances<'_> {
    /// Returns `true` if the sample examined all threads, or so nearly all that each stands for
    /// itself.
    pub(crate) fn examined_all(&self) -> bool {
        self.scale <= 1.01
    }

    /// Mean number of samples of a given thread per nanosecond.
    pub(crate) fn samples_per_ns(&self) -> f64 {
        1.0 / (self.gap_s * self.scale * 1e9)
    }

    /// State of a thread in a sample; if the sampler took the thread's CPU, the state before that.
    pub(crate) fn state(&self, tid: u32, at: u64) -> Option<CpuState> {
        let timeline = self.timeline?;
        let state = timeline.state(tid, at);
        // The sampler itself may have taken the thread's CPU.
        let by_sampler = state == Some(CpuState::Preempted)
            && timeline.state(tid, self.due) == Some(CpuState::Running);
        if by_sampler { Some(CpuState::Running) } else { state }
    }

    /// Time since which a thread has not run, if known.
    pub(crate) fn still_since(&self, read: &ThreadRead, at: u64) -> Option<u64> {
        let asleep = read.activity != Activity::OnCpu;
        self.timeline?.still_since(read.tid, at, asleep)
    }

    /// Returns `true` if the thread has been woken and has not run since.
    pub(crate) fn is_woken(&self, read: &ThreadRead, at: u64) -> bool {
        let changed = self.timeline.and_then(|timeline| timeline.state_since(read.tid, at));
        let woken = |(state, since)| match state {
            CpuState::SwitchedOut => true,
            CpuState::Preempted => self.still_since(read, at).is_some_and(|slept| slept < since),
            CpuState::Running => false,
        };
        read.activity == Activity::OnCpu
            && self.state(read.tid, at) != Some(CpuState::Running)
            && changed.is_some_and(woken)
    }

    /// State of a thread at the instant at which the sample was due. If a sample is late, its own
    /// view is biased, because the sampler gets a CPU just when a thread has gone to sleep or woken
    /// another. Records of switches show what each thread did when the sample was due.
    pub(crate) fn when_due(&self, read: &ThreadRead, at: u64, last: Last) -> WhenDue {
        let Some(timeline) = self.timeline else { return WhenDue::AsNow };
        match timeline.state_since(read.tid, self.due) {
            None => WhenDue::AsNow,
            Some((CpuState::Running | CpuState::Preempted, _)) => WhenDue::Awake,
            Some((CpuState::SwitchedOut, since)) => {
                let known = since <= last.at && last.at <= self.due;
                let now = timeline.state_since(read.tid, at);
                let woken = read.activity == Activity::OnCpu;
                let ran = now.is_some_and(|(_, since)| since > self.due);
                match known {
                    true if woken || ran => WhenDue::AsBefore,
                    false if woken => WhenDue::Unseen,
                    _ => WhenDue::AsNow,
                }
            }
        }
    }

    /// Returns `true` if, when the sample was due, the thread waited for a CPU after running so
    /// briefly that it probably gave up its CPU itself.
    pub(crate) fn has_yielded(&self, tid: u32) -> bool {
        let ran = self.timeline.and_then(|timeline| timeline.lost_cpu_after(tid, self.due));
        ran.is_some_and(|ran| ran <= YIELDS_WITHIN_NS)
    }

    /// Number of the last stack that a running thread had between two times.
    pub(crate) fn stack_of_running(&self, tid: u32, since: u64, until: u64) -> Option<u32> {
        let after = self.running.partition_point(|sample| sample.at <= until);
        let within = self.running[..after].iter().rev().take_while(|sample| sample.at >= since);
        within.into_iter().find(|sample| sample.tid == tid).map(|sample| sample.stack)
    }

    /// Number of a thread's stack: the one that the sample read or, for a running thread, the one
    /// read nearest in time.
    pub(crate) fn stack(&self, read: &ThreadRead, at: u64) -> Option<u32> {
        if read.stack_number.is_some() || read.activity != Activity::OnCpu {
            return read.stack_number;
        }
        let from = self.running.partition_point(|sample| sample.at + NEAR_NS < at);
        let near = self.running[from..].iter().take_while(|sample| sample.at <= at + NEAR_NS);
        let of_thread = near.filter(|sample| sample.tid == read.tid);
        of_thread.min_by_key(|sample| sample.at.abs_diff(at)).map(|sample| sample.stack)
    }
}
