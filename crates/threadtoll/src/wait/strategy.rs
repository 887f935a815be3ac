//! The loops of the ways of waiting: how often each looks, and when it gives up looking.

use std::cell::Cell;
use std::fmt::Debug;

use super::parked::Sleeper;
use super::{Adaptive, Park, Spin, SpinYield};
use crate::sync::{Instant, spin_loop, yield_now};

/// Looks without a pause in between: nothing reacts sooner.
pub(crate) const BARE: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 2048 };
/// Looks, with pauses in between, of an end that would sleep at once, but finds no room, or no message where they kept coming: with today's
/// pauses of over 100 cycles a few microseconds, in which an end that is awake makes room for many messages, or sends them. Sleeping takes longer
/// than that by itself, and has the other end make a system call.
pub(crate) const GLANCES: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 64 };
/// With pauses in between, the clock is read after so many looks.
const LOOKS_PER_CLOCK: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 16 };
/// Looks before the first yield.
const BEFORE_YIELD: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 64 };

/// How looking ended.
#[derive(Debug)]
pub enum Looked<R> {
    /// It was there.
    Found(R),
    /// It is time to sleep.
    Sleep,
    /// It is too late.
    Late,
}

/// What may end the looking from outside.
#[derive(Debug)]
pub struct Patience<'a> {
    pub(super) deadline: Option<Instant>,
    pub(super) sleeper: Sleeper<'a>,
    pub(super) rounds: Cell<u32>,
}

impl Patience<'_> {
    /// Whether the deadline has passed or this is a forked child.
    fn over(&self) -> bool {
        let round = self.rounds.get().wrapping_add(1);
        self.rounds.set(round);
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return true;
        }
        // A child finds the word wiped; where the kernel does not wipe, a system call tells, which is not for every round.
        self.sleeper.wiped() || round.is_multiple_of(256) && self.sleeper.forked()
    }
}

/// What sets the ways apart. Public in a private module, so that nobody else can implement it.
pub trait Strategy: Debug + Default + Send + Sync + Unpin + 'static {
    /// Whether it makes use of what sleeping costs.
    const LEARNS: bool = false;
    /// Whether it sleeps after the first look in vain.
    const SLEEPS_AT_ONCE: bool = false;

    /// Looks until something is found, the patience is over, or it would be better to sleep.
    fn look<R>(patience: &Patience<'_>, look: impl FnMut() -> Option<R>) -> Looked<R>;
}

impl Strategy for Spin {
    #[inline(always)]
    fn look<R>(patience: &Patience<'_>, mut look: impl FnMut() -> Option<R>) -> Looked<R> {
        loop {
            for _ in 0..patience.sleeper.bare {
                if let Some(found) = look() {
                    return Looked::Found(found);
                }
            }
            for _ in 0..LOOKS_PER_CLOCK {
                spin_loop();
                if let Some(found) = look() {
                    return Looked::Found(found);
                }
            }
            if patience.over() {
                return Looked::Late;
            }
        }
    }
}

impl Strategy for SpinYield {
    #[inline(always)]
    fn look<R>(patience: &Patience<'_>, mut look: impl FnMut() -> Option<R>) -> Looked<R> {
        for _ in 0..BEFORE_YIELD {
            if let Some(found) = look() {
                return Looked::Found(found);
            }
        }
        loop {
            yield_now();
            if let Some(found) = look() {
                return Looked::Found(found);
            }
            if patience.over() {
                return Looked::Late;
            }
        }
    }
}

impl Strategy for Park {
    const SLEEPS_AT_ONCE: bool = true;

    #[inline(always)]
    fn look<R>(patience: &Patience<'_>, mut look: impl FnMut() -> Option<R>) -> Looked<R> {
        if let Some(found) = look() {
            return Looked::Found(found);
        }
        for _ in 0..patience.sleeper.glances {
            spin_loop();
            if let Some(found) = look() {
                return Looked::Found(found);
            }
        }
        Looked::Sleep
    }
}

impl Strategy for Adaptive {
    const LEARNS: bool = true;

    #[inline(always)]
    fn look<R>(patience: &Patience<'_>, mut look: impl FnMut() -> Option<R>) -> Looked<R> {
        if let Some(found) = look() {
            return Looked::Found(found);
        }
        if patience.sleeper.meeting.on_one_cpu() {
            return Looked::Sleep;
        }
        for _ in 0..patience.sleeper.bare {
            if let Some(found) = look() {
                return Looked::Found(found);
            }
        }
        spin_for_a_while(patience, look)
    }
}

/// The part of an adaptive wait that is long enough for the clock to be read.
#[inline(never)]
fn spin_for_a_while<R>(patience: &Patience<'_>, mut look: impl FnMut() -> Option<R>) -> Looked<R> {
    if patience.sleeper.meeting.arrive(patience.sleeper.side) {
        return Looked::Sleep;
    }
    let Some(until) = Instant::now().checked_add(super::learned::sleep_costs()) else { return Looked::Sleep };
    loop {
        for _ in 0..LOOKS_PER_CLOCK {
            spin_loop();
            if let Some(found) = look() {
                return Looked::Found(found);
            }
        }
        let now = Instant::now();
        if patience.deadline.is_some_and(|deadline| now >= deadline) {
            return Looked::Late;
        }
        if now >= until || cfg!(any(loom, shuttle)) {
            return Looked::Sleep;
        }
    }
}
