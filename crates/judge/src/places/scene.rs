//! Threads in one sample of a lock, and the places in the code where they are.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// Frame numbers that stand for the places of threads without a stack: on a CPU, and just woken.
const ON_CPU: u64 = u64::MAX;
const WOKEN: u64 = u64::MAX - 1;

/// Frame number that stands for a whole stack.
pub(super) const WHOLE: u64 = u64::MAX - 2;

/// A return address on a thread's stack, together with the position of its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The return address.
    pub return_address: u64,
    /// Position of the frame: its distance from the thread's outermost frame, which is equal for
    /// threads in the same call chain.
    pub frame: u64,
}

/// A thread in one sample.
#[derive(Clone, Copy, Debug)]
pub struct ThreadInScene<'a> {
    /// Number of the thread.
    pub thread: u32,
    /// True if the thread waits for the lock.
    pub waits: bool,
    /// True if the thread was woken from its wait for the lock and may have been given the lock.
    pub granted: bool,
    /// Places on the thread's stack; empty if it shows no stack, as a thread on a CPU does.
    pub places: &'a [Place],
    /// True if the thread sleeps. Without `places`, its position is unknown.
    pub asleep: bool,
    /// True if the thread has been woken but has no CPU yet, so that it is still where it slept.
    pub woken: bool,
    /// True if the thread cannot hold the lock: it has not run since the word was last free, or the
    /// holder is one of several other threads, none of which has run since.
    pub bystander: bool,
    /// Time since which the thread has not run; `None` if it runs now, or if unknown.
    pub still_since: Option<u64>,
}

impl ThreadInScene<'_> {
    pub(super) fn without_stack(&self) -> Place {
        match self.woken {
            true => Place { return_address: 0, frame: WOKEN },
            false => Place { return_address: self.thread.into(), frame: ON_CPU },
        }
    }

    /// The place that represents the thread's whole stack; `None` if the stack is unknown.
    pub(super) fn whole(&self) -> Option<Place> {
        if self.places.is_empty() {
            return (!self.asleep).then(|| self.without_stack());
        }
        let mut hasher = DefaultHasher::new();
        self.places.hash(&mut hasher);
        Some(Place { return_address: hasher.finish(), frame: WHOLE })
    }

    /// Calls `visit` once with each place of the thread.
    pub(super) fn visit_places(&self, mut visit: impl FnMut(Place)) {
        self.whole().into_iter().for_each(&mut visit);
        for (index, &place) in self.places.iter().enumerate() {
            if !self.places[..index].contains(&place) {
                visit(place);
            }
        }
    }

    /// Returns `true` if the thread shows no stack, or may have left its place because it has been
    /// given the lock since.
    pub(super) fn may_be_anywhere(&self) -> bool {
        self.places.is_empty() || self.granted
    }

    /// Returns `true` if the thread may hold a held lock, as far as can be told without its place.
    pub(super) fn may_hold(&self) -> bool {
        !self.waits && !self.bystander || self.granted
    }
}

/// One sample: a lock's word, and the threads seen with it.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// True if the lock is held. Leave out scenes whose word changed while the threads were read.
    pub held: bool,
    /// Threads that were examined.
    pub threads: &'a [ThreadInScene<'a>],
    /// True if every thread that may hold the lock is included.
    pub complete: bool,
}
