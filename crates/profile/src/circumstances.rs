//! A look, as far as it concerns every process, and what switches tell of threads at its time.

use threadtoll_stacks::process::Activity;

use crate::occupation::Descriptors;
use crate::perf::{CpuState, Timeline};
use crate::sample::ThreadRead;
use crate::stacks::Stacks;

/// Where a thread was seen last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Last {
    pub(crate) at: u64,
    /// The thing that it waited on.
    pub(crate) waiting_on: Option<u32>,
    /// When it was last seen asleep there.
    pub(crate) asleep_at: u64,
    /// The stack with which it was last seen asleep, and when.
    pub(crate) asleep_with: Option<(u32, u64)>,
}

/// A thread at the instant at which a look was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenDue {
    /// On a CPU, or ready for one.
    Awake,
    /// In the sleep in which it was seen before, and no longer in the same way.
    AsBefore,
    /// In a sleep in which it was not seen, or just woken from it.
    Unseen,
    /// As the look shows it, as far as one can tell.
    AsNow,
}

/// A look, as far as it concerns every process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances<'a> {
    pub(crate) look: u64,
    pub(crate) second: u64,
    /// When it was due.
    pub(crate) due: u64,
    /// Mean time between two due times.
    pub(crate) gap_s: f64,
    /// Threads that a picked one stands for.
    pub(crate) scale: f64,
    pub(crate) late: bool,
    /// Its queue is late, too: no switches tell it as it was when the look was due.
    pub(crate) queue_late: bool,
    pub(crate) timeline: Option<&'a Timeline>,
    pub(crate) stacks: &'a Stacks,
    /// Stacks of running threads, in the order of their times.
    pub(crate) running: &'a [RunningStack],
    /// The cgroup was throttled about then.
    pub(crate) throttled: bool,
    pub(crate) descriptors: &'a dyn Descriptors,
}

/// The stack of a thread while it ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunningStack {
    /// When it was taken.
    pub(crate) at: u64,
    /// The thread.
    pub(crate) tid: u32,
    /// The stack's number.
    pub(crate) stack: u32,
}

/// A running thread may be somewhere else after this time.
pub(crate) const NEAR_NS: u64 = 500_000;

/// A thread that loses its CPU within this time of getting it has yielded, or is disturbed.
const YIELDS_WITHIN_NS: u64 = 100_000;

impl Circumstances<'_> {
    /// Looks at a thread a nanosecond, on average.
    pub(crate) fn looks_per_ns(&self) -> f64 {
        1.0 / (self.gap_s * self.scale * 1e9)
    }

    /// The state of a thread at a look, as it would be without that look.
    pub(crate) fn state(&self, tid: u32, at: u64) -> Option<CpuState> {
        let timeline = self.timeline?;
        let state = timeline.state(tid, at);
        // The look itself may have taken the thread's CPU.
        let by_look = state == Some(CpuState::Preempted)
            && timeline.state(tid, self.due) == Some(CpuState::Running);
        if by_look { Some(CpuState::Running) } else { state }
    }

    /// Time since which a thread has not run.
    pub(crate) fn still_since(&self, read: &ThreadRead, at: u64) -> Option<u64> {
        let asleep = read.activity != Activity::OnCpu;
        self.timeline?.still_since(read.tid, at, asleep)
    }

    /// It has been woken, and has not run since.
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

    /// A late look comes when a thread has just gone to sleep or woken another, so that it sees
    /// other queues than those of random instants. Its switches tell what each thread did at the
    /// instant for which the look was meant.
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

    /// It gave up its CPU when the look was due, and was ready to run all the same.
    pub(crate) fn has_yielded(&self, tid: u32) -> bool {
        let ran = self.timeline.and_then(|timeline| timeline.lost_cpu_after(tid, self.due));
        ran.is_some_and(|ran| ran <= YIELDS_WITHIN_NS)
    }

    /// The number of the stack that a running thread had last between two times.
    pub(crate) fn stack_of_running(&self, tid: u32, since: u64, until: u64) -> Option<u32> {
        let after = self.running.partition_point(|sample| sample.at <= until);
        let within = self.running[..after].iter().rev().take_while(|sample| sample.at >= since);
        within.into_iter().find(|sample| sample.tid == tid).map(|sample| sample.stack)
    }

    /// The number of a thread's stack: as it was read, or as the nearest sample shows it.
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
