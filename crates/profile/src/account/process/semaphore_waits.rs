//! System V semaphores for which threads of a process wait, by stack.
//!
//! A sample shows only the set of the semaphore. The semaphore itself is looked up some time later,
//! if the thread still waits.

use std::collections::{BTreeSet, HashMap};

use threadtoll_stacks::process::{SemaphoreGoal, SemaphoreId, SemaphoreWait, SystemCall};

use crate::lookups::Lookups;
use crate::sample::ThreadRead;

const MAX_STACKS: usize = 512;

/// Maximum number of different waits that are kept for one stack.
const MAX_WAITS: usize = 4;

/// Minimum time between two lookups for one process, in nanoseconds.
const LOOKUP_NS: u64 = 10_000_000;

#[derive(Debug, Default)]
pub(crate) struct SemaphoreWaits {
    at: HashMap<u32, AtStack>,
    /// True if the process shares the profiler's IPC namespace, so that its semaphores can be read.
    pub(crate) shared: bool,
    next_lookup: u64,
}

/// The semaphore for which threads wait, or the set of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AwaitedSemaphore {
    pub(crate) set: i32,
    /// Number of the semaphore in its set; `None` if there are several, or if no wait could be
    /// looked up.
    pub(crate) number: Option<u16>,
    /// Goal of all waits; `None` if there are several, or if no wait could be looked up.
    pub(crate) goal: Option<SemaphoreGoal>,
}

impl AwaitedSemaphore {
    pub(crate) fn id(self) -> Option<SemaphoreId> {
        Some(SemaphoreId { set: self.set, number: self.number? })
    }
}

#[derive(Debug, Default)]
struct AtStack {
    sets: BTreeSet<i32>,
    waits: BTreeSet<SemaphoreWait>,
}

impl SemaphoreWaits {
    pub(super) fn saw(
        &mut self,
        call: &SystemCall,
        stack: u32,
        read: &ThreadRead,
        at: u64,
        lookups: &dyn Lookups,
    ) {
        let Some(set) = call.semaphore_set() else { return };
        if self.at.len() >= MAX_STACKS && !self.at.contains_key(&stack) {
            return;
        }
        let of_stack = self.at.entry(stack).or_default();
        if of_stack.sets.len() < MAX_WAITS {
            of_stack.sets.insert(set);
        }
        if at < self.next_lookup || of_stack.waits.len() >= MAX_WAITS {
            return;
        }
        self.next_lookup = at + LOOKUP_NS;
        if let Some(wait) = lookups.semaphore_wait(read.tid, call) {
            of_stack.waits.insert(wait);
            self.shared = lookups.shares_semaphores(read.process);
        }
    }

    pub(crate) fn all(&self) -> BTreeSet<SemaphoreWait> {
        self.at.values().flat_map(|of| &of.waits).copied().collect()
    }

    /// The semaphore for which threads with this stack wait; `None` if there are several sets. If
    /// no wait with this stack could be looked up, it is that of other stacks in the same set.
    pub(crate) fn of_stack(&self, stack: u32) -> Option<AwaitedSemaphore> {
        let of_stack = self.at.get(&stack)?;
        let set = only(of_stack.sets.iter().copied())?;
        let waits = match of_stack.waits.is_empty() {
            true => self.all(),
            false => of_stack.waits.clone(),
        };
        let in_set = || waits.iter().filter(|wait| wait.semaphore.set == set);
        let number = only(in_set().map(|wait| wait.semaphore.number));
        Some(AwaitedSemaphore { set, number, goal: only(in_set().map(|wait| wait.goal)) })
    }
}

/// The value that all items have.
fn only<T: PartialEq>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use threadtoll_stacks::process::Activity;

    use super::*;
    use crate::lookups::{Fixed, NO_LOOKUPS};

    const TAKE: SemaphoreWait = SemaphoreWait {
        semaphore: SemaphoreId { set: 7, number: 2 },
        goal: SemaphoreGoal::TakeOne,
        undo: true,
    };

    fn call(number: libc::c_long, set: u64) -> SystemCall {
        let arguments = [set, 0x1000, 1, 0, 0, 0];
        SystemCall { number: number as u32, arguments, stack_pointer: 0, program_counter: 0 }
    }

    fn saw(waits: &mut SemaphoreWaits, stack: u32, call: SystemCall, lookups: &Fixed) {
        let read = ThreadRead::new(0, 4, true, Activity::Asleep(call));
        waits.saw(&call, stack, &read, waits.next_lookup, lookups);
    }

    #[test]
    fn a_stack_shows_its_semaphore() {
        let found = Fixed { semaphore_wait: Some(TAKE), ..Fixed::NOTHING };
        let mut waits = SemaphoreWaits::default();
        saw(&mut waits, 1, call(libc::SYS_semop, 7), &NO_LOOKUPS);
        let unknown = AwaitedSemaphore { set: 7, number: None, goal: None };
        assert_eq!((waits.of_stack(1), waits.shared), (Some(unknown), false));
        saw(&mut waits, 2, call(libc::SYS_semtimedop, 7), &found);
        let goal = Some(SemaphoreGoal::TakeOne);
        let taken = AwaitedSemaphore { set: 7, number: Some(2), goal };
        assert_eq!((waits.of_stack(2), waits.shared), (Some(taken), true));
        assert_eq!(taken.id(), Some(TAKE.semaphore));
        // The first stack waits for the same set, and for another one now.
        assert_eq!(waits.of_stack(1), Some(taken));
        saw(&mut waits, 1, call(libc::SYS_semop, 8), &NO_LOOKUPS);
        assert_eq!(waits.of_stack(1), None);
        saw(&mut waits, 3, call(libc::SYS_futex, 7), &found);
        assert_eq!(waits.of_stack(3), None);
    }

    #[test]
    fn a_stack_of_several_semaphores_shows_their_set() {
        let mut waits = SemaphoreWaits::default();
        for number in 0..9 {
            let wait = SemaphoreWait { semaphore: SemaphoreId { set: 7, number }, ..TAKE };
            let found = Fixed { semaphore_wait: Some(wait), ..Fixed::NOTHING };
            saw(&mut waits, 1, call(libc::SYS_semop, 7), &found);
        }
        let awaited = waits.of_stack(1).unwrap();
        let goal = Some(SemaphoreGoal::TakeOne);
        assert_eq!(awaited, AwaitedSemaphore { set: 7, number: None, goal });
        assert_eq!((awaited.id(), waits.all().len()), (None, MAX_WAITS));
    }
}
