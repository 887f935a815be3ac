//! Threads of a process at one look: which wait for a lock, and what each does that may hold it.

use std::collections::{HashMap, HashSet};

use threadtoll_judge::cause::Holder;
use threadtoll_stacks::process::Activity;

use crate::circumstances::{Circumstances, Last};
use crate::occupation::Occupation;
use crate::perf::CpuState;
use crate::sample::ThreadRead;

/// The threads of a process at one look.
pub(crate) struct Threads<'a> {
    /// All that are alive.
    pub(crate) alive: &'a HashSet<u32>,
    /// Those that were looked at.
    pub(crate) read: &'a [ThreadRead],
    /// Where each was seen before.
    pub(crate) last: &'a HashMap<u32, Last>,
    /// Place of the lock that a futex word belongs to; `None` if it belongs to no lock.
    pub(crate) lock_at: &'a dyn Fn(u64) -> Option<u32>,
    /// When they were looked at.
    pub(crate) at: u64,
    pub(crate) seen: &'a Circumstances<'a>,
}

impl Threads<'_> {
    /// The stack with which a thread was seen in the sleep from which it has not run since.
    pub(super) fn slept_at(&self, read: &ThreadRead) -> Option<u32> {
        let (stack, seen_at) = self.last.get(&read.tid)?.asleep_with?;
        (self.seen.still_since(read, self.at)? <= seen_at).then_some(stack)
    }

    /// It waits for a lock, or has been woken from that wait and has not run since.
    pub(super) fn waits(&self, lock: u32, read: &ThreadRead) -> bool {
        let last = self.last.get(&read.tid);
        let Some(last) = last.filter(|last| last.waiting_on == Some(lock)) else { return false };
        match self.seen.is_woken(read, self.at) {
            true => {
                self.seen.still_since(read, self.at).is_some_and(|since| since <= last.asleep_at)
            }
            false => true,
        }
    }

    /// What keeps threads waiting for a lock that nobody holds.
    pub(super) fn handed_over(&self, lock: u32) -> Holder {
        let next = |read: &ThreadRead| self.seen.is_woken(read, self.at) && self.waits(lock, read);
        match self.seen.throttled && self.read.iter().any(next) {
            true => Holder::Throttled,
            false => Holder::HandedOver,
        }
    }

    /// What a thread does that holds a lock.
    pub(super) fn doing(&self, lock: u32, read: &ThreadRead) -> Holder {
        match Occupation::of(&read.activity) {
            Occupation::Futex(wait) => match (self.lock_at)(wait.address) {
                // It has been given the lock in its sleep.
                Some(waits) if waits == lock => Holder::HandedOver,
                Some(waits) => Holder::Waiting(waits),
                None => Holder::Asleep(libc::SYS_futex as u32),
            },
            Occupation::OnCpu => match self.seen.state(read.tid, self.at) {
                None => Holder::OnCpu,
                Some(CpuState::Running) => Holder::Running,
                Some(_) if self.seen.throttled => Holder::Throttled,
                Some(_) if self.waits(lock, read) => Holder::HandedOver,
                Some(_) => Holder::Preempted,
            },
            _ => match read.activity {
                Activity::Asleep(call) => Holder::Asleep(call.number),
                _ => Holder::NotSeen,
            },
        }
    }
}
