//! The loops of the ways of waiting: how often each looks, and when it gives up looking.
//!
//! Between two looks there is a pause of about half a cache line's transfer. A look that comes too
//! early fetches a line that the other end is about to write: the other end must then call the copy
//! back before it can write, and the message takes two transfers instead of one.

use std::cell::Cell;
use std::fmt::Debug;

use super::park::Parker;
use super::pause::pause;
use super::{Adaptive, Park, Spin, SpinYield};
use crate::sync::{Instant, yield_now};

/// Looks of an end that otherwise sleeps at once, while it waits for room: an end that is awake
/// makes room for many messages before anybody can fall asleep.
pub(crate) const SPINS_BEFORE_PARK: u32 =
    if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 0 } else { 64 };
/// Looks of an adaptive wait before it reads a clock: what comes within half a microsecond costs no
/// more than these.
const POLLS_BEFORE_CLOCK: u32 = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 1 } else { 16 };
/// Looks between two looks at the clock.
const POLLS_PER_CLOCK_READ: u32 =
    if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 1 } else { 16 };
/// Looks before the first yield.
const POLLS_BEFORE_YIELD: u32 = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 1 } else { 64 };
/// Looks of a wait that never sleeps before it is seen whether it must end.
const POLLS_PER_ROUND: u32 = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 1 } else { 64 };

/// How looking ended.
#[derive(Debug)]
pub enum SpinOutcome<R> {
    /// It was there.
    Found(R),
    /// It is time to sleep.
    Park,
    /// It is too late.
    TimedOut,
}

/// What may end the looking from outside.
#[derive(Debug)]
pub struct SpinContext<'a> {
    pub(super) deadline: Option<Instant>,
    pub(super) parker: Parker<'a>,
    pub(super) rounds: Cell<u32>,
}

impl SpinContext<'_> {
    /// Whether the deadline has passed or this is a forked child.
    #[cold]
    #[inline(never)]
    fn must_stop(&self) -> bool {
        let round = self.rounds.get().wrapping_add(1);
        self.rounds.set(round);
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return true;
        }
        // A child finds the word wiped. Where the kernel does not wipe, it takes a system call to
        // tell, which is too expensive for every round.
        self.parker.is_wiped() || round.is_multiple_of(256) && self.parker.is_forked()
    }
}

/// Looks so often, with a pause behind each look.
#[inline(always)]
fn spin_times<R>(times: u32, mut poll: impl FnMut() -> Option<R>) -> Option<R> {
    for _ in 0..times {
        if let Some(found) = poll() {
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
    fn spin<R>(context: &SpinContext<'_>, poll: impl FnMut() -> Option<R>) -> SpinOutcome<R>;
}

impl Strategy for Spin {
    #[inline(always)]
    fn spin<R>(context: &SpinContext<'_>, mut poll: impl FnMut() -> Option<R>) -> SpinOutcome<R> {
        loop {
            if let Some(found) = spin_times(POLLS_PER_ROUND, &mut poll) {
                return SpinOutcome::Found(found);
            }
            if context.must_stop() {
                return SpinOutcome::TimedOut;
            }
        }
    }
}

impl Strategy for SpinYield {
    #[inline(always)]
    fn spin<R>(context: &SpinContext<'_>, mut poll: impl FnMut() -> Option<R>) -> SpinOutcome<R> {
        if let Some(found) = spin_times(POLLS_BEFORE_YIELD, &mut poll) {
            return SpinOutcome::Found(found);
        }
        loop {
            yield_now();
            if let Some(found) = poll() {
                return SpinOutcome::Found(found);
            }
            if context.must_stop() {
                return SpinOutcome::TimedOut;
            }
        }
    }
}

impl Strategy for Park {
    #[inline(always)]
    fn spin<R>(context: &SpinContext<'_>, mut poll: impl FnMut() -> Option<R>) -> SpinOutcome<R> {
        if let Some(found) = poll() {
            return SpinOutcome::Found(found);
        }
        match spin_times(context.parker.spins_before_park, poll) {
            Some(found) => SpinOutcome::Found(found),
            None => SpinOutcome::Park,
        }
    }
}

impl Strategy for Adaptive {
    const LEARNS: bool = true;

    #[inline(always)]
    fn spin<R>(context: &SpinContext<'_>, mut poll: impl FnMut() -> Option<R>) -> SpinOutcome<R> {
        if context.parker.stats.on_one_cpu() {
            return poll().map_or(SpinOutcome::Park, SpinOutcome::Found);
        }
        if let Some(found) = spin_times(POLLS_BEFORE_CLOCK, &mut poll) {
            return SpinOutcome::Found(found);
        }
        spin_by_clock(context, poll)
    }
}

/// The part of an adaptive wait that is long enough for the clock to be read.
#[inline(never)]
fn spin_by_clock<R>(
    context: &SpinContext<'_>,
    mut poll: impl FnMut() -> Option<R>,
) -> SpinOutcome<R> {
    let Parker { stats, side, .. } = context.parker;
    let Some(until) = stats.spin_deadline(side) else { return SpinOutcome::Park };
    loop {
        if let Some(found) = spin_times(POLLS_PER_CLOCK_READ, &mut poll) {
            stats.record_wait(side, true);
            return SpinOutcome::Found(found);
        }
        let now = Instant::now();
        if context.deadline.is_some_and(|deadline| now >= deadline) {
            return SpinOutcome::TimedOut;
        }
        if now >= until || cfg!(any(threadtoll_loom, threadtoll_shuttle)) {
            return SpinOutcome::Park;
        }
    }
}
