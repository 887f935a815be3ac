//! Wait targets of threads that have not moved for a while.

use threadtoll_stacks::process::{Activity, InnerTids};

use super::ProcessAccount;
use crate::account::WaitTarget;
use crate::account::standing::Stand;
use crate::account::time::Time;
use crate::futex::FutexWait;
use crate::primitive::Role;

impl ProcessAccount {
    /// Returns the futex on which a thread sleeps, and the index of the wait target to which the
    /// futex belongs. If the thread is parked for a lock, the wait target is the lock.
    pub(crate) fn waited_for(&self, tid: u32, stand: &Stand) -> Option<(FutexWait, Option<u32>)> {
        let Activity::Asleep(call) = stand.activity else { return None };
        let wait = FutexWait::of(call.number, call.arguments)?;
        let place = self.by_word.get(&wait.address).copied();
        let parked = place.is_some_and(|place| {
            self.targets.get(place as usize).is_some_and(|it| it.identity.role() == Role::Parked)
        });
        if !parked {
            return Some((wait, place));
        }
        let last = self.last.get(&tid).filter(|last| last.at >= stand.first);
        let lock = last
            .and_then(|last| last.waiting_on)
            .filter(|&lock| self.targets.get(lock as usize).is_some_and(WaitTarget::is_lock));
        Some((wait, lock.map(|lock| self.of_writers(lock)).or(place)))
    }

    /// Index of a lock's wait target for writers. `place` is the lock's target for writers or for
    /// readers.
    fn of_writers(&self, place: u32) -> u32 {
        let of = self.readers.iter().find(|&(_, &readers)| readers == place);
        of.map_or(place, |(&writers, _)| writers)
    }

    pub(crate) fn of_readers(&self, place: u32) -> Option<u32> {
        self.readers.get(&place).copied()
    }

    pub(crate) fn stack_of(&self, tid: u32) -> Option<u32> {
        let stand = self.standing.get(tid)?;
        let last = || self.last.get(&tid)?.asleep_with.filter(|&(_, at)| at >= stand.first);
        stand.stack.or_else(|| last().map(|(stack, _)| stack))
    }

    pub(crate) fn does_io(&self, tid: u32, call: u32) -> bool {
        let Some(stack) = self.stack_of(tid) else { return false };
        self.asleep.at_stack(call, stack).any(|time| matches!(time, Time::Io(_)))
    }

    /// Translates a TID in the process's memory to our own PID namespace.
    pub(crate) fn named(&self, tid: u32) -> Option<u32> {
        thread_named(self.inner.as_ref(), tid)
    }
}

pub(super) fn thread_named(inner: Option<&InnerTids>, tid: u32) -> Option<u32> {
    match inner {
        Some(inner) => inner.get(&tid).copied(),
        None => Some(tid),
    }
}
