//! The lock: its orderings, and the code that carries out the steps of its word. loom also goes
//! through all interleavings of these steps.

use std::time::Duration;

use super::checker::thread;
use super::model;
use crate::lock::Mutex;
use crate::lock::state::State;
use crate::lock::word::{Patience, Refused, Terms, Word};
use crate::sync::{self, Arc, UnsafeCell};

/// A timeout that passes only in `time_passes`, or while the thread sleeps.
const HOUR: Duration = Duration::from_secs(3600);

/// A waiter that starved after some losses would wake up without an unlock, and hide a lost one.
const NEVER_STARVES: Patience = Patience { time: None, losses: u32::MAX, in_order: false };
const NO_LIMIT: Terms = Terms { bound: u32::MAX, deadline: None, patience: NEVER_STARVES };
/// Starves before its first sleep.
const STARVING: Terms = Terms { patience: Patience { losses: 0, ..NEVER_STARVES }, ..NO_LIMIT };
const BOUNDED: Terms = Terms { bound: 1, ..NO_LIMIT };

/// A lock, and the number of visits to what it protects.
struct Room {
    word: Word,
    visits: UnsafeCell<usize>,
}

// SAFETY: the checkers report concurrent accesses.
unsafe impl Sync for Room {}

impl Room {
    fn new() -> Arc<Self> {
        Arc::new(Room { word: Word::new(), visits: UnsafeCell::new(0) })
    }

    fn enter(&self, terms: Terms) -> Result<(), Refused> {
        self.word.take_idle().or_else(|seen| self.word.lock(seen, terms))
    }

    /// Counts the visit of the thread that has entered, and returns how many there were before.
    fn visit(&self) -> usize {
        self.visits.with_mut(|visits| {
            // SAFETY: the checkers report concurrent accesses.
            let visits = unsafe { &mut *visits };
            *visits += 1;
            *visits - 1
        })
    }

    fn pass(&self, terms: Terms, fair: bool) {
        if self.enter(terms).is_ok() {
            self.visit();
            self.word.unlock(fair);
        }
    }

    /// Asserts that nothing is left of all who came.
    fn is_empty_after(&self, visits: usize) {
        assert_eq!(self.word.state(), State::FREE);
        assert_eq!(self.visit(), visits);
    }
}

/// Lets more than an hour pass.
fn time_passes() {
    sync::futex_wait(&sync::AtomicU32::new(0), 0, Some(2 * HOUR));
}

fn now() -> sync::Instant {
    sync::Instant::now()
}

#[cfg(threadtoll_loom)]
mod interleavings {
    use super::model;
    use crate::lock::interleavings;

    model! {
        /// Every interleaving of threads that wake each other.
        awake_against_unlock(Refuses)
        steps [take_mark, sleep_mark, mark_sleeper, restore_sleepers, woken_is_awake, promise_nobody, wake_passed_over, free_heirless]
        {
            interleavings::awake_against_unlock();
        }
    }

    model! {
        /// Every interleaving of threads that hand the lock to one that gives up.
        hand_over_against_time_out(Refuses)
        steps [leave_mark, leave_by_swap, leave_queue]
        {
            interleavings::hand_over_against_time_out();
        }
    }

    model! {
        /// Every interleaving of threads that hand the lock over while others come.
        barging_against_hand_over(Refuses)
        steps [serve_starved, keep_locked, only_heir, hand_over]
        {
            interleavings::barging_against_hand_over();
        }
    }

    model! {
        /// Every interleaving of threads that bound the queue.
        bound_against_time_out(Refuses)
        steps [refuse_when_full, count_by_swap, leave_queue]
        {
            interleavings::bound_against_time_out();
        }
    }
}

/// Two threads enter twice each.
fn two_enter_twice(room: &Arc<Room>) {
    let other = Arc::clone(room);
    let passing = thread::spawn(move || (0..2).for_each(|_| other.pass(NO_LIMIT, false)));
    (0..2).for_each(|_| room.pass(NO_LIMIT, false));
    passing.join().unwrap();
}

model! {
    /// Each thread sees what the one before it did.
    exclusion(Refuses)
    orders [take_idle, take_as_waiter, unlock_idle, unlock_waited_for]
    {
        let room = Room::new();
        two_enter_twice(&room);
        room.is_empty_after(4);
    }
}

model! {
    /// As `exclusion`, with a word that is never quite idle.
    exclusion_when_poisoned(Refuses)
    orders [take_free, take_as_waiter, unlock_waited_for]
    {
        let room = Room::new();
        room.word.poison();
        two_enter_twice(&room);
        room.word.unpoison();
        room.is_empty_after(4);
    }
}

model! {
    /// Three threads, of which two may have to sleep.
    sleeping(Refuses)
    steps [take_mark, sleep_mark, mark_sleeper, woken_is_awake]
    {
        let room = Room::new();
        let all = [false, true].map(|fair| {
            let room = Arc::clone(&room);
            thread::spawn(move || room.pass(NO_LIMIT, fair))
        });
        room.pass(NO_LIMIT, false);
        all.into_iter().for_each(|one| one.join().unwrap());
        room.is_empty_after(3);
    }
}

/// An unlock finds the waiter on its way to sleep, and wakes nobody; before it takes that back,
/// another thread takes the lock and unlocks it.
fn somebody_else_unlocks(fair: bool) {
    let room = Room::new();
    room.enter(NO_LIMIT).unwrap();
    let (other, third) = (Arc::clone(&room), Arc::clone(&room));
    let waiting = thread::spawn(move || other.pass(NO_LIMIT, false));
    let passing = thread::spawn(move || {
        third.enter(NO_LIMIT).unwrap();
        // Lets the waiter fall asleep without costing the checker a preemption.
        thread::yield_now();
        third.visit();
        third.word.unlock(fair);
    });
    thread::yield_now();
    room.visit();
    room.word.unlock(false);
    waiting.join().unwrap();
    passing.join().unwrap();
    room.is_empty_after(3);
}

model! {
    /// The other thread wakes nobody, because a waiter is said to be awake.
    passed_over(Refuses)
    orders [promise_nobody, wake_passed_over]
    {
        somebody_else_unlocks(false);
    }
}

model! {
    /// The other thread hands the lock over, to the waiter that is said to be awake.
    heirless(Refuses)
    orders [promise_nobody, free_heirless]
    {
        somebody_else_unlocks(true);
    }
}

model! {
    /// The lock is handed to a waiter whose time is over.
    late_heir(Refuses)
    steps [leave_by_swap]
    {
        let room = Room::new();
        room.enter(NO_LIMIT).unwrap();
        let other = Arc::clone(&room);
        let waiting = thread::spawn(move || {
            other.pass(Terms { deadline: Some(now() + HOUR), ..NO_LIMIT }, false);
        });
        let passing = thread::spawn(time_passes);
        // Lets the others run first without costing the checker a preemption.
        thread::yield_now();
        room.visit();
        room.word.unlock(true);
        room.pass(NO_LIMIT, false);
        waiting.join().unwrap();
        passing.join().unwrap();
        assert_eq!(room.word.state(), State::FREE);
    }
}

model! {
    /// A waiter that has starved is served next, although another thread is quicker.
    starved_is_served_next(Refuses)
    steps [serve_starved, keep_locked]
    {
        let room = Room::new();
        room.enter(NO_LIMIT).unwrap();
        let other = Arc::clone(&room);
        let starving = thread::spawn(move || other.pass(STARVING, false));
        while !room.word.state().has_starved() {
            thread::yield_now();
        }
        room.word.unlock(false);
        if room.word.take_free(room.word.state()).is_ok() {
            assert_eq!(room.visit(), 1, "the starved waiter was passed over");
            room.word.unlock(false);
        }
        starving.join().unwrap();
        assert_eq!(room.word.state(), State::FREE);
    }
}

model! {
    /// Two threads find one place in the queue, and one of them gives up.
    never_beyond_the_bound(Refuses)
    steps [refuse_when_full, count_by_swap]
    {
        let room = Room::new();
        room.enter(NO_LIMIT).unwrap();
        let limited = Terms { deadline: Some(now() + HOUR), ..BOUNDED };
        let all = [BOUNDED, limited].map(|terms| {
            let room = Arc::clone(&room);
            thread::spawn(move || room.pass(terms, false))
        });
        for _ in 0..3 {
            assert!(room.word.state().waiters() <= 1, "the queue exceeded its bound");
            thread::yield_now();
        }
        room.word.unlock(false);
        all.into_iter().for_each(|one| one.join().unwrap());
        assert_eq!(room.word.state(), State::FREE);
    }
}

model! {
    /// The mutex gives each guard the value that the last one left.
    guards(Refuses)
    orders [take_idle, unlock_idle]
    {
        let mutex = Arc::new(Mutex::new(0));
        let other = Arc::clone(&mutex);
        let adding = thread::spawn(move || *other.lock() += 1);
        *mutex.lock() += 1;
        adding.join().unwrap();
        assert_eq!(*mutex.lock(), 2);
        assert_eq!(mutex.queue_len(), 0);
    }
}

#[cfg(threadtoll_shuttle)]
model! {
    /// Four threads enter many times, each in its own way.
    crowd(Refuses)
    steps [take_mark, sleep_mark, leave_queue]
    {
        const EACH: usize = 25;
        let room = Room::new();
        let impatient = Terms { patience: Patience { losses: 2, ..NEVER_STARVES }, ..NO_LIMIT };
        let bounded = Terms { bound: 2, ..NO_LIMIT };
        let crowd = [(NO_LIMIT, false), (impatient, false), (bounded, true)].map(|(terms, fair)| {
            let room = Arc::clone(&room);
            thread::spawn(move || (0..EACH).for_each(|_| room.pass(terms, fair)))
        });
        for _ in 0..EACH {
            room.pass(Terms { deadline: Some(now() + HOUR), ..NO_LIMIT }, false);
        }
        crowd.into_iter().for_each(|one| one.join().unwrap());
        assert_eq!(room.word.state(), State::FREE);
    }
}
