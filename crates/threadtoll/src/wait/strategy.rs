//! The loops of the ways of waiting: how often each looks, and when it gives up looking.
//!
//! Between two looks there is a pause of about half a cache line's transfer. A look that comes too
//! early fetches a line that the other end is about to write: the other end must then call the copy
//! back before it can write, and the message takes two transfers instead of one.

use std::cell::Cell;
use std::fmt::Debug;

use super::hint::pause;
use super::parked::Sleeper;
use super::{Adaptive, Park, Spin, SpinYield};
use crate::sync::{Instant, yield_now};

/// Looks of an end that otherwise sleeps at once, while it waits for room: an end that is awake
/// makes room for many messages before anybody can fall asleep.
pub(crate) const GLANCES: u32 = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 0 } else { 64 };
/// Looks of an adaptive wait before it reads a clock: what comes within half a microsecond costs no
/// more than these.
const FIRST_LOOKS: u32 = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 1 } else { 16 };
/// Looks between two looks at the clock.
const LOOKS_PER_CLOCK: u32 = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 1 } else { 16 };
/// Looks before the first yield.
const BEFORE_YIELD: u32 = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 1 } else { 64 };
/// Looks of a wait that never sleeps before it is seen whether it must end.
const LOOKS_PER_ROUND: u32 = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 1 } else { 64 };

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
    #[cold]
    #[inline(never)]
    fn over(&self) -> bool {
        let round = self.rounds.get().wrapping_add(1);
        self.rounds.set(round);
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return true;
        }
        // A child finds the word wiped. Where the kernel does not wipe, it takes a system call to
        // tell, which is too expensive for every round.
        self.sleeper.wiped() || round.is_multiple_of(256) && self.sleeper.forked()
    }
}

/// Looks so often, with a pause behind each look.
#[inline(always)]
fn look_often<R>(times: u32, mut look: impl FnMut() -> Option<R>) -> Option<R> {
    for _ in 0..times {
        if let Some(found) = look() {
            return Some(found);
        }
        pause();
    }
    None
}

/// What sets the ways apart. Public in a private module, so that nobody else can implement it.
pub trait Strategy: Debug + Default + Send + Sync + Unpin + 'static {
    /// Whether it makes use of what sleeping costs.
    const LEARNS: bool = false;

    /// Looks until something is found, the patience is over, or it would be better to sleep.
    fn look<R>(patience: &Patience<'_>, look: impl FnMut() -> Option<R>) -> Looked<R>;
}

impl Strategy for Spin {
    #[inline(always)]
    fn look<R>(patience: &Patience<'_>, mut look: impl FnMut() -> Option<R>) -> Looked<R> {
        loop {
            if let Some(found) = look_often(LOOKS_PER_ROUND, &mut look) {
                return Looked::Found(found);
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
        if let Some(found) = look_often(BEFORE_YIELD, &mut look) {
            return Looked::Found(found);
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
    #[inline(always)]
    fn look<R>(patience: &Patience<'_>, mut look: impl FnMut() -> Option<R>) -> Looked<R> {
        if let Some(found) = look() {
            return Looked::Found(found);
        }
        match look_often(patience.sleeper.glances, look) {
            Some(found) => Looked::Found(found),
            None => Looked::Sleep,
        }
    }
}

impl Strategy for Adaptive {
    const LEARNS: bool = true;

    #[inline(always)]
    fn look<R>(patience: &Patience<'_>, mut look: impl FnMut() -> Option<R>) -> Looked<R> {
        if patience.sleeper.meeting.on_one_cpu() {
            return look().map_or(Looked::Sleep, Looked::Found);
        }
        if let Some(found) = look_often(FIRST_LOOKS, &mut look) {
            return Looked::Found(found);
        }
        spin_for_a_while(patience, look)
    }
}

/// The part of an adaptive wait that is long enough for the clock to be read.
#[inline(never)]
fn spin_for_a_while<R>(patience: &Patience<'_>, mut look: impl FnMut() -> Option<R>) -> Looked<R> {
    let Sleeper { meeting, side, .. } = patience.sleeper;
    let Some(until) = meeting.spin_until(side) else { return Looked::Sleep };
    loop {
        if let Some(found) = look_often(LOOKS_PER_CLOCK, &mut look) {
            meeting.waited(side, true);
            return Looked::Found(found);
        }
        let now = Instant::now();
        if patience.deadline.is_some_and(|deadline| now >= deadline) {
            return Looked::Late;
        }
        if now >= until || cfg!(any(threadtoll_loom, threadtoll_shuttle)) {
            return Looked::Sleep;
        }
    }
}
