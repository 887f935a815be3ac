//! Threads of a process in one sample: those that wait for a lock, and the activities of possible
//! holders.

use std::collections::{HashMap, HashSet};

use threadtoll_judge::cause::{Awaited, HolderState};
use threadtoll_stacks::process::Activity;

use super::SampledLock;
use crate::circumstances::{Circumstances, Last};
use crate::occupation::Occupation;
use crate::perf::CpuState;
use crate::primitive::{Kind, Role};
use crate::sample::ThreadRead;

pub(crate) struct SampledThreads<'a> {
    pub(crate) alive: &'a HashSet<u32>,
    pub(crate) read: &'a [ThreadRead],
    pub(crate) last: &'a HashMap<u32, Last>,
    /// Looks up the wait target of a futex word: its index and its kind.
    pub(crate) target_at: &'a dyn Fn(u64) -> Option<(u32, Kind)>,
    /// Returns `true` for a thread that all samples saw asleep in one place in the code. Used
    /// without records of context switches.
    pub(crate) rests: &'a dyn Fn(u32) -> bool,
    pub(crate) at: u64,
    pub(crate) seen: &'a Circumstances<'a>,
}

impl SampledThreads<'_> {
    pub(super) fn slept_at(&self, read: &ThreadRead) -> Option<u32> {
        let (stack, seen_at) = self.last.get(&read.tid)?.asleep_with?;
        (self.seen.still_since(read, self.at)? <= seen_at).then_some(stack)
    }

    /// Returns `true` if the thread waits for the lock, or was woken from that wait and has not run
    /// since.
    pub(super) fn waits(&self, lock: &SampledLock, read: &ThreadRead) -> bool {
        let last = self.last.get(&read.tid);
        let waits = |last: &&Last| last.waiting_on.is_some_and(|place| lock.is_at(place));
        let Some(last) = last.filter(waits) else { return false };
        match self.seen.is_woken(read, self.at) {
            true => {
                self.seen.still_since(read, self.at).is_some_and(|since| since <= last.asleep_at)
            }
            false => true,
        }
    }

    /// Returns `true` if the thread was last seen waiting for the lock, and had not run since at
    /// the time of this sample: it is being woken to take the lock.
    pub(super) fn was_given(&self, lock: &SampledLock, tid: u32) -> bool {
        let waited = self
            .last
            .get(&tid)
            .filter(|last| last.waiting_on.is_some_and(|place| lock.is_at(place)));
        let still_since = self.seen.timeline.and_then(|it| it.still_since(tid, self.at, false));
        waited.is_some_and(|last| still_since.is_some_and(|since| since <= last.asleep_at))
    }

    pub(super) fn handed_over(&self, lock: &SampledLock) -> HolderState {
        let next = |read: &ThreadRead| self.seen.is_woken(read, self.at) && self.waits(lock, read);
        match self.seen.throttled && self.read.iter().any(next) {
            true => HolderState::Throttled,
            false => HolderState::HandedOver,
        }
    }

    pub(super) fn waits_for_its_own(&self, lock: &SampledLock, read: &ThreadRead) -> bool {
        match Occupation::of(&read.activity) {
            // In a thread of another process, the address refers to other memory.
            Occupation::Futex(wait) if self.alive.contains(&read.tid) => {
                (self.target_at)(wait.address).is_some_and(|(place, _)| lock.is_at(place))
            }
            _ => false,
        }
    }

    pub(super) fn doing(&self, lock: &SampledLock, read: &ThreadRead) -> HolderState {
        match Occupation::of(&read.activity) {
            Occupation::Futex(_) if !self.alive.contains(&read.tid) => {
                HolderState::WaitsFor(Awaited::Unknown, None)
            }
            Occupation::Futex(wait) => match (self.target_at)(wait.address) {
                // The thread was given the lock while it slept.
                Some((place, _)) if lock.is_at(place) => HolderState::HandedOver,
                Some((place, kind)) if kind.role() == Role::Lock => HolderState::Waiting(place),
                Some((place, kind)) => HolderState::WaitsFor(awaited(kind), Some(place)),
                None => HolderState::WaitsFor(Awaited::Unknown, None),
            },
            Occupation::OnCpu => match self.seen.state(read.tid, self.at) {
                None => HolderState::OnCpu,
                Some(CpuState::Running) => HolderState::Running,
                Some(_) if self.seen.throttled => HolderState::Throttled,
                Some(_) if self.waits(lock, read) => HolderState::HandedOver,
                Some(_) => HolderState::Preempted,
            },
            _ => match read.activity {
                Activity::Asleep(call) => HolderState::Asleep(call.number),
                _ => HolderState::NotSeen,
            },
        }
    }
}

fn awaited(kind: Kind) -> Awaited {
    match kind {
        Kind::Condvar => Awaited::Condvar,
        Kind::Semaphore => Awaited::Semaphore,
        Kind::Barrier => Awaited::Barrier,
        Kind::Join => Awaited::Join,
        Kind::Once => Awaited::Once,
        _ => Awaited::Unknown,
    }
}
