//! Threads at one look at a lock, and the places at which they stand.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// Frames of the places at which threads without a stack stand: on a CPU, and woken.
const ON_CPU: u64 = u64::MAX;
const WOKEN: u64 = u64::MAX - 1;

/// Frame of the places that whole stacks are.
pub(super) const WHOLE: u64 = u64::MAX - 2;

/// A return address on a thread's stack, and the position of its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The return address.
    pub return_address: u64,
    /// Position of the frame, measured so that threads in one call chain agree: its distance from
    /// the thread's outermost frame.
    pub frame: u64,
}

/// A thread that was looked at.
#[derive(Clone, Copy, Debug)]
pub struct Stand<'a> {
    /// Its number.
    pub thread: u32,
    /// It waits for the lock.
    pub waits: bool,
    /// It has been woken from that wait, and the lock may have been handed to it.
    pub granted: bool,
    /// Places on its stack; empty if it shows none, as a thread on a CPU does.
    pub places: &'a [Place],
    /// It sleeps: without places it is not known where.
    pub asleep: bool,
    /// It has been woken, and has no CPU yet: it is still where it slept.
    pub woken: bool,
    /// It does not hold the lock: it has not run since the word was free, or none of those has of
    /// whom one held it.
    pub bystander: bool,
    /// Time since which it has not run; `None` if it does, or that is not known.
    pub still_since: Option<u64>,
}

impl Stand<'_> {
    pub(super) fn without_stack(&self) -> Place {
        match self.woken {
            true => Place { return_address: 0, frame: WOKEN },
            false => Place { return_address: self.thread.into(), frame: ON_CPU },
        }
    }

    /// The place that its whole stack is; `None` if it is not known.
    pub(super) fn whole(&self) -> Option<Place> {
        if self.places.is_empty() {
            return (!self.asleep).then(|| self.without_stack());
        }
        let mut hasher = DefaultHasher::new();
        self.places.hash(&mut hasher);
        Some(Place { return_address: hasher.finish(), frame: WHOLE })
    }

    /// Calls `visit` with each of its places once.
    pub(super) fn visit_places(&self, mut visit: impl FnMut(Place)) {
        self.whole().into_iter().for_each(&mut visit);
        for (index, &place) in self.places.iter().enumerate() {
            if !self.places[..index].contains(&place) {
                visit(place);
            }
        }
    }

    /// It shows no stack, or has left the place that it shows with the lock.
    pub(super) fn may_be_anywhere(&self) -> bool {
        self.places.is_empty() || self.granted
    }

    /// It may hold a lock that is held, for all that is known without its place.
    pub(super) fn may_hold(&self) -> bool {
        !self.waits && !self.bystander || self.granted
    }
}

/// One sample of a lock's word and of threads.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The lock is held. Leave scenes out whose word changed while threads were looked at.
    pub held: bool,
    /// Threads that were looked at.
    pub threads: &'a [Stand<'a>],
    /// No thread was left out that may hold it.
    pub complete: bool,
}
