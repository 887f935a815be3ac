//! How an end of a queue waits, as types: [`Spin`], [`SpinYield`], [`Park`], [`Adaptive`].
//!
//! | | looks again | gives its CPU away | wakes within |
//! |---|---|---|---|
//! | [`Spin`] | without pause, later with the CPU's pause hint | never | a cache line's transfer |
//! | [`SpinYield`] | between `sched_yield(2)` calls | to whoever is ready to run | a cache line's transfer, or somebody's time slice |
//! | [`Park`] | once | at once: it sleeps in the kernel (`futex(2)`) | a wake-up: microseconds |
//! | [`Adaptive`] | for about as long as sleeping and waking takes on this machine, then it sleeps | when waiting is long | a line's transfer when messages keep coming, a wake-up when they do not |
//!
//! What it costs the *other* side that somebody may sleep: one load of a word that it looks at anyway. There is no fence, no locked
//! instruction and no system call in a send that wakes nobody. The sleeper pays instead: before it sleeps it makes every other
//! CPU execute a barrier (`membarrier(2)`), so that either the sender's next look finds the sleeper, or the sleeper's last look
//! finds the message. Where the kernel offers no such call, queues made in that process fence in every send; nothing else
//! changes.
//!
//! `Adaptive` spins for at most what it expects to lose by sleeping, which never costs more than twice the best choice made in hindsight
//! (Karlin, Manasse, McGeoch, Owicki: *Competitive randomized algorithms for non-uniform problems*, SODA 1990). What sleeping costs
//! is learned: whoever wakes a thread notes when, and the woken thread how much later it ran. Where both ends are bound to the
//! same single CPU it does not spin at all.

mod learned;
mod pace;
mod parked;

use std::cell::Cell;
use std::fmt::Debug;

use crate::sync::{Instant, spin_loop, yield_now};

pub(crate) use learned::Meeting;
pub(crate) use pace::Pace;
pub(crate) use parked::{Announced, Certainty, Sleeper, Waited, by_barrier, wait, wake};

/// A way of waiting: one of the types of this module.
pub trait Wait: Strategy {}

/// Never sleeps: looks again and again.
///
/// Its CPU is gone for everybody else, and where there are fewer CPUs than spinning threads, each waits for the others' time slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spin;

/// Never sleeps, but lets others run between looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SpinYield;

/// Sleeps at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Park;

/// Spins for about as long as sleeping would cost, then sleeps: the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Adaptive;

impl Wait for Spin {}
impl Wait for SpinYield {}
impl Wait for Park {}
impl Wait for Adaptive {}

/// Looks without a pause in between: nothing reacts sooner.
pub(crate) const BARE: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 2048 };
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
    deadline: Option<Instant>,
    sleeper: Sleeper<'a>,
    rounds: Cell<u32>,
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

/// What sets the ways apart. Not to be implemented elsewhere: its methods take types that cannot be made.
pub trait Strategy: Debug + Default + Send + Sync + Unpin + 'static {
    /// Whether it makes use of what sleeping costs.
    #[doc(hidden)]
    const LEARNS: bool = false;

    /// Looks until something is found, the patience is over, or it would be better to sleep.
    #[doc(hidden)]
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
    #[inline(always)]
    fn look<R>(_: &Patience<'_>, mut look: impl FnMut() -> Option<R>) -> Looked<R> {
        look().map_or(Looked::Sleep, Looked::Found)
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
    let Some(until) = Instant::now().checked_add(learned::sleep_costs()) else { return Looked::Sleep };
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
