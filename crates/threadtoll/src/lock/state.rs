//! States of the lock's word, and the steps from one to the next. Everything is decided here, by
//! pure functions; `word` carries the steps out.
//!
//! The table in [`super`] lists the states.

use crate::sync::mutate;

/// A thread holds the lock, or it is [`HANDED`] to one.
const LOCKED: u32 = 1 << 0;
/// The holder has left the lock, still locked, to one waiter, its *heir*, which takes it by
/// clearing this bit: the waiter that has starved if there is one, otherwise the one that is awake.
const HANDED: u32 = 1 << 1;
/// One waiter is awake and will look at the word, or a thread is about to wake one. An unlock need
/// not wake another.
const AWAKE: u32 = 1 << 2;
/// One waiter has starved. The next unlock hands the lock to it.
const STARVED: u32 = 1 << 3;
/// A thread has panicked while it held a lock that poisons.
const POISONED: u32 = 1 << 4;
/// A waiter sleeps, or is about to, and the next unlock must wake one, unless one is [`AWAKE`].
const ASLEEP: u32 = 1 << 5;
/// The [`Time`] of the last wake-up, or of the first unlock since a waiter has been [`AWAKE`] that
/// others wait with it. Zero: none yet.
const WOKEN_AT: u32 = 0b11 << 6;
/// The bits from here up count the waiters. A process would need 2²⁴ threads to overflow them.
const ONE_WAITER: u32 = 1 << 8;

/// A time, in units of 256 µs: longer than a waiter takes to wake up if it gets a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Time(pub(crate) u32);

impl Time {
    fn bits(self) -> u32 {
        (self.0 % 3 + 1) << WOKEN_AT.trailing_zeros()
    }
}

/// A value of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State(pub(crate) u32);

/// Duty of a waiter towards the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// None. The others see to it that it is woken.
    Ordinary,
    /// The word says, or recently said, that a waiter is [`AWAKE`], and this is one: before it
    /// sleeps or leaves, it must take that back.
    Awake,
    /// It is the [`AWAKE`] one because an unlock has woken it, and that unlock has cleared
    /// [`ASLEEP`] for all. It sets it again if there are other waiters, who may sleep.
    Woken,
    /// It has [`STARVED`]: the next unlock hands it the lock.
    Starved,
}

impl Role {
    /// The bit that stands for a waiter with this role.
    fn mark(self) -> u32 {
        match self {
            Role::Ordinary => 0,
            Role::Awake | Role::Woken => AWAKE,
            Role::Starved => STARVED,
        }
    }
}

/// The sleepers of which an unlock wakes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Sleepers {
    /// The waiter that has starved, which is the only one of its kind.
    Starved,
    /// All others, of which the one that has slept longest is woken.
    Others,
    /// All but the starved one, too, but the word promises nothing: a waiter has been awake for a
    /// while and has not acted, perhaps because it has no CPU, so one more is woken if any sleeps.
    OneMore,
}

impl State {
    pub(crate) const FREE: State = State(0);
    pub(crate) const HELD: State = State(LOCKED);

    pub(crate) fn is_locked(self) -> bool {
        self.0 & LOCKED != 0
    }

    pub(crate) fn is_poisoned(self) -> bool {
        self.0 & POISONED != 0
    }

    pub(crate) fn poisoned(self) -> State {
        State(self.0 | POISONED)
    }

    pub(crate) fn unpoisoned(self) -> State {
        State(self.0 & !POISONED)
    }

    /// Number of waiters. A waiter counts until it has taken the lock or has left.
    pub(crate) fn waiters(self) -> u32 {
        self.0 / ONE_WAITER
    }

    /// Returns `true` if the next unlock must wake a waiter, unless one is [`AWAKE`].
    pub(crate) fn has_sleepers(self) -> bool {
        self.0 & ASLEEP != 0
    }

    /// The state after a waiter with this role has gone, whom the state does not count any more. If
    /// it may be the one for which an unlock has cleared [`ASLEEP`], others may still sleep.
    fn without(self, role: Role, was_woken_for_all: bool) -> State {
        let gone = self.0 & !role.mark();
        if self.waiters() == 0 {
            State(gone & !(ASLEEP | WOKEN_AT))
        } else if was_woken_for_all {
            State(gone | mutate!(restore_sleepers, ASLEEP => 0))
        } else {
            State(gone)
        }
    }

    /// The state after a thread that did not wait has taken the free lock.
    pub(crate) fn taken(self) -> State {
        State(self.0 | LOCKED)
    }

    /// The state after a thread has begun to wait, and its role. The first waiter begins awake.
    pub(crate) fn entered(self) -> (State, Role) {
        let entered = self.0 + ONE_WAITER;
        if self.waiters() == 0 && self.0 & AWAKE == 0 {
            (State(entered | AWAKE), Role::Awake)
        } else {
            (State(entered), Role::Ordinary)
        }
    }

    /// Returns `true` if a waiter with this role may take the lock: it is free, or the waiter is
    /// its heir.
    pub(crate) fn may_be_taken_by(self, role: Role) -> bool {
        if self.0 & LOCKED == 0 {
            return true;
        }
        let mark_of_heir = if self.0 & STARVED != 0 { STARVED } else { AWAKE };
        self.0 & HANDED != 0 && mutate!(only_heir, role.mark() == mark_of_heir => true)
    }

    /// The state after a waiter with this role has taken the lock.
    pub(crate) fn taken_by(self, role: Role) -> State {
        let taken = State(((self.0 - ONE_WAITER) | LOCKED) & !HANDED);
        let was_woken_for_all = role == Role::Woken || self.0 & HANDED != 0;
        mutate!(take_mark, taken.without(role, was_woken_for_all) => taken)
    }

    /// The state after a waiter with this role, which may not take the lock, has left.
    pub(crate) fn left_by(self, role: Role) -> State {
        let left = State(mutate!(leave_queue, self.0 - ONE_WAITER => self.0));
        mutate!(leave_mark, left.without(role, role == Role::Woken) => left)
    }

    /// The state in which a waiter with this role, which may not take the lock, may fall asleep,
    /// and its role while it sleeps. If it is `starving`, it is served next, unless that was
    /// promised to another.
    pub(crate) fn asleep(self, role: Role, starving: bool) -> (State, Role) {
        if role == Role::Starved {
            return (self, role);
        }
        let asleep = self.0 & !mutate!(sleep_mark, role.mark() => 0);
        let asleep = asleep | mutate!(mark_sleeper, ASLEEP => 0);
        if starving && self.0 & (STARVED | HANDED) == 0 {
            (State(asleep | STARVED), Role::Starved)
        } else {
            (State(asleep), Role::Ordinary)
        }
    }

    /// The state after the holder has unlocked, and the sleepers of which it must then wake one.
    pub(crate) fn released(
        self,
        fair: bool,
        now: impl FnOnce() -> Time,
    ) -> (State, Option<Sleepers>) {
        if mutate!(serve_starved, self.0 & STARVED != 0 => false) {
            let kept = mutate!(keep_locked, self.0 => self.0 & !LOCKED);
            return (State(kept | HANDED), Some(Sleepers::Starved));
        }
        let is_one_awake = self.0 & AWAKE != 0;
        let has_heir = self.waiters() > 0 && (is_one_awake || self.has_sleepers());
        let released = if mutate!(hand_over, fair && has_heir => false) {
            self.0 | HANDED
        } else {
            self.0 & !LOCKED
        };
        // To wake one more would break the order of a fair lock, and its heir comes next anyway.
        let may_be_late = is_one_awake && self.waiters() > 1 && !fair;
        if !may_be_late && (is_one_awake || !self.has_sleepers()) {
            return (State(released), None);
        }
        let (woken_at, now) = (self.0 & WOKEN_AT, now().bits());
        let timed = released & !WOKEN_AT | now;
        if is_one_awake {
            let is_late = woken_at != 0 && woken_at != now;
            (State(timed), is_late.then_some(Sleepers::OneMore))
        } else {
            (State((timed | AWAKE) & !ASLEEP), Some(Sleepers::Others))
        }
    }

    /// The state after an unlock has found nobody asleep to be the [`AWAKE`] waiter that the word
    /// promises. If the lock was handed to that waiter, it becomes free.
    pub(crate) fn nobody_woken(self) -> State {
        let heirless = self.0 & (HANDED | STARVED) == HANDED;
        let free = if mutate!(free_heirless, heirless => false) { HANDED | LOCKED } else { 0 };
        State(self.0 & !(mutate!(promise_nobody, AWAKE => 0) | free))
    }
}

#[cfg(test)]
impl State {
    #[cfg(any(threadtoll_loom, not(threadtoll_shuttle)))]
    pub(crate) fn is_held(self) -> bool {
        self.0 & (LOCKED | HANDED) == LOCKED
    }

    /// Returns `true` if the table in [`super`] lists the state.
    #[cfg(any(threadtoll_loom, not(threadtoll_shuttle)))]
    pub(crate) fn is_listed(self) -> bool {
        let promised = self.0 & (HANDED | STARVED) != 0;
        let has_heir = self.0 & HANDED == 0 || self.0 & (AWAKE | STARVED) != 0;
        let waits = self.0 & (STARVED | ASLEEP) == 0 || self.waiters() > 0;
        (self.is_locked() || !promised) && has_heir && waits
    }

    pub(crate) fn has_starved(self) -> bool {
        self.0 & STARVED != 0
    }
}
