//! Sleeping until the other side has published something, without missing a wake-up.
//!
//! The two sides of a queue share a word. A side that is about to sleep sets its bit, executes a
//! barrier, polls once more, and sleeps on the word. The other side publishes, executes a barrier,
//! and reads the word; if it finds the bit, it clears the bit and wakes the sleeper. This is
//! Dekker's pattern: at least one side sees what the other wrote. The barriers are
//! [`crate::sync::request_barrier`] and [`crate::sync::light_barrier`].

use std::cell::Cell;
use std::time::Duration;

use super::WaitStats;
use super::parker::Parker;
use super::strategy::{SpinContext, SpinOutcome, spin_times};
use super::waker_cell::{WakerCell, wake_task};
use crate::sync::{
    AtomicU32, Instant, Ordering, PendingBarrier, fence, futex_wait, futex_wake, mutate, nap,
    request_barrier,
};

/// Number of polls between two checks of a barrier that another thread executes: about 0.4 µs.
const POLLS_PER_ROUND: u32 = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 1 } else { 16 };
/// Number of checks of another thread's barrier before this thread executes the barrier itself:
/// together about 25 µs, longer than a barrier takes.
const ROUNDS_BEFORE_FORCE: u32 = 64;

/// Maximum length of a sleep if the kernel does not ensure that the other side sees the sleeper's
/// bit.
const NAP: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    Now,
    /// `None` waits forever.
    Deadline(Option<Instant>),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WaitOutcome<R> {
    Found(R),
    /// The deadline has passed, or a task has to wait.
    TimedOut,
    /// This is a forked child, in which the other end has no thread.
    Forked,
}

/// Result of a receiver's successful poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polled {
    Message,
    /// The other side has left, and everything has been received.
    Closed,
}

/// The two kinds of poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// Is allowed to miss a message that has just been published, because another poll follows.
    Racy,
    /// Comes after the barrier and must not miss any message: the thread sleeps if it finds none.
    Fenced,
}

/// Result of the barrier between setting a bit and polling once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FenceOutcome {
    /// The barrier was executed: if the next poll misses a message, the end that publishes it sees
    /// the bit.
    Fenced,
    /// Another thread is in `membarrier(2)`. Once the pending barrier has been executed, this
    /// outcome is like `Fenced`.
    Pending(PendingBarrier),
    /// There was no barrier: an end may publish without seeing the bit, so do not sleep for longer
    /// than this.
    NapAtMost(Duration),
}

impl FenceOutcome {
    fn of_barrier(done: bool) -> Self {
        if done { FenceOutcome::Fenced } else { FenceOutcome::NapAtMost(NAP) }
    }

    /// Returns `true` if the barrier has been executed by now. Executes nothing.
    pub(crate) fn is_fenced(self) -> bool {
        match self {
            FenceOutcome::Fenced => true,
            FenceOutcome::Pending(barrier) => barrier.is_done(),
            FenceOutcome::NapAtMost(_) => false,
        }
    }

    /// Waits until everything that an end published without seeing the bit is visible.
    pub(crate) fn settle(self) {
        match self {
            FenceOutcome::Fenced => {}
            FenceOutcome::Pending(barrier) => Self::of_barrier(barrier.force()).settle(),
            FenceOutcome::NapAtMost(limit) => nap(limit),
        }
    }
}

/// Polls while another thread executes a barrier. If that takes longer than a barrier should,
/// executes the barrier in this thread. Returns `Err` with the result of a successful poll, or `Ok`
/// with the outcome of the barrier.
#[cold]
fn poll_until_fenced<R>(
    barrier: PendingBarrier,
    mut poll: impl FnMut(Probe) -> Option<R>,
) -> Result<FenceOutcome, R> {
    for _ in 0..ROUNDS_BEFORE_FORCE {
        if let Some(found) = spin_times(POLLS_PER_ROUND, || poll(Probe::Racy)) {
            return Err(found);
        }
        if let Some(done) = barrier.poll() {
            return Ok(FenceOutcome::of_barrier(done));
        }
    }
    Ok(FenceOutcome::of_barrier(barrier.force()))
}

/// Executes the barrier for both sides; pairs with [`crate::sync::light_barrier`] in a send.
/// Without it, the sleeper's bit and the sender's message could both be in store buffers while each
/// side reads the old value of the other side's word.
pub(crate) fn barrier_or_nap() -> FenceOutcome {
    match request_barrier() {
        Ok(done) => FenceOutcome::of_barrier(done),
        Err(barrier) => FenceOutcome::Pending(barrier),
    }
}

/// Waits until `poll` finds something. `announce` executes the barrier after the parker's bits were
/// set; its argument is the word's value before they were set.
#[inline(always)]
pub(crate) fn wait<R>(
    parker: Parker<'_>,
    deadline: Option<Instant>,
    announce: impl FnMut(u32) -> FenceOutcome,
    mut poll: impl FnMut(Probe) -> Option<R>,
) -> WaitOutcome<R> {
    let context = SpinContext { deadline, parker: &parker, rounds: Cell::new(0) };
    match parker.stats.wait.spin(&context, || poll(Probe::Racy)) {
        SpinOutcome::Found(found) => WaitOutcome::Found(found),
        SpinOutcome::Park => sleep(parker, deadline, announce, poll),
        SpinOutcome::TimedOut => final_poll(parker, poll),
    }
}

/// Called when the deadline has passed or this is a forked child. If the deadline has passed, polls
/// a last time, and anything that this poll finds still counts.
#[cold]
fn final_poll<R>(parker: Parker<'_>, mut poll: impl FnMut(Probe) -> Option<R>) -> WaitOutcome<R> {
    if parker.is_forked() {
        return WaitOutcome::Forked;
    }
    mutate!(look_after_sleep, poll(Probe::Fenced) => None)
        .map_or(WaitOutcome::TimedOut, WaitOutcome::Found)
}

/// A side that has set its bit, and has polled after the barrier in vain.
pub(super) struct Asleep {
    /// The value of the word if nobody has cleared the bit since.
    expected_word: u32,
    /// The bits that this side clears when it wakes up.
    pub(super) to_clear: u32,
    /// Set if there was no barrier.
    pub(super) longest_sleep: Option<Duration>,
}

/// Sets the side's bits, executes the barrier, and polls once more. Returns `Err` with the result
/// of a successful poll; the bits are then cleared again.
#[inline(always)]
pub(super) fn announce_and_poll<R>(
    parker: Parker<'_>,
    mut announce: impl FnMut(u32) -> FenceOutcome,
    mut poll: impl FnMut(Probe) -> Option<R>,
) -> Result<Asleep, R> {
    let Parker { word, bit, sticky_bits, .. } = parker;
    // Acquire: if the other side clears the bit again, the poll below sees what it published.
    // Release: the other side sees the waker.
    let before = word.fetch_or(bit | sticky_bits, Ordering::AcqRel);
    debug_assert!(
        parker.pending_wakeups.is_some() || parker.task.is_some() || before & bit == 0,
        "this side was still marked as asleep: {before:#b}"
    );
    let mut outcome = mutate!(announce, announce(before) => FenceOutcome::Fenced);
    if let FenceOutcome::Pending(barrier) = outcome {
        // An error also clears the sticky bits, because the barrier on which they rely has not been
        // executed.
        outcome = poll_until_fenced(barrier, &mut poll)
            .inspect_err(|_| parker.clear(bit | sticky_bits))?;
    }
    let mut to_clear = bit;
    let mut longest_sleep = None;
    if let FenceOutcome::NapAtMost(nap) = outcome {
        longest_sleep = Some(nap);
        to_clear |= sticky_bits;
    }
    if let Some(found) = mutate!(look_before_sleep, poll(Probe::Fenced) => None) {
        parker.clear(to_clear);
        return Err(found);
    }
    Ok(Asleep { expected_word: before | bit | sticky_bits, to_clear, longest_sleep })
}

#[inline(never)]
fn sleep<R>(
    parker: Parker<'_>,
    deadline: Option<Instant>,
    mut announce: impl FnMut(u32) -> FenceOutcome,
    mut poll: impl FnMut(Probe) -> Option<R>,
) -> WaitOutcome<R> {
    let Parker { word, stats, side, .. } = parker;
    stats.refresh_affinity(side);
    // An end that finds a waker wakes no thread.
    drop(mutate!(forget_before_sleep, parker.unwatch(false) => None));
    loop {
        if parker.is_forked() {
            return WaitOutcome::Forked;
        }
        let sleep = stats.begin_sleep();
        let mut limit = match deadline {
            Some(deadline) => match deadline.saturating_duration_since(Instant::now()) {
                Duration::ZERO => return final_poll(parker, poll),
                left => Some(left),
            },
            None => None,
        };
        let asleep = match announce_and_poll(parker, &mut announce, &mut poll) {
            Ok(asleep) => asleep,
            Err(found) => {
                stats.cancel_sleep(side);
                return WaitOutcome::Found(found);
            }
        };
        let Asleep { expected_word, to_clear, longest_sleep } = asleep;
        limit = limit.into_iter().chain(longest_sleep).min();
        let sleep = stats.fell_asleep(sleep);
        let counted = futex_wait(
            word,
            mutate!(expected_word, expected_word => word.load(Ordering::Relaxed)),
            limit,
        );
        if counted && let Some(pending) = parker.pending_wakeups {
            mutate!(woken_has_come, pending.fetch_sub(1, Ordering::Relaxed) => 0);
            // Pairs with the waker's fence: if the waker still counted this thread as pending, and
            // therefore woke no other, the poll below finds what the waker published.
            fence(Ordering::SeqCst);
        }
        // Acquire: if the other side has cleared the bit, the poll below sees what it published.
        if word.load(Ordering::Acquire) & to_clear != 0 {
            parker.clear(to_clear);
        }
        stats.end_sleep(side, sleep);
        // Polls even after the deadline, because this may have been the only wake-up for several
        // threads.
        if let Some(found) = mutate!(look_after_sleep, poll(Probe::Fenced) => None) {
            return WaitOutcome::Found(found);
        }
    }
}

/// Wakes the thread that sleeps with this bit, or the task that waits with it. `side` is the
/// caller's own side.
#[cold]
pub(crate) fn wake(
    word: &AtomicU32,
    bit: u32,
    task: Option<&WakerCell>,
    stats: &WaitStats,
    side: usize,
) {
    // Release: a side that finds its bit cleared sees what was published before. Acquire: the waker
    // that was stored before the bit was set is visible.
    if word.fetch_and(!bit, Ordering::AcqRel) & bit == 0 {
        return;
    }
    if let Some(waker) = task.and_then(WakerCell::take) {
        mutate!(ring_task, wake_task(waker) => ());
    } else {
        stats.record_wake(side);
        futex_wake(word, u32::MAX);
    }
}

/// Wakes up to `most` of the threads that share a bit. Only one thread at a time may call this,
/// unless `most` is the largest number: then whoever clears the bit wakes all, and does not set it
/// again.
///
/// The bits from `epoch` up count the calls. So a thread that has set the bit but is not asleep yet
/// does not fall asleep, even if another thread sets the bit again after this call has cleared it.
/// If `most` threads were woken, more may be asleep, so the bit is set again.
///
/// Returns the word before this call.
#[cold]
pub(crate) fn wake_some(parker: Parker<'_>, epoch: u32, side: usize, most: u32) -> u32 {
    let Parker { word, bit, stats, pending_wakeups, .. } = parker;
    let mut seen = word.load(Ordering::Relaxed);
    // Release: as in `wake`.
    while let Err(other) = word.compare_exchange_weak(
        seen,
        (seen & !bit).wrapping_add(mutate!(epoch, epoch => 0)),
        Ordering::AcqRel,
        Ordering::Relaxed,
    ) {
        seen = other;
    }
    if seen & bit == 0 {
        return seen;
    }
    stats.record_wake(side);
    let woken = futex_wake(word, most);
    if let Some(pending) = pending_wakeups {
        // Relaxed: only the waker reads this count. A woken thread may subtract itself first, which
        // is harmless.
        pending.fetch_add(woken as usize, Ordering::Relaxed);
    }
    if mutate!(more_sleep, woken == most => false) {
        // Relaxed: the threads that are still asleep poll when they are woken.
        word.fetch_or(bit, Ordering::Relaxed);
    }
    seen
}
