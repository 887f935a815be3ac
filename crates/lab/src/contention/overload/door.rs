//! The door in front of a lock: hands callers to threads in order of arrival, and refuses callers
//! while too many wait.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// A caller that was handed to a thread. Times are in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answered {
    /// Index of the caller, in order of arrival.
    pub(crate) caller: usize,
    /// True if no thread was free when the caller arrived.
    pub(crate) in_front: bool,
    /// Time at which the thread turned to the caller.
    pub(crate) turned_at: u64,
    pub(crate) end: End,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum End {
    #[default]
    Refused,
    GaveUp,
    Acquired {
        at: u64,
        released_at: u64,
        /// False if the deadline had passed, and the lock was given back at once.
        works: bool,
    },
}

/// Callers of a block.
#[derive(Debug)]
pub(crate) struct Door {
    /// Due times in ticks, in ascending order.
    due: Vec<u64>,
    /// Number of callers that may wait; `None` if the door does not count them.
    bound: Option<usize>,
    /// Number of threads that the lock itself lets wait; `None` if it has no bound of its own.
    bound_of_lock: Option<u32>,
    /// Time after which a caller gives up, in ticks; `None` for never.
    patience: Option<u64>,
    /// Hold time in units of work.
    hold: u64,
    /// The next caller that no thread has taken.
    next: AtomicUsize,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    /// Number of callers that were let in and had not left when the latest caller arrived.
    count: usize,
    /// Times at which callers left, if after that moment. One caller leaves after another, so the
    /// times are in ascending order.
    left: VecDeque<u64>,
}

impl Door {
    pub(crate) fn new(due: Vec<u64>, bound: Option<u32>, patience: Option<u64>, hold: u64) -> Self {
        let bound = bound.map(|bound| bound as usize);
        let (next, inside) = (AtomicUsize::new(0), Mutex::default());
        Door { due, bound, bound_of_lock: None, patience, hold, next, inside }
    }

    /// Leaves it to the lock to keep the bound.
    pub(crate) fn bounded_by_lock(self) -> Self {
        let bound_of_lock = self.bound.map(|bound| bound as u32);
        Door { bound: None, bound_of_lock, ..self }
    }

    pub(crate) fn bound_of_lock(&self) -> Option<u32> {
        self.bound_of_lock
    }

    pub(crate) fn callers(&self) -> usize {
        self.due.len()
    }

    pub(crate) fn hold(&self) -> u64 {
        self.hold
    }

    /// The next caller, and its due time; `None` if there are no more.
    pub(crate) fn next(&self) -> Option<(usize, u64)> {
        // Relaxed: this is a counter, which orders nothing.
        let caller = self.next.fetch_add(1, Ordering::Relaxed);
        Some((caller, *self.due.get(caller)?))
    }

    /// Returns `true` if the caller has lost patience at this time.
    pub(crate) fn gives_up(&self, due: u64, now: u64) -> bool {
        self.patience.is_some_and(|patience| now.saturating_sub(due) > patience)
    }

    /// Lets a caller in, unless the lock was held and too many others waited when the caller
    /// arrived. A thread may turn to a caller later than that, so the door keeps the times at which
    /// others left.
    pub(crate) fn admits(&self, due: u64) -> bool {
        let Some(bound) = self.bound else { return true };
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        while inside.left.front().is_some_and(|left| *left <= due) {
            inside.left.pop_front();
            inside.count = inside.count.saturating_sub(1);
        }
        let admits = inside.count <= bound;
        inside.count += usize::from(admits);
        admits
    }

    /// Called by the holder of the lock, just before the release.
    pub(crate) fn leaves(&self, now: u64) {
        if self.bound.is_some() {
            self.inside.lock().unwrap_or_else(PoisonError::into_inner).left.push_back(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_handed_out_once_and_in_order() {
        let door = Door::new(vec![3, 5], None, None, 7);
        assert_eq!([door.next(), door.next(), door.next()], [Some((0, 3)), Some((1, 5)), None]);
        assert_eq!((door.callers(), door.hold()), (2, 7));
    }

    #[test]
    fn a_caller_is_judged_by_those_who_were_there_when_it_arrived() {
        let door = Door::new(Vec::new(), Some(1), None, 1);
        assert!(door.admits(10) && door.admits(11), "one holds the lock, and one may wait");
        assert!(!door.admits(12));
        door.leaves(20);
        door.leaves(30);
        // A thread turns to these callers late, after others have left.
        assert!(!door.admits(19));
        assert!(door.admits(20));
        assert!(!door.admits(29), "the second and the fourth are inside");
        assert!(door.admits(30));
        let none_may_wait = Door::new(Vec::new(), Some(0), None, 1);
        assert!(none_may_wait.admits(1) && !none_may_wait.admits(2));
        none_may_wait.leaves(3);
        assert!(none_may_wait.admits(3));
    }

    #[test]
    fn without_limits_nobody_is_turned_away() {
        let door = Door::new(Vec::new(), None, None, 1);
        assert!((0..100).all(|at| door.admits(at)) && !door.gives_up(0, u64::MAX));
        let impatient = Door::new(Vec::new(), None, Some(5), 1);
        assert!(!impatient.gives_up(10, 15) && impatient.gives_up(10, 16));
        assert!(!impatient.gives_up(10, 3), "stamps of two CPUs may disagree");
    }

    #[test]
    fn a_lock_with_a_bound_of_its_own_keeps_it() {
        let door = Door::new(Vec::new(), Some(3), None, 1);
        assert_eq!(door.bound_of_lock(), None);
        let door = door.bounded_by_lock();
        assert_eq!(door.bound_of_lock(), Some(3));
        assert!((0..100).all(|at| door.admits(at)), "the door counts nobody");
    }
}
