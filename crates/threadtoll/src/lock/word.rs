//! The lock without its data: one word, which is also the futex on which waiters sleep.
//!
//! All updates of the word are read-modify-writes. So whoever takes the lock by an acquire sees
//! everything that happened before each earlier release of the word, whichever updates came in
//! between. That is why only taking the lock and unlocking it are ordered; the other updates and
//! the loads are relaxed, and each load is only a guess that the next compare-and-swap or the
//! kernel checks. The kernel compares the word with the expected value and queues the thread under
//! a lock that a waker takes too, so a thread cannot fall asleep in a state that an unlock has
//! already replaced and woken somebody for.

use std::time::Duration;

use super::state::{Role, Sleepers, State, Time};
use crate::sync::{
    AtomicU32, Instant, Ordering, clock_us, constant, futex_wait_bitset, futex_wake_bitset, mutate,
    yield_now,
};
use crate::wait::{calibrate_pause, pause};

/// Number of times that a waiter looks at the word before it yields or sleeps: about 2.5 µs.
const LOOKS: u32 = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 0 } else { 100 };

/// Number of times that a waiter then lets other threads run on its CPU before it sleeps. Where
/// there are more threads than CPUs, they do useful work in that time, and nobody needs a wake-up.
const YIELDS: u32 = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 0 } else { 8 };

/// The word.
#[derive(Debug)]
pub(crate) struct Word(AtomicU32);

/// Conditions on which a thread waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// The thread does not wait if this many wait already.
    pub(crate) bound: u32,
    pub(crate) deadline: Option<Instant>,
    pub(crate) patience: Patience,
}

/// When a waiter starves. Waiting alone is no reason: whoever claimed the lock for having waited
/// long would overtake those that have slept longer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// A waiter starves if it is woken after this time, and finds that another has taken the lock.
    pub(crate) time: Option<Duration>,
    /// A waiter starves after so many sleeps in vain, those included that ended at once.
    pub(crate) losses: u32,
    /// Waiters sleep at once, in the order in which they come, except the first.
    pub(crate) in_order: bool,
}

impl Patience {
    /// For a lock that goes to whoever comes first.
    pub(crate) const USUAL: Patience =
        Patience { time: Some(Duration::from_millis(1)), losses: 64, in_order: false };
    /// For a lock that is always handed over: only a waiter that never gets to sleep starves.
    pub(crate) const IN_ORDER: Patience = Patience { time: None, losses: 64, in_order: true };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// This many threads wait already.
    Full(u32),
    TimedOut,
}

/// Bit of the sleepers in the futex's bitsets.
fn bitset(sleepers: Sleepers) -> u32 {
    match sleepers {
        Sleepers::Starved => 1,
        Sleepers::Others | Sleepers::OneMore => 2,
    }
}

impl Word {
    constant! {
        pub(crate) fn new() -> Self {
            Word(AtomicU32::new(State::FREE.0))
        }
    }

    /// The present state, which may be another by the time that it is returned.
    #[inline]
    pub(crate) fn state(&self) -> State {
        State(self.0.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn swap(&self, seen: State, next: State, order: Ordering) -> Result<(), State> {
        let swapped = self.0.compare_exchange(seen.0, next.0, order, Ordering::Relaxed);
        swapped.map(drop).map_err(State)
    }

    /// Takes the lock if it is free, not poisoned and nobody waits. Otherwise returns the state.
    #[inline(always)]
    pub(crate) fn take_idle(&self) -> Result<(), State> {
        // Acquire: the thread sees what earlier holders wrote. Pairs with the releases in `unlock`
        // and `unlock_slow`, as do the other acquires.
        self.swap(State::FREE, State::HELD, mutate!(take_idle, Acquire))
    }

    /// Takes the lock if it is free, whoever waits for it. Otherwise returns a state in which it
    /// was locked.
    pub(crate) fn take_free(&self, mut seen: State) -> Result<(), State> {
        while !seen.is_locked() {
            // Acquire: as in `take_idle`.
            match self.swap(seen, seen.taken(), mutate!(take_free, Acquire)) {
                Ok(()) => return Ok(()),
                Err(other) => seen = other,
            }
        }
        Err(seen)
    }

    /// Takes the lock, and waits for it on these terms if it must.
    #[cold]
    pub(crate) fn lock(&self, mut seen: State, terms: Terms) -> Result<(), Refused> {
        loop {
            match self.take_free(seen) {
                Ok(()) => return Ok(()),
                Err(locked) => seen = locked,
            }
            if mutate!(refuse_when_full, seen.waiters() >= terms.bound => false) {
                return Err(Refused::Full(seen.waiters()));
            }
            if terms.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(Refused::TimedOut);
            }
            let (entered, role) = seen.entered();
            let counted = mutate!(
                count_by_swap,
                self.swap(seen, entered, Ordering::Relaxed)
                    => Ok(self.update(|now| now.entered().0))
            );
            match counted {
                Ok(()) => return self.wait(role, terms),
                Err(other) => seen = other,
            }
        }
    }

    /// Waits as one of the counted waiters.
    fn wait(&self, mut role: Role, Terms { deadline, patience, .. }: Terms) -> Result<(), Refused> {
        calibrate_pause();
        let began = patience.time.map(|_| Instant::now());
        let mut losses = 0;
        loop {
            let seen = self.look(role, patience.in_order, deadline.is_none());
            if seen.may_be_taken_by(role) {
                // Acquire: as in `take_idle`.
                match self.swap(seen, seen.taken_by(role), mutate!(take_as_waiter, Acquire)) {
                    Ok(()) => return Ok(()),
                    Err(_) => continue,
                }
            }
            let left = deadline.map(|limit| limit.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                let gone = mutate!(
                    leave_by_swap,
                    self.swap(seen, seen.left_by(role), Ordering::Relaxed)
                        => Ok(self.update(|now| now.left_by(role)))
                );
                match gone {
                    Ok(()) => return Err(Refused::TimedOut),
                    // The lock may have been handed to this waiter in the meantime.
                    Err(_) => continue,
                }
            }
            let is_late = role == Role::Woken
                && began.zip(patience.time).is_some_and(|(began, time)| {
                    Instant::now().saturating_duration_since(began) >= time
                });
            let starving = losses >= patience.losses || is_late;
            let (asleep, sleeping_role) = seen.asleep(role, starving);
            if asleep != seen && self.swap(seen, asleep, Ordering::Relaxed).is_err() {
                continue;
            }
            role = sleeping_role;
            let sleepers = if role == Role::Starved { Sleepers::Starved } else { Sleepers::Others };
            let woken = futex_wait_bitset(&self.0, asleep.0, bitset(sleepers), left);
            if mutate!(woken_is_awake, woken => false) && role == Role::Ordinary {
                role = Role::Woken;
            }
            losses += 1;
        }
    }

    /// Reads the word until this waiter may take the lock or it is time to sleep. The waiter that
    /// is awake on behalf of the others always does so, and any other one as long as the next
    /// unlock need not wake a sleeper.
    fn look(&self, role: Role, in_order: bool, may_yield: bool) -> State {
        let yields = if may_yield && !in_order { YIELDS } else { 0 };
        let mut seen = self.state();
        for turn in 0..LOOKS + yields {
            let looks_on =
                matches!(role, Role::Awake | Role::Woken) || !in_order && !seen.has_sleepers();
            if !looks_on || seen.may_be_taken_by(role) {
                break;
            }
            if turn < LOOKS {
                pause();
            } else {
                yield_now();
            }
            seen = self.state();
        }
        seen
    }

    /// Unlocks. If `fair`, hands the lock to a waiter if there is one.
    #[inline(always)]
    pub(crate) fn unlock(&self, fair: bool) {
        // Release: the next holder sees what this one wrote.
        let unlocked = self.swap(State::HELD, State::FREE, mutate!(unlock_idle, Release));
        if let Err(seen) = unlocked {
            self.unlock_slow(seen, fair);
        }
    }

    #[cold]
    fn unlock_slow(&self, mut seen: State, fair: bool) {
        let mut read = None;
        let sleepers = loop {
            let now = || *read.get_or_insert_with(|| Time((clock_us() / 256) as u32));
            let (released, sleepers) = seen.released(fair, now);
            // Release: as in `unlock`.
            match self.swap(seen, released, mutate!(unlock_waited_for, Release)) {
                Ok(()) => break sleepers,
                Err(other) => seen = other,
            }
        };
        let Some(sleepers) = sleepers else { return };
        // From here on others may take and unlock the lock. The word is still there, because this
        // thread borrows the mutex.
        let woken = futex_wake_bitset(&self.0, 1, bitset(sleepers));
        if woken == 0 && sleepers == Sleepers::Others {
            self.promise_nobody();
        }
    }

    /// Takes back the promise that a waiter is awake, after nobody was woken: all waiters were
    /// about to fall asleep, or to leave.
    ///
    /// A waiter that has fallen asleep since then may have been passed over by an unlock that
    /// relied on the promise. So one is woken, and if it finds the lock taken, the next unlock
    /// wakes the next. It considers itself the awake one, which does no harm: to take back the
    /// promise of another causes at most a wake-up too many.
    #[cold]
    fn promise_nobody(&self) {
        let mut seen = self.state();
        while let Err(other) = self.swap(seen, seen.nobody_woken(), Ordering::Relaxed) {
            seen = other;
        }
        mutate!(wake_passed_over, futex_wake_bitset(&self.0, 1, bitset(Sleepers::Others)) => 0);
    }

    /// Marks the lock as poisoned. Only its holder may call this.
    #[cold]
    pub(crate) fn poison(&self) {
        // Relaxed: the next holder takes the lock in a later state of the same word.
        self.update(State::poisoned);
    }

    pub(crate) fn unpoison(&self) {
        self.update(State::unpoisoned);
    }

    fn update(&self, change: impl Fn(State) -> State) {
        let mut seen = self.state();
        while let Err(other) = self.swap(seen, change(seen), Ordering::Relaxed) {
            seen = other;
        }
    }
}
