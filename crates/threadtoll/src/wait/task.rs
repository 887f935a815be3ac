//! Tasks that wait: a side may leave a waker instead of sleeping on the word.
//!
//! A task waits by the protocol of a sleeping thread ([`super::park`]): it sets its side's bit,
//! executes the barrier, polls once more, and returns `Pending` instead of sleeping. Before it sets
//! the bit, it stores its waker in the side's [`WakerCell`](super::WakerCell). The end that clears
//! the bit takes the waker from there; if there is none, it wakes a thread.
//!
//! **No wake-up is lost** although an end that finds no waker wakes no task. Each poll that returns
//! `Pending` sets the bit by a read-modify-write, after it has stored its waker and before it polls
//! for the last time. Consider an end that has published something and cleared the bit. Of the
//! polls whose read-modify-write comes before the one that cleared the bit, take the last. If its
//! waker is still in the cell, the end finds it. If another end has claimed it, that end wakes the
//! task, which polls again. If the waiting side has withdrawn it, that side is in a later poll. A
//! later poll's read-modify-write reads the cleared bit, so that it finds what was published.
//!
//! A poll that comes while an end moves the last waker out cannot store its own. It wakes its own
//! task and returns `Pending`. That costs another poll, and is rare: moving takes nanoseconds.

use std::task::Waker;

use super::park::{FenceOutcome, Probe, WaitOutcome, announce_and_poll, wait};
use super::parker::Parker;
use super::waker_cell::Busy;
use crate::sync::{Instant, mutate};

/// A waiter: a thread or a task. It is no part of [`Until`](super::Until), so that `Until` fits
/// into two registers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waiter<'a> {
    /// This thread, until the deadline, if there is one.
    Thread(Option<Instant>),
    /// The task with this waker. It is woken later, and this thread does not wait.
    Task(&'a Waker),
}

/// [`wait`] or [`watch`].
#[inline(always)]
pub(crate) fn wait_by<R>(
    waiter: Waiter<'_>,
    parker: Parker<'_>,
    announce: impl FnMut(u32) -> FenceOutcome,
    poll: impl FnMut(Probe) -> Option<R>,
) -> WaitOutcome<R> {
    match waiter {
        Waiter::Thread(deadline) => wait(parker, deadline, announce, poll),
        Waiter::Task(waker) => watch(parker, waker, announce, poll),
    }
}

/// Ensures that the task with this waker is woken once there is something to find, unless a poll
/// finds it at once. `TimedOut` means that the task has to wait. The caller has just polled.
#[cold]
pub(super) fn watch<R>(
    parker: Parker<'_>,
    waker: &Waker,
    announce: impl FnMut(u32) -> FenceOutcome,
    poll: impl FnMut(Probe) -> Option<R>,
) -> WaitOutcome<R> {
    if parker.is_forked() {
        return WaitOutcome::Forked;
    }
    if let Some(Err(Busy)) = parker.task.map(|task| task.register(waker)) {
        mutate!(wake_self, waker.wake_by_ref() => ());
        return WaitOutcome::TimedOut;
    }
    match announce_and_poll(parker, announce, poll) {
        Ok(asleep) => {
            if asleep.longest_sleep.is_some() {
                // Nobody may see the bit, so the task has to poll.
                parker.clear(asleep.to_clear);
                mutate!(wake_self, waker.wake_by_ref() => ());
            }
            WaitOutcome::TimedOut
        }
        Err(found) => {
            drop(parker.unwatch(false));
            WaitOutcome::Found(found)
        }
    }
}
