//! A side of a queue that may sleep, and the word on which it sleeps.

use std::task::Waker;

use super::WaitStats;
use super::waker_cell::WakerCell;
use crate::sync::{AtomicU32, AtomicUsize, Ordering};

/// Bit 0 of every word on which threads sleep: always set, except in a forked child, which finds
/// its copy of the word wiped.
///
/// A side uses one more bit of the word, and possibly sticky bits ([`Parker`]):
///
/// | `ALIVE` | its bit | its sticky bits | the side is |
/// |---|---|---|---|
/// | 1 | 0 | 0 | awake |
/// | 1 | 1 | 0 or 1 | asleep, about to sleep, or a waiting task: whoever publishes wakes it |
/// | 1 | 0 | 1 | awake again after a sleep |
/// | 0 | – | – | in a forked child: the other bits mean nothing |
///
/// A side clears its sticky bits only together with its own bit or while it is awake. The other
/// side may clear them at any time, by a read-modify-write: see [`super::for_now`].
pub(crate) const ALIVE: u32 = 1;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Parker<'a> {
    /// The word that both sides share; 0 in a forked child.
    pub(crate) word: &'a AtomicU32,
    pub(crate) bit: u32,
    /// Bits that are set together with the side's own bit. They stay set after the sleep, unless
    /// the barrier was not executed.
    pub(crate) sticky_bits: u32,
    pub(crate) stats: &'a WaitStats,
    /// Number of this side: 0 or 1.
    pub(crate) side: usize,
    /// The waker of this side, if it may wait in a task.
    pub(crate) task: Option<&'a WakerCell>,
    /// For a bit that several threads share: the number of threads that have been woken and have
    /// not polled since. Only the waker clears such a bit. If the bit stays set too long, it causes
    /// an unnecessary wake-up; if a sleeper cleared it, another sleeper could miss its wake-up.
    pub(crate) pending_wakeups: Option<&'a AtomicUsize>,
    /// Number of times that a thread that waits by `Park` polls before it sleeps.
    pub(crate) spins_before_park: u32,
    /// The process in which the queue was created.
    pub(crate) process: u32,
}

impl Parker<'_> {
    #[inline]
    pub(super) fn clear(&self, bits: u32) {
        if self.pending_wakeups.is_none() {
            self.word.fetch_and(!bits, Ordering::Relaxed);
        }
    }

    /// Takes back that a task waits, if an end has not woken it since. Returns the waker, for the
    /// caller to drop: its destructor may panic.
    ///
    /// `unsettled` is true if there was no barrier after this side set its bits. The sticky ones
    /// are then cleared, too.
    #[cold]
    pub(crate) fn unwatch(&self, unsettled: bool) -> Option<Waker> {
        let task = self.task?;
        let bits = self.bit | if unsettled { self.sticky_bits } else { 0 };
        // Relaxed: this finds the bits that this side has set. One that only the other side has set
        // may stay. An end that has just cleared this side's bit may still wake the task, or a
        // thread of this side, in vain.
        if self.word.load(Ordering::Relaxed) & bits != 0 {
            self.clear(bits);
        }
        task.withdraw().unwrap_or_default()
    }

    /// Stores the waker, and sets this side's bits. Returns the word's value before that, or `None`
    /// if another end is moving the last waker out, so that this side has to poll again.
    pub(crate) fn watch(&self, waker: &Waker) -> Option<u32> {
        self.task?.register(waker).ok()?;
        // As in `announce_and_poll`.
        Some(self.word.fetch_or(self.bit | self.sticky_bits, Ordering::AcqRel))
    }

    /// Returns `true` in a forked child, if the kernel has wiped the word.
    #[inline]
    pub(super) fn is_wiped(&self) -> bool {
        self.word.load(Ordering::Relaxed) & ALIVE == 0
    }

    /// Returns `true` in a forked child.
    #[cold]
    pub(crate) fn is_forked(&self) -> bool {
        self.is_wiped() || crate::sync::is_other_process(self.process)
    }
}
