//! Sleeping until somebody says that there is something, without ever missing it.
//!
//! The two sides of a queue share a word. A side that is about to sleep sets its bit there, makes
//! sure that the other side will see it (or has already published what is waited for), looks once
//! more, and sleeps on the word. The other side publishes, then looks at the word, and if it finds
//! the bit, clears it and wakes the sleeper. The order "set, barrier, look" against "publish,
//! barrier, look" is Dekker's; the barriers are [`crate::sync::light_barrier`] and
//! [`crate::sync::heavy_barrier`].

use std::cell::Cell;
use std::time::Duration;

use super::strategy::{SpinContext, SpinOutcome};
use super::{Wait, WaitStats};
use crate::sync::{
    AtomicU32, AtomicUsize, Instant, Ordering, fence, futex_wait, futex_wake, heavy_barrier,
    mutate, nap,
};

/// Bit 0 of every word that threads sleep on: always set, except in a forked child, which finds its
/// copy of the word wiped.
///
/// A side uses one more bit of the word, and perhaps sticky bits ([`Parker`]):
///
/// | `ALIVE` | its bit | its sticky bits | the side is |
/// |---|---|---|---|
/// | 1 | 0 | 0 | awake |
/// | 1 | 1 | 1 | asleep or about to sleep: whoever publishes must wake it |
/// | 1 | 0 | 1 | awake again, after a sleep whose announcement everyone was sure to see |
/// | 0 | – | – | in a forked child: the other bits mean nothing |
///
/// A side clears its sticky bits only while it is awake, so its own bit is never set without them.
pub(crate) const ALIVE: u32 = 1;

/// Longest nap where the kernel does not promise that the other side sees our bit.
const NAP: Duration = Duration::from_millis(1);

/// Limit of a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    Now,
    /// `None`: for ever.
    Deadline(Option<Instant>),
}

/// How waiting ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WaitOutcome<R> {
    /// It was there.
    Found(R),
    /// The deadline passed.
    TimedOut,
    /// This process is a child of the one in which the queue was made: nobody will ever come.
    Forked,
}

/// Whether a look may overlook what was published a moment ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// It may: another look follows.
    Racy,
    /// It may not: whoever finds nothing goes to sleep.
    Fenced,
}

/// What a side has achieved that announced its sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FenceOutcome {
    /// Anyone who publishes from now on will see that somebody sleeps; the next look sees
    /// everything published before.
    Fenced,
    /// Somebody may publish and not see it: no sleep longer than this.
    NapAtMost(Duration),
}

impl FenceOutcome {
    /// Waits until everything is visible here that was published by somebody who did not see the
    /// announcement.
    pub(crate) fn settle(self) {
        if let FenceOutcome::NapAtMost(limit) = self {
            nap(limit);
        }
    }
}

/// Announces by the barrier that the other side leaves out. The partner of
/// [`crate::sync::light_barrier`] in a send: without it, the sleeper's bit may still be on its way
/// when the sender, having looked at an old word, is gone; and its message may be on its way while
/// we look.
pub(crate) fn barrier_or_nap() -> FenceOutcome {
    if heavy_barrier() { FenceOutcome::Fenced } else { FenceOutcome::NapAtMost(NAP) }
}

/// A side of a queue that may sleep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parker<'a> {
    /// The word that both sides share; 0 in a forked child.
    pub(crate) word: &'a AtomicU32,
    /// This side's bit.
    pub(crate) bit: u32,
    /// Bits that are set with it, and stay if everyone who publishes is sure to see them.
    pub(crate) sticky_bits: u32,
    pub(crate) stats: &'a WaitStats,
    /// 0 or 1.
    pub(crate) side: usize,
    /// Number of threads that were woken and have not looked since, where others may sleep by the
    /// same bit. Only the waker clears such a bit: left standing, it costs a needless wake-up;
    /// cleared too early, it would cost another thread's.
    pub(crate) pending_wakeups: Option<&'a AtomicUsize>,
    /// Looks of one that otherwise sleeps at once.
    pub(crate) spins_before_park: u32,
    /// The process in which the queue was made.
    pub(crate) process: u32,
}

impl Parker<'_> {
    /// Takes these bits back.
    fn clear(&self, bits: u32) {
        if self.pending_wakeups.is_none() {
            self.word.fetch_and(!bits, Ordering::Relaxed);
        }
    }

    /// Whether this is a forked child, as far as a load can tell.
    pub(super) fn is_wiped(&self) -> bool {
        self.word.load(Ordering::Relaxed) & ALIVE == 0
    }

    /// Whether this is a forked child.
    #[cold]
    pub(super) fn is_forked(&self) -> bool {
        self.is_wiped() || crate::sync::is_other_process(self.process)
    }
}

/// Waits as `W` does until `poll` finds something. `announce` makes sure that everyone who
/// publishes sees the sleeper's bits; it gets the word as it was before they were set.
#[inline(always)]
pub(crate) fn wait<W: Wait, R>(
    parker: Parker<'_>,
    deadline: Option<Instant>,
    announce: impl FnMut(u32) -> FenceOutcome,
    mut poll: impl FnMut(Probe) -> Option<R>,
) -> WaitOutcome<R> {
    let context = SpinContext { deadline, parker, rounds: Cell::new(0) };
    match W::spin(&context, || poll(Probe::Racy)) {
        SpinOutcome::Found(found) => WaitOutcome::Found(found),
        SpinOutcome::Park => sleep(parker, deadline, announce, poll),
        SpinOutcome::TimedOut => final_poll(parker, poll),
    }
}

/// The time is over, or this is a child: what is there now still counts.
#[cold]
fn final_poll<R>(parker: Parker<'_>, mut poll: impl FnMut(Probe) -> Option<R>) -> WaitOutcome<R> {
    if parker.is_forked() {
        return WaitOutcome::Forked;
    }
    mutate!(look_after_sleep, poll(Probe::Fenced) => None)
        .map_or(WaitOutcome::TimedOut, WaitOutcome::Found)
}

#[inline(never)]
fn sleep<R>(
    parker: Parker<'_>,
    deadline: Option<Instant>,
    mut announce: impl FnMut(u32) -> FenceOutcome,
    mut poll: impl FnMut(Probe) -> Option<R>,
) -> WaitOutcome<R> {
    let Parker { word, bit, sticky_bits, stats, side, .. } = parker;
    stats.refresh_affinity(side);
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
        // Acquire: if the other side clears the bit again, the look below sees what it published.
        let before = word.fetch_or(bit | sticky_bits, Ordering::AcqRel);
        debug_assert!(
            parker.pending_wakeups.is_some() || before & bit == 0,
            "this side was still marked as asleep: {before:#b}"
        );
        let expected_word = before | bit | sticky_bits;
        let mut to_clear = bit;
        if let FenceOutcome::NapAtMost(nap) =
            mutate!(announce, announce(before) => FenceOutcome::Fenced)
        {
            limit = Some(limit.map_or(nap, |limit| limit.min(nap)));
            to_clear |= sticky_bits;
        }
        if let Some(found) = mutate!(look_before_sleep, poll(Probe::Fenced) => None) {
            parker.clear(to_clear);
            stats.cancel_sleep(side);
            return WaitOutcome::Found(found);
        }
        let sleep = stats.fell_asleep(sleep);
        let counted = futex_wait(
            word,
            mutate!(expected_word, expected_word => word.load(Ordering::Relaxed)),
            limit,
        );
        if counted && let Some(pending) = parker.pending_wakeups {
            mutate!(woken_has_come, pending.fetch_sub(1, Ordering::Relaxed) => 0);
            // A waker that still counts this thread, and so wakes no other one, has published what
            // this thread now finds. The partner is the waker's fence.
            fence(Ordering::SeqCst);
        }
        // Acquire: as above.
        if word.load(Ordering::Acquire) & to_clear != 0 {
            parker.clear(to_clear);
        }
        stats.end_sleep(side, sleep);
        // Even if the deadline has passed: a wake-up that was meant for one of many must not be
        // lost.
        if let Some(found) = mutate!(look_after_sleep, poll(Probe::Fenced) => None) {
            return WaitOutcome::Found(found);
        }
    }
}

/// Wakes the side whose bit is set. `side` is the side that calls.
#[cold]
pub(crate) fn wake(word: &AtomicU32, bit: u32, stats: &WaitStats, side: usize) {
    // Release: whoever finds its bit cleared sees what was published before.
    if word.fetch_and(!bit, Ordering::AcqRel) & bit != 0 {
        stats.record_wake(side);
        futex_wake(word, u32::MAX);
    }
}

/// Wakes up to `most` threads that sleep by a bit that they share. Only one thread at a time may
/// call this.
///
/// The bits from `epoch` to the top of the word count the calls. So a thread that has set the bit
/// and is not asleep yet looks again, even if another one sets the bit after this call has cleared
/// it. If `most` threads were woken, more may be asleep: the bit is set again.
#[cold]
pub(crate) fn wake_some(parker: Parker<'_>, epoch: u32, side: usize, most: u32) {
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
        return;
    }
    stats.record_wake(side);
    let woken = futex_wake(word, most);
    if let Some(pending) = pending_wakeups {
        // Relaxed: only the waker reads it. A woken thread may subtract itself before this; that
        // does no harm.
        pending.fetch_add(woken as usize, Ordering::Relaxed);
    }
    if mutate!(more_sleep, woken == most => false) {
        // Relaxed: those that still sleep look when they are woken.
        word.fetch_or(bit, Ordering::Relaxed);
    }
}
