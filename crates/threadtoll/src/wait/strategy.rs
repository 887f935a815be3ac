//! The polling loops of [`Wait`].
//!
//! Between two polls there is a pause of about half the time that a cache line takes from one CPU
//! to another. A poll that comes too early fetches a line that the other end is about to write. The
//! other end must then invalidate that copy, and the message takes two transfers instead of one.

use std::cell::Cell;

use super::Wait;
use super::parker::Parker;
use super::pause::pause;
use crate::sync::{Instant, yield_now};

/// Number of times that a sender that waits by [`Wait::Park`] polls for room before it sleeps. A
/// receiver that is awake makes room sooner than a thread can fall asleep.
pub(crate) const SPINS_BEFORE_PARK: u32 =
    if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 0 } else { 64 };
/// Number of polls in an adaptive wait before it reads a clock: about half a microsecond.
pub(super) const POLLS_BEFORE_CLOCK: u32 =
    if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 1 } else { 16 };
/// Number of polls between two readings of the clock.
pub(super) const POLLS_PER_CLOCK_READ: u32 =
    if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 1 } else { 16 };
/// Number of polls before the first yield, and between two checks of the deadline in a wait that
/// never sleeps.
const POLLS_PER_ROUND: u32 = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 1 } else { 64 };

#[derive(Debug)]
pub(super) enum SpinOutcome<R> {
    Found(R),
    /// It is time to sleep.
    Park,
    /// The deadline has passed, or this is a forked child.
    TimedOut,
}

/// Conditions under which spinning stops without success.
#[derive(Debug)]
pub(super) struct SpinContext<'a> {
    pub(super) deadline: Option<Instant>,
    pub(super) parker: &'a Parker<'a>,
    pub(super) rounds: Cell<u32>,
}

impl SpinContext<'_> {
    /// Returns `true` if the deadline has passed or this is a forked child.
    #[cold]
    #[inline(never)]
    fn must_stop(&self) -> bool {
        let round = self.rounds.get().wrapping_add(1);
        self.rounds.set(round);
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return true;
        }
        // On kernels that do not wipe the word in a child, `is_forked` takes a system call, which
        // is too expensive for every round.
        self.parker.is_wiped() || round.is_multiple_of(256) && self.parker.is_forked()
    }
}

/// Polls up to `times` times, with a pause after each poll.
#[inline(always)]
pub(super) fn spin_times<R>(times: u32, mut poll: impl FnMut() -> Option<R>) -> Option<R> {
    for _ in 0..times {
        if let Some(found) = poll() {
            return Some(found);
        }
        pause();
    }
    None
}

impl Wait {
    /// Polls until something is found, a condition of the context ends the wait, or it is time to
    /// sleep.
    #[inline(always)]
    pub(super) fn spin<R>(
        self,
        context: &SpinContext<'_>,
        mut poll: impl FnMut() -> Option<R>,
    ) -> SpinOutcome<R> {
        let Parker { stats, spins_before_park, .. } = *context.parker;
        let on_one_cpu = self == Wait::Adaptive && stats.on_one_cpu();
        let polls = match self {
            Wait::Adaptive if on_one_cpu => 0,
            Wait::Adaptive => POLLS_BEFORE_CLOCK,
            Wait::Spin | Wait::SpinYield => POLLS_PER_ROUND,
            Wait::Park => spins_before_park,
        };
        if let Some(found) = spin_times(polls, &mut poll) {
            return SpinOutcome::Found(found);
        }
        match self {
            Wait::Adaptive if !on_one_cpu => spin_by_clock(context, poll),
            Wait::Adaptive | Wait::Park => poll().map_or(SpinOutcome::Park, SpinOutcome::Found),
            Wait::Spin | Wait::SpinYield => spin_on(self, context, poll),
        }
    }
}

/// The part of a wait that never sleeps after its first polls.
#[inline(never)]
fn spin_on<R>(
    wait: Wait,
    context: &SpinContext<'_>,
    mut poll: impl FnMut() -> Option<R>,
) -> SpinOutcome<R> {
    loop {
        let found = if wait == Wait::SpinYield {
            yield_now();
            poll()
        } else {
            spin_times(POLLS_PER_ROUND, &mut poll)
        };
        if let Some(found) = found {
            return SpinOutcome::Found(found);
        }
        if context.must_stop() {
            return SpinOutcome::TimedOut;
        }
    }
}

/// The part of an adaptive wait that reads the clock.
#[inline(never)]
fn spin_by_clock<R>(
    context: &SpinContext<'_>,
    mut poll: impl FnMut() -> Option<R>,
) -> SpinOutcome<R> {
    let Parker { stats, side, .. } = *context.parker;
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
