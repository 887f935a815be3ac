//! Facts about a sample that are the same for all processes, and the states of threads according to
//! records of context switches.

use threadtoll_stacks::process::Activity;

use crate::lookups::Lookups;
use crate::perf::{CpuState, Timeline};
use crate::sample::ThreadRead;
use crate::stacks::Stacks;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Last {
    pub(crate) at: u64,
    /// Index of a wait target.
    pub(crate) waiting_on: Option<u32>,
    /// Time at which the thread was last seen asleep on the target `waiting_on`.
    pub(crate) asleep_at: u64,
    /// Stack with which the thread was last seen asleep, and time of that sample.
    pub(crate) asleep_with: Option<(u32, u64)>,
}

/// State of a thread at the time at which a sample was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenDue {
    /// On a CPU, or ready to run.
    Awake,
    /// In a sleep that an earlier sample saw and that has ended since.
    AsBefore,
    /// In a sleep that no sample saw, or just woken from such a sleep.
    Unseen,
    /// In the state that the sample saw, as far as can be determined.
    AsNow,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances<'a> {
    pub(crate) sample: u64,
    pub(crate) second: u64,
    pub(crate) due: u64,
    /// Mean time between scheduled samples, in seconds.
    pub(crate) gap_s: f64,
    /// Number of threads that each picked thread stands for.
    pub(crate) scale: f64,
    pub(crate) late: bool,
    /// True if the queue is taken from a late sample, because no records of switches show the queue
    /// at the due time.
    pub(crate) queue_late: bool,
    pub(crate) timeline: Option<&'a Timeline>,
    pub(crate) stacks: &'a Stacks,
    pub(crate) running: &'a [RunningStack],
    pub(crate) throttled: bool,
    pub(crate) lookups: &'a dyn Lookups,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RunningStack {
    pub(crate) at: u64,
    pub(crate) tid: u32,
    pub(crate) stack: u32,
    /// Address of the lock for which the thread spins.
    pub(crate) spins_for: Option<u64>,
}

/// Time in nanoseconds after which a running thread may have moved to other code.
pub(crate) const NEAR_NS: u64 = 500_000;

/// If a thread loses its CPU without falling asleep, after running for at most this many
/// nanoseconds, it is taken to have yielded.
const YIELDS_WITHIN_NS: u64 = 100_000;

impl Circumstances<'_> {
    pub(crate) fn examined_all(&self) -> bool {
        self.scale <= 1.01
    }

    pub(crate) fn samples_per_ns(&self) -> f64 {
        1.0 / (self.gap_s * self.scale * 1e9)
    }

    /// State of a thread when it was read or, if the sampler took the thread's CPU, just before
    /// that.
    pub(crate) fn state(&self, tid: u32, at: u64) -> Option<CpuState> {
        let timeline = self.timeline?;
        let state = timeline.state(tid, at);
        let by_sampler = state == Some(CpuState::Preempted)
            && timeline.state(tid, self.due) == Some(CpuState::Running);
        if by_sampler { Some(CpuState::Running) } else { state }
    }

    pub(crate) fn still_since(&self, read: &ThreadRead, at: u64) -> Option<u64> {
        let asleep = read.activity != Activity::OnCpu;
        self.timeline?.still_since(read.tid, at, asleep)
    }

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

    /// State of a thread when the sample was due, from records of switches. A late sample's own
    /// view is biased, because the sampler gets a CPU just when a thread has fallen asleep or has
    /// woken another.
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

    /// Returns `true` if, when the sample was due, the thread waited for a CPU after a run so short
    /// that the thread probably yielded.
    pub(crate) fn has_yielded(&self, tid: u32) -> bool {
        let ran = self.timeline.and_then(|timeline| timeline.lost_cpu_after(tid, self.due));
        ran.is_some_and(|ran| ran <= YIELDS_WITHIN_NS)
    }

    pub(crate) fn stack_of_running(&self, tid: u32, since: u64, until: u64) -> Option<u32> {
        let after = self.running.partition_point(|sample| sample.at <= until);
        let within = self.running[..after].iter().rev().take_while(|sample| sample.at >= since);
        within.into_iter().find(|sample| sample.tid == tid).map(|sample| sample.stack)
    }

    /// Address of the lock for which a thread spins, according to the nearest sample of the thread
    /// from the same run on a CPU. If holds are short, the thread may have the lock by now.
    pub(crate) fn spins_for(&self, tid: u32, at: u64) -> Option<u64> {
        let nearest = self.nearest_running(tid, at)?;
        // By now, the sampler may have taken the thread's CPU.
        let [first, last] = [nearest.at.min(self.due), nearest.at.max(self.due)];
        let (state, since) = self.timeline?.state_since(tid, last)?;
        nearest.spins_for.filter(|_| state == CpuState::Running && since <= first)
    }

    fn nearest_running(&self, tid: u32, at: u64) -> Option<&RunningStack> {
        let from = self.running.partition_point(|sample| sample.at + NEAR_NS < at);
        let near = self.running[from..].iter().take_while(|sample| sample.at <= at + NEAR_NS);
        let of_thread = near.filter(|sample| sample.tid == tid);
        of_thread.min_by_key(|sample| sample.at.abs_diff(at))
    }

    /// Number of a thread's stack: the one in the sample or, for a running thread, the one read
    /// nearest in time.
    pub(crate) fn stack(&self, read: &ThreadRead, at: u64) -> Option<u32> {
        if read.stack_number.is_some() || read.activity != Activity::OnCpu {
            return read.stack_number;
        }
        self.nearest_running(read.tid, at).map(|sample| sample.stack)
    }
}
