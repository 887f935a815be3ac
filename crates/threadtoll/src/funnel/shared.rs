//! State that the ends of a funnel share: above all the tail, one word that tells a sender
//! everything.
//!
//! Drawing a ticket returns the whole word, so a sender learns for free that somebody must be
//! woken. The receiver sets `RECEIVER_PARKED` by a compare-and-swap that succeeds only if it has
//! seen every ticket that was drawn, so all of this has one order and no barrier can be forgotten.
//! `MpscBlockingConsumerArrayQueue` of JCTools marks its sleeping consumer this way.
//!
//! # Senders that wait for room
//!
//! Senders that find a bounded funnel full sleep on a word of their own, the senders' bell. To wake
//! all of them for one place would have all but one go back to sleep, and to wake one for each
//! place wakes many in vain while running senders take the places. So a receive wakes as many as
//! there are places, less those that were woken before and have not looked yet (`pending_wakeups`).
//! Four rules make sure that no sender sleeps while there is room and every sender that was woken
//! has run:
//!
//! - *The bit is set while a sender sleeps.* A sender sets it before its last look, and only the
//!   receiver clears it, before it wakes. If it woke as many as it asked for, more may be asleep,
//!   and it sets the bit again. If it woke fewer, nobody is.
//! - *A sender that set the bit before the receiver cleared it, and is not asleep yet, does not
//!   fall asleep.* `futex(2)` compares the whole word, which each wake-up changes by `EPOCH`, even
//!   if a second sender sets the bit again.
//! - *A sender that was woken looks for room before it does anything else*, also if its deadline
//!   has passed meanwhile. It takes the room, or finds that another sender has.
//! - *A sender is counted as coming until just before that look.* It subtracts itself, fences, and
//!   looks; the receiver makes room, fences, and reads the count. So one that is counted finds this
//!   room.
//!
//! Suppose that a sender sleeps for good, with room left. Consider the last time that room was
//! made, when n places were free. The sender's last look found none, so it was before that, and the
//! receiver saw the bit (the barrier is between the sender's announcement and its look). So n
//! senders were coming or woken then, since one was left asleep, and each looked later. Had one of
//! them found no room, none would be left, as no more was made. So each took a place, and none is
//! left.
//!
//! No order is kept: a sender that comes along may take the room before the sender that was woken
//! for it, which then sleeps again. A sender that is stopped when it was woken keeps its place from
//! others that sleep, until the next receive. A receiver that finds nothing more sleeps for no more
//! than a millisecond then, and wakes others for that place.
//!
//! # A receiver that leaves
//!
//! It drops what was sent. If a sender is in the middle of a send, or was when it was stopped, the
//! receiver does not wait for it: it tells how far it has come (`taken`), sets `GONE_MID_SEND` in
//! the senders' bell, and looks at all slots once more. A sender stores its stamp, and then looks
//! for `GONE_MID_SEND`. This is Dekker's pattern: with a barrier on both sides at least one of them
//! sees the other. The sender's is the light one, and one load of a word that is hardly ever
//! written; the receiver pays for the heavy one, and only if there are tickets without a message.
//! If the kernel refuses it, or nobody is to be interrupted, the receiver naps before it looks: by
//! then the sender's stamp has left its CPU's store buffer. If even that failed, the message would
//! be dropped at the end of the funnel. A compare-and-swap of the stamp decides who has a message
//! that both see. The sender takes it back.
//!
//! A sender whose stamp was seen before `GONE_MID_SEND` was set may look for it late, when its
//! message was received long ago and its chunk is given back. `taken` tells.

use std::time::Duration;

use super::chunk::Slot;
use super::chunks::{Chunks, Reader};
use crate::first_panic::FirstPanic;
use crate::sync::{
    self, AtomicU32, AtomicU64, AtomicUsize, CachePadded, Ordering, UnsafeCell, WipeOnFork, fence,
    light_barrier, mutate,
};
use crate::wait::{FenceOutcome, Parker, Wait, WaitStats};

// `Shared::tail`: the next ticket in the bits from `TICKET` up, and below it one of these
// combinations. `is_legal` asserts it whenever a bit is set.
//
// | `SENDERS_GONE` | `ALIVE` | `RECEIVER_GONE` | `RECEIVER_PARKED` | |
// |---|---|---|---|---|
// | 0 | 1 | 0 | 0 | messages come and are received |
// | 0 | 1 | 0 | 1 | the receiver sleeps, or is about to: a sender that draws a ticket wakes it |
// | 0 | 1 | 1 | 0 | the receiver is gone: tickets from here on are void |
// | 1 | 1 | 0 | 0 | the last sender is gone: what is left is received |
// | 1 | 1 | 0 | 1 | the last sender is gone, and wakes the receiver, or the receiver will see it |
// | 1 | 1 | 1 | 0 | both sides are gone |
// | – | 0 | – | – | a forked child: the other bits mean nothing |
pub(super) const RECEIVER_PARKED: u64 = 1;
pub(super) const RECEIVER_GONE: u64 = 1 << 1;
pub(super) const ALIVE: u64 = 1 << 2;
pub(super) const SENDERS_GONE: u64 = 1 << 3;
const SHIFT: u32 = 4;
/// One ticket.
pub(super) const TICKET: u64 = 1 << SHIFT;

/// The ticket that a value of the tail holds.
#[inline(always)]
pub(super) fn ticket(tail: u64) -> u64 {
    tail >> SHIFT
}

/// Returns `true` if the table above has this tail.
pub(super) fn is_legal(tail: u64) -> bool {
    tail & ALIVE == 0 || tail & RECEIVER_GONE == 0 || tail & RECEIVER_PARKED == 0
}

// `Shared::receiver_futex`, on which the receiver sleeps. It is 0 in a forked child.
//
// | `RECEIVER_SLEEPS` | `FUTEX_ALIVE` | |
// |---|---|---|
// | 0 | 1 | the receiver is awake |
// | 1 | 1 | it sleeps, or is about to |
//
// `Shared::senders_futex`, on which senders sleep for want of room. It is 0 in a forked child. The
// bits from `EPOCH` up count how often senders were woken. The bits below are independent, so every
// combination occurs:
//
// | bit | 0 | 1 |
// |---|---|---|
// | `GONE_MID_SEND` | the receiver lives, or left no ticket without a message | it left, and a sender in the middle of a send must look at `taken` |
// | `MUST_FENCE` | a sender makes the receiver's CPU fence before it sleeps | the receiver fences: there is no membarrier, or nobody may be interrupted, and the funnel is bounded |
// | `SENDERS_SLEEP` | no sender sleeps | one sleeps, is about to, or has just found room itself |
// | `FUTEX_ALIVE` | never | always |
const FUTEX_ALIVE: u32 = crate::wait::ALIVE;
const RECEIVER_SLEEPS: u32 = 1 << 1;
const SENDERS_SLEEP: u32 = 1 << 1;
const MUST_FENCE: u32 = 1 << 2;
const GONE_MID_SEND: u32 = 1 << 3;
const EPOCH: u32 = 1 << 4;

/// Time after which every store of a send is visible.
const NAP: Duration = Duration::from_millis(1);

/// The senders' side of a [`WaitStats`].
pub(super) const SENDERS: usize = 0;
/// The receiver's.
pub(super) const RECEIVER: usize = 1;

pub(super) struct Shared<T> {
    /// See above. Written with each send.
    pub(super) tail: WipeOnFork<AtomicU64>,
    /// Where the receiver sleeps. Written only when it does, and when it is woken.
    receiver_futex: WipeOnFork<AtomicU32>,
    /// Where senders sleep for want of room. Written only when one does, when some are woken, and
    /// when the receiver leaves.
    senders_futex: WipeOnFork<AtomicU32>,
    /// Senders that were woken and have not looked for room since. A spurious wake-up may take it
    /// below 0, which wraps around.
    pending_wakeups: AtomicUsize,
    /// Tickets that the receiver is done with. Written with each message; senders read it only at a
    /// ceiling.
    pub(super) taken: CachePadded<AtomicU64>,
    pub(super) chunks: Chunks<T>,
    /// Most messages under way; `None` if there is no limit.
    pub(super) capacity: Option<u64>,
    /// The receiver executes no heavy barrier as it leaves: there is none, or nobody is to be
    /// interrupted.
    avoids_barrier: bool,
    pub(super) stats: WaitStats,
    pub(super) senders: AtomicUsize,
    process: u32,
    abandoned: UnsafeCell<Option<Abandoned<T>>>,
}

// SAFETY: a message is written by the one sender that drew its ticket and read by the one receiver,
// handed over by its stamp's release and acquire, or taken back by that sender, which the stamp
// tells as well, so the funnel moves values of a `Send` type from thread to thread and shares none.
// Everything else is atomics, or `abandoned`, which is handed over by the end of the last owner.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub(super) fn new<W: Wait>(retain_bytes: usize, capacity: Option<u64>, fence: bool) -> Self {
        let avoids_barrier = fence || sync::senders_must_fence();
        // Only senders that wait for room need one of the two.
        let fence = if capacity.is_some() && avoids_barrier { MUST_FENCE } else { 0 };
        Shared {
            tail: WipeOnFork::new(AtomicU64::new(ALIVE)),
            receiver_futex: WipeOnFork::new(AtomicU32::new(FUTEX_ALIVE)),
            pending_wakeups: AtomicUsize::new(0),
            senders_futex: WipeOnFork::new(AtomicU32::new(FUTEX_ALIVE | fence)),
            taken: CachePadded(AtomicU64::new(0)),
            chunks: Chunks::new(retain_bytes),
            capacity,
            avoids_barrier,
            stats: WaitStats::new::<W>(),
            senders: AtomicUsize::new(1),
            process: sync::process(),
            abandoned: UnsafeCell::new(None),
        }
    }

    pub(super) fn capacity(&self) -> Option<usize> {
        self.capacity.map(|capacity| capacity as usize)
    }

    pub(super) fn parker(&self, side: usize) -> Parker<'_> {
        let many = side == SENDERS;
        Parker {
            word: if many { &self.senders_futex } else { &self.receiver_futex },
            bit: if many { SENDERS_SLEEP } else { RECEIVER_SLEEPS },
            stats: &self.stats,
            side,
            sticky_bits: 0,
            pending_wakeups: many.then_some(&self.pending_wakeups),
            spins_before_park: if many { crate::wait::SPINS_BEFORE_PARK } else { 0 },
            process: self.process,
        }
    }

    /// Makes sure that the receiver's next look at the senders' bell finds the bit of a sender that
    /// is about to sleep, or that this sender's next look finds the room that the receiver has
    /// made.
    pub(super) fn announce(&self) -> FenceOutcome {
        if self.senders_futex.load(Ordering::Relaxed) & MUST_FENCE == 0 {
            return crate::wait::barrier_or_nap();
        }
        // The partner of the one in `publish_taken_slow`.
        mutate!(funnel_fence_of_sleeper, fence(Ordering::SeqCst) => ());
        FenceOutcome::Fenced
    }

    /// Wakes the receiver, which was found parked.
    #[cold]
    pub(super) fn wake_receiver(&self) {
        // The receiver set its bit before the mark, which we have seen by acquire, so the bit is
        // there for us to clear, unless it has woken already. The mark stays until the receiver
        // takes it back: were it cleared here, a sender that is held up before it has woken the
        // receiver would keep those behind it from doing so.
        crate::wait::wake(&self.receiver_futex, RECEIVER_SLEEPS, &self.stats, SENDERS);
    }

    /// Tells the senders how far the receiver has come. False in a forked child.
    #[inline(always)]
    pub(super) fn publish_taken(&self, head: u64) -> bool {
        // Release: the partner of the acquire in `draw_if_room`.
        self.taken.store(head, Ordering::Release);
        // Between the store above and the load below stands the barrier of a sender that goes to
        // sleep for want of room.
        mutate!(barrier_in_funnel_recv, light_barrier() => ());
        let word = self.senders_futex.load(Ordering::Relaxed);
        word & (FUTEX_ALIVE | SENDERS_SLEEP | MUST_FENCE) == FUTEX_ALIVE
            || self.publish_taken_slow(head)
    }

    /// Room was made, and a sender sleeps, or must be fenced for, or this is a forked child, which
    /// is told by false.
    #[cold]
    fn publish_taken_slow(&self, head: u64) -> bool {
        // The partner of the one in `announce`, and of the one behind a sender's sleep.
        mutate!(funnel_fence_without_membarrier, fence(Ordering::SeqCst) => ());
        let word = self.senders_futex.load(Ordering::Acquire);
        if word & SENDERS_SLEEP != 0 {
            let (room, pending) = (self.room(head), self.pending_wakeups());
            let most =
                mutate!(wake_for_all_room, room.saturating_sub(pending) => 1 - pending.min(1));
            if most > 0 {
                self.wake_senders(most);
            }
        }
        word & FUTEX_ALIVE != 0
    }

    fn room(&self, head: u64) -> u64 {
        // Relaxed: an old tail shows too much room, which wakes too many.
        let under_way = ticket(self.tail.load(Ordering::Relaxed)).saturating_sub(head);
        self.capacity.unwrap_or(0).saturating_sub(under_way)
    }

    /// Number of senders that were woken and have not looked for room since.
    fn pending_wakeups(&self) -> u64 {
        self.pending_wakeups.load(Ordering::Relaxed).cast_signed().max(0) as u64
    }

    /// Room that senders were woken for which have not come, while others may be asleep. A receiver
    /// that sleeps makes no more room, so if the first ones are stopped, the others would wait for
    /// them.
    pub(super) fn unclaimed_room(&self, head: u64) -> u64 {
        // Relaxed: this is about a bit that the receiver itself has set again.
        let asleep = self.senders_futex.load(Ordering::Relaxed) & SENDERS_SLEEP != 0;
        if asleep && self.pending_wakeups() > 0 { self.room(head) } else { 0 }
    }

    /// Wakes up to `most` of the senders that wait for room.
    pub(super) fn wake_senders(&self, most: u64) {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        crate::wait::wake_some(self.parker(SENDERS), EPOCH, RECEIVER, most);
    }

    /// Goes on as if a sender had been woken for room, and stopped before it could look for it.
    #[cfg(test)]
    pub(super) fn stop_a_woken_sender(&self) {
        self.pending_wakeups.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns `true` if the receiver is gone.
    pub(super) fn is_disconnected(&self) -> bool {
        // In a forked child the word is 0.
        self.tail.load(Ordering::Acquire) & (ALIVE | RECEIVER_GONE) != ALIVE
    }

    /// Returns `true` in a forked child.
    pub(super) fn is_forked(&self) -> bool {
        self.senders_futex.load(Ordering::Relaxed) & FUTEX_ALIVE == 0
    }

    /// The receiver leaves: every message that was sent is dropped now.
    pub(super) fn receiver_leaves(&self, mut reader: Reader<T>) {
        // AcqRel: tickets drawn before this are valid, and those drawn later find `RECEIVER_GONE`.
        let tail = self.tail.fetch_or(RECEIVER_GONE, Ordering::AcqRel);
        debug_assert!(is_legal(tail | RECEIVER_GONE));
        mutate!(wake_senders_in_leave, self.wake_senders(u64::MAX) => ());
        let end = ticket(tail);
        let mut first_panic = FirstPanic::default();
        while reader.poll(&self.chunks, &self.tail) {
            first_panic.drop(reader.take());
        }
        if std::mem::needs_drop::<T>() && reader.head < end {
            self.set_gone(reader.head);
            mutate!(drop_behind_busy_sender, reader.claim_all(end, |message| first_panic.drop(message)) => ());
        }
        // SAFETY: read only by the drop of the funnel, which comes after this end's.
        self.abandoned
            .with_mut(|abandoned| unsafe { *abandoned = Some(Abandoned { reader, end }) });
        first_panic.resume();
    }

    /// Makes sure that a sender in the middle of a send finds `GONE_MID_SEND`, or that the
    /// receiver's next look finds its message. Every message below `head` was taken, and the
    /// receiver gives no chunk back any more.
    fn set_gone(&self, head: u64) {
        self.taken.store(head, Ordering::Relaxed);
        // Release: who finds the bit finds `taken`.
        self.senders_futex.fetch_or(GONE_MID_SEND, mutate!(say_gone, AcqRel));
        // The partner of the barrier in `put`.
        mutate!(barrier_in_funnel_leave, self.order_departure() => FenceOutcome::Fenced).settle();
    }

    fn order_departure(&self) -> FenceOutcome {
        if !self.avoids_barrier {
            return crate::wait::barrier_or_nap();
        }
        fence(Ordering::SeqCst);
        FenceOutcome::NapAtMost(NAP)
    }

    /// Puts a message into its slot. Hands it back if the receiver has left without it.
    ///
    /// # Safety
    ///
    /// The slot is that of this ticket, which the caller drew, and nothing was put there.
    #[inline(always)]
    pub(super) unsafe fn put(
        &self,
        slot: *const Slot<T>,
        ticket: u64,
        message: T,
    ) -> Result<(), T> {
        // SAFETY: alive until the stamp is there, since the receiver does not pass this ticket.
        let place = unsafe { &*slot };
        // SAFETY: the caller's promise.
        unsafe { place.put(ticket, message) };
        if std::mem::needs_drop::<T>() {
            // The partner of the one in `set_gone`.
            mutate!(barrier_in_funnel_send, light_barrier() => ());
            if self.senders_futex.load(Ordering::Relaxed) & GONE_MID_SEND != 0 {
                // SAFETY: just put there.
                return unsafe { self.take_back(slot, ticket) };
            }
        }
        Ok(())
    }

    /// Takes a message back if the receiver has left without it.
    ///
    /// # Safety
    ///
    /// The slot is that of this ticket, for which the caller has just put a message there. The
    /// caller has seen `GONE_MID_SEND`.
    #[cold]
    unsafe fn take_back(&self, slot: *const Slot<T>, ticket: u64) -> Result<(), T> {
        // Acquire: the partner of the release in `set_gone`.
        let _word = self.senders_futex.load(mutate!(see_gone, Acquire));
        if mutate!(late_look, ticket < self.taken.load(Ordering::Relaxed) => false) {
            return Ok(());
        }
        // SAFETY: the receiver left before it came to this ticket. Neither this chunk nor one
        // behind it was given back, or will be, before the end of the funnel, which comes after the
        // caller's send.
        let slot = unsafe { &*slot };
        if mutate!(claim_late, slot.claim(ticket) => false) {
            // SAFETY: claimed.
            return Err(unsafe { slot.take() });
        }
        Ok(())
    }
}

/// Where the receiver stopped when it left, and the first ticket that is void.
struct Abandoned<T> {
    reader: Reader<T>,
    end: u64,
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let abandoned = self.abandoned.with_mut(|abandoned| {
            // SAFETY: the last owner is alone.
            let abandoned = unsafe { &mut *abandoned };
            abandoned.take()
        });
        let mut first_panic = FirstPanic::default();
        if let Some(Abandoned { reader, end }) = abandoned {
            reader.claim_all(end, |message| first_panic.drop(message));
            reader.free(&self.chunks);
        }
        first_panic.resume();
    }
}
