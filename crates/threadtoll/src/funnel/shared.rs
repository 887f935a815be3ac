//! State that the ends of a funnel share: the tail, which every send writes, and `signals`, which
//! every end reads with each message and rarely writes.
//!
//! # A receiver that sleeps
//!
//! Drawing a ticket returns the whole tail, so a sender learns at no extra cost if it must wake the
//! receiver. The receiver sets `RECEIVER_PARKED` by a compare-and-swap that succeeds only if it has
//! received the messages of all tickets drawn so far. Draws and this compare-and-swap update the
//! same word, so they are ordered and no barrier is needed. `MpscBlockingConsumerArrayQueue` of
//! JCTools marks its sleeping consumer in the same way.
//!
//! If the sender of a drawn ticket has not stored its message yet, that sender has seen the tail
//! without the bit. The receiver then stores how far it has read (`taken`), sets `RECEIVER_BEHIND`
//! in `signals`, executes a barrier, polls once more, and sleeps. A sender stores its stamp and
//! then reads `signals`. This is Dekker's pattern: with a barrier on both sides, at least one of
//! them sees the other's store. The sender executes the light barrier, and the receiver the heavy
//! one. A sender that finds the bit wakes the receiver if `taken` is the sender's own ticket. A
//! sender of a later ticket need not wake the receiver: before the receiver sleeps for that ticket,
//! it stores `taken` again, executes the barrier again, and polls, and that poll finds the stamp. A
//! receiver that has passed voided tickets since it stored `taken` does not sleep, but starts
//! again.
//!
//! # Senders that wait for room
//!
//! Senders that find a bounded funnel full sleep on `signals`. Waking all of them for one slot
//! would send all but one back to sleep, and waking one for each slot would wake many in vain while
//! running senders take the slots. So a receive wakes as many senders as there are free slots,
//! minus those that have been woken before and have not polled yet (`pending_wakeups`). Four rules
//! ensure that, once every woken sender has run, no sender sleeps while there is room:
//!
//! - *The bit is set while a sender sleeps.* A sender sets the bit before its last poll. Only the
//!   receiver clears the bit, before it wakes senders. If it wakes as many senders as it asked for,
//!   more may be asleep, so it sets the bit again. If it wakes fewer, no sender is left asleep.
//! - *A sender that set the bit before the receiver cleared it, and is not asleep yet, does not
//!   fall asleep.* `futex(2)` compares the whole word, and each wake-up adds `EPOCH` to it, so the
//!   sender stays awake even if a second sender sets the bit again.
//! - *A woken sender polls before it does anything else*, even if its deadline has passed. It takes
//!   the slot or finds that another sender has.
//! - *A woken sender is counted as pending until just before that poll.* It subtracts itself,
//!   executes a fence, and polls; the receiver makes room, executes a fence, and reads the count.
//!   So a sender that is still counted finds the new room.
//!
//! Proof: suppose that a sender sleeps forever although there is room. Consider the last time that
//! room was made, when n slots were free. The sender's last poll found no slot, so that poll came
//! before that time, and the receiver saw the bit, because of the barrier between the sender's
//! announcement and its poll. Since that sender stayed asleep, the receiver did not run out of
//! senders to wake: n senders were pending or woken at that time, and each of them polled later. If
//! one of them had found no room, no slot would be left, because no more room was made. So each
//! took a slot, and none is left: a contradiction.
//!
//! Senders are not served in order: another sender may take a slot before the sender that was woken
//! for it, which then sleeps again. If a woken sender is stopped, other sleeping senders cannot get
//! its slot until the next receive. If a receiver finds no message in that situation, it sleeps for
//! no more than a millisecond, and then wakes other senders for that slot. One that waits in a task
//! or by a `Select` does not.
//!
//! A sender that goes to sleep executes the heavy barrier. If senders sleep often, the receiver
//! temporarily executes a fence after each message, so that senders need not execute the barrier:
//! it sets `RECEIVER_FENCES_FOR_NOW` when it finds a sleeping sender only a few messages after it
//! found the last one ([`LastSleep`]).
//!
//! # A receiver that leaves
//!
//! A receiver that is dropped drops all messages. If a ticket has no message yet, the receiver does
//! not wait for that ticket's sender. It stores how far it has read (`taken`), sets `GONE_MID_SEND`
//! in `signals`, executes a barrier, and checks all slots once more. If the kernel refuses the
//! barrier, the receiver sleeps briefly before it checks; by then, the stamp has left the sender's
//! store buffer. (Even if that failed, the message would be dropped with the funnel.) If both ends
//! see the message, a compare-and-swap of the stamp decides which of them gets it. If the sender
//! does, it takes the message back.
//!
//! A sender whose message was received before `GONE_MID_SEND` was set may check the bit late, when
//! its chunk has already been reused. It then sees from `taken` that its message was received.

use std::ops::Range;

use super::chunk::Slot;
use super::chunks::{Chunks, Reader};
use super::tail::{ALIVE, RECEIVER_GONE, RECEIVER_PARKED, is_legal, ticket};
use crate::first_panic::FirstPanic;
use crate::sync::{
    self, AtomicU32, AtomicU64, AtomicUsize, CachePadded, Ordering, UnsafeCell, WipeOnFork, fence,
    light_barrier, mutate,
};
use crate::wait::{FenceOutcome, LastSleep, Needs, Parker, Wait, WaitStats, WakerCell};

// `Shared::receiver_futex`, on which the receiver sleeps. It is 0 in a forked child.
//
// | `RECEIVER_SLEEPS` | `FUTEX_ALIVE` | |
// |---|---|---|
// | 0 | 1 | the receiver is awake |
// | 1 | 1 | it sleeps, or is about to, or waits in a task |
//
// `Shared::signals`, on which senders sleep while there is no room. It is 0 in a forked child. The
// bits from `EPOCH` up count how often senders were woken. The lower bits are independent, so every
// combination occurs:
//
// | bit | set |
// |---|---|
// | `FUTEX_ALIVE` | always |
// | `SENDERS_SLEEP` | while a sender sleeps or is about to, or has found room without being woken |
// | `RECEIVER_BEHIND` | while the receiver waits for the sender of the ticket `taken` |
// | `GONE_MID_SEND` | once the receiver has left while a send was in progress |
// | `SENDERS_GONE` | once the last sender is gone: what is left is received |
// | `RECEIVER_FENCES` | if the receiver of a bounded funnel fences after each message |
// | `RECEIVER_FENCES_FOR_NOW` | likewise, until no sender has slept for many messages |
// | `SENDERS_FENCE` | if senders fence after each stamp |
//
// Before an end sleeps or leaves, it executes the heavy barrier, unless the other side fences.
// `RECEIVER_FENCES` and `SENDERS_FENCE` never change: they are set if there is no membarrier, or if
// other threads must not be interrupted.
const FUTEX_ALIVE: u32 = crate::wait::ALIVE;
const RECEIVER_SLEEPS: u32 = 1 << 1;
const SENDERS_SLEEP: u32 = 1 << 1;
const RECEIVER_BEHIND: u32 = 1 << 2;
const GONE_MID_SEND: u32 = 1 << 3;
const SENDERS_GONE: u32 = 1 << 4;
const RECEIVER_FENCES: u32 = 1 << 5;
const SENDERS_FENCE: u32 = 1 << 6;
const RECEIVER_FENCES_FOR_NOW: u32 = 1 << 7;
const EPOCH: u32 = 1 << 8;
/// Bits that make the receiver of a bounded funnel execute a fence after each message.
const FENCES: u32 = RECEIVER_FENCES | RECEIVER_FENCES_FOR_NOW;

/// Sides of [`WaitStats`].
pub(super) const SENDERS: usize = 0;
pub(super) const RECEIVER: usize = 1;

/// The cache line that every send writes.
pub(super) struct Tail {
    /// The next ticket, and the bits that the module `tail` lists.
    pub(super) word: AtomicU64,
    /// For a bounded funnel: tickets below this number have room. A sender that reaches the limit
    /// raises it, so that the other senders do not read the receiver's cache line with each
    /// message.
    limit: AtomicU64,
}

pub(super) struct Shared<T> {
    pub(super) tail: WipeOnFork<Tail>,
    /// Written only when the receiver sleeps or is woken.
    receiver_futex: WipeOnFork<AtomicU32>,
    /// The waker of a receiver that waits in a task.
    receiver_task: WakerCell,
    /// The bits listed above. Each end reads this word with each message. It is written only when a
    /// sender sleeps, when senders are woken, when the receiver sleeps behind a send in progress
    /// and when it wakes up, when the receiver sets or clears `RECEIVER_FENCES_FOR_NOW`, and when
    /// the last sender or the receiver leaves.
    signals: WipeOnFork<AtomicU32>,
    /// Number of senders that have been woken and have not polled since. May wrap below 0, after a
    /// spurious wake-up or if a sender subtracts itself before the receiver has added it.
    pending_wakeups: AtomicUsize,
    /// Number of tickets that the receiver has passed. Written with each message. Senders of a
    /// bounded funnel read it once they reach their limit.
    pub(super) taken: CachePadded<AtomicU64>,
    /// The last sleep of a sender, as far as the receiver has noticed.
    last_sleep: CachePadded<LastSleep>,
    pub(super) chunks: Chunks<T>,
    /// Maximum number of messages in the funnel; `None` if it is unbounded.
    pub(super) capacity: Option<u64>,
    pub(super) stats: WaitStats,
    pub(super) senders: AtomicUsize,
    process: u32,
    abandoned: UnsafeCell<Option<Abandoned<T>>>,
}

// SAFETY: the sender that drew a ticket writes its message. The only receiver reads the message,
// ordered by the stamp's release and acquire, unless the sender takes it back; a compare-and-swap
// of the stamp decides between them. So the funnel moves values of a `Send` type between threads
// and shares none. All other fields are `Sync`, except `abandoned`, which only the receiver and
// then the destructor use.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub(super) fn new(wait: Wait, retain_bytes: usize, capacity: Option<u64>, fence: bool) -> Self {
        let fences = match capacity {
            _ if !fence && !sync::senders_must_fence() => 0,
            Some(_) => RECEIVER_FENCES | SENDERS_FENCE,
            // Senders of an unbounded funnel never sleep.
            None => SENDERS_FENCE,
        };
        Shared {
            tail: WipeOnFork::new(Tail { word: AtomicU64::new(ALIVE), limit: AtomicU64::new(0) }),
            receiver_futex: WipeOnFork::new(AtomicU32::new(FUTEX_ALIVE)),
            receiver_task: WakerCell::new(),
            pending_wakeups: AtomicUsize::new(0),
            signals: WipeOnFork::new(AtomicU32::new(FUTEX_ALIVE | fences)),
            taken: CachePadded(AtomicU64::new(0)),
            last_sleep: CachePadded(LastSleep::new()),
            chunks: Chunks::new(retain_bytes),
            capacity,
            stats: WaitStats::new(wait),
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
            word: if many { &self.signals } else { &self.receiver_futex },
            bit: if many { SENDERS_SLEEP } else { RECEIVER_SLEEPS },
            stats: &self.stats,
            side,
            sticky_bits: 0,
            task: (!many).then_some(&self.receiver_task),
            pending_wakeups: many.then_some(&self.pending_wakeups),
            spins_before_park: if many { crate::wait::SPINS_BEFORE_PARK } else { 0 },
            process: self.process,
        }
    }

    /// Executes the barrier after a sender has set its bit: either the receiver's next reading of
    /// the signals finds the bit, or the sender's next poll finds the room that the receiver has
    /// made. `before` is the value of the signals without the bit.
    pub(super) fn announce(&self, before: u32) -> FenceOutcome {
        if before & FENCES == 0 {
            return crate::wait::barrier_or_nap();
        }
        // Pairs with the fence in `publish_taken_slow`.
        mutate!(funnel_fence_of_sleeper, fence(Ordering::SeqCst) => ());
        FenceOutcome::Fenced
    }

    /// Wakes the receiver; called by an end that has found `RECEIVER_PARKED` or `RECEIVER_BEHIND`.
    #[cold]
    pub(super) fn wake_receiver(&self) {
        // The receiver set `RECEIVER_SLEEPS` before `RECEIVER_PARKED` or `RECEIVER_BEHIND`, which
        // were seen with acquire. So `RECEIVER_SLEEPS` is found here unless the receiver is already
        // awake. The other two bits stay set until the receiver clears them. If `RECEIVER_PARKED`
        // were cleared here, a sender that is stopped before the wake-up would keep later senders
        // from waking the receiver.
        let task = Some(&self.receiver_task);
        crate::wait::wake(&self.receiver_futex, RECEIVER_SLEEPS, task, &self.stats, SENDERS);
    }

    /// Tells senders that the receiver is about to sleep until the send of the ticket `head`, which
    /// is in progress, has ended. The receiver executes a barrier next: either that sender's next
    /// reading of `signals` finds the bit, or the receiver's next poll finds the message.
    pub(super) fn say_behind(&self, head: u64) {
        if self.taken.load(Ordering::Relaxed) != head {
            self.publish_taken(head);
        }
        // Release: a sender that sees the bit also sees `taken`, and that the receiver sleeps.
        mutate!(say_behind, self.signals.fetch_or(RECEIVER_BEHIND, Ordering::AcqRel) => 0);
    }

    /// Executes the barrier after [`Shared::say_behind`].
    pub(super) fn barrier_behind(&self) -> FenceOutcome {
        mutate!(barrier_behind, self.order_stamps() => FenceOutcome::Fenced)
    }

    /// Like [`Shared::barrier_behind`], but returns what a `Select` has to execute.
    pub(super) fn needs_behind(&self) -> Needs {
        let fences = self.signals.load(Ordering::Relaxed) & SENDERS_FENCE != 0;
        if fences { Needs::Fence } else { Needs::Barrier }
    }

    /// Clears the bit that [`Shared::say_behind`] has set.
    pub(super) fn is_not_behind(&self) {
        // Relaxed: it does not matter when senders see this.
        self.signals.fetch_and(!RECEIVER_BEHIND, Ordering::Relaxed);
    }

    /// Executes the barrier after the receiver has set a bit for senders in the middle of a send;
    /// pairs with the barrier in `is_quiet_after_stamp`.
    fn order_stamps(&self) -> FenceOutcome {
        if self.signals.load(Ordering::Relaxed) & SENDERS_FENCE == 0 {
            return crate::wait::barrier_or_nap();
        }
        mutate!(fence_of_receiver, fence(Ordering::SeqCst) => ());
        FenceOutcome::Fenced
    }

    /// Publishes how far the receiver has read. Returns `false` in a forked child.
    #[inline(always)]
    pub(super) fn publish_taken(&self, head: u64) -> bool {
        // Release: pairs with the acquire in `room_from`.
        self.taken.store(head, Ordering::Release);
        // A sender that goes to sleep because there is no room makes this thread execute a full
        // barrier here.
        mutate!(barrier_in_funnel_recv, light_barrier() => ());
        let word = self.signals.load(Ordering::Relaxed);
        word & (FUTEX_ALIVE | SENDERS_SLEEP | FENCES) == FUTEX_ALIVE
            || self.publish_taken_slow(head)
    }

    /// The slow path after the receiver has made room: a sender sleeps, a fence is needed, or this
    /// is a forked child.
    #[cold]
    fn publish_taken_slow(&self, head: u64) -> bool {
        // Pairs with the fence in `announce`, and with that of a woken sender in `wait::park`.
        mutate!(funnel_fence_without_membarrier, fence(Ordering::SeqCst) => ());
        let word = self.signals.load(Ordering::Acquire);
        let is_far = self.last_sleep.is_far(head);
        if word & RECEIVER_FENCES_FOR_NOW != 0 && is_far {
            // AcqRel: see `wait::for_now`.
            self.signals.fetch_and(!RECEIVER_FENCES_FOR_NOW, Ordering::AcqRel);
        }
        if word & SENDERS_SLEEP != 0 {
            self.last_sleep.record(head);
            if word & FENCES == 0 && !is_far {
                // AcqRel: see `wait::for_now`.
                self.signals.fetch_or(RECEIVER_FENCES_FOR_NOW, Ordering::AcqRel);
            }
            let (room, pending) = (self.room(head), self.pending_wakeups());
            let most =
                mutate!(wake_for_all_room, room.saturating_sub(pending) => 1 - pending.min(1));
            if most > 0 {
                self.wake_senders(most);
            }
        }
        word & FUTEX_ALIVE != 0
    }

    /// Number of tickets, up to `most`, for which there is room from this ticket on.
    #[inline(always)]
    pub(super) fn room_from(&self, ticket: u64, most: u64, capacity: u64) -> u64 {
        // Acquire: pairs with the release below, and thereby with the receiver's release of
        // `taken`.
        let limit = self.tail.limit.load(Ordering::Acquire);
        if limit.saturating_sub(ticket) >= most {
            return most;
        }
        // Acquire: the receiver has finished with the messages that it counts as taken.
        let limit = self.taken.load(Ordering::Acquire).saturating_add(capacity);
        // A sender that was stopped just before this store may lower the limit. The next sender
        // then raises it again.
        self.tail.limit.store(limit, Ordering::Release);
        mutate!(draw_only_with_room, most.min(limit.saturating_sub(ticket)) => most)
    }

    fn room(&self, head: u64) -> u64 {
        // Relaxed: an old tail means that too much room is assumed, which only wakes too many
        // senders.
        let under_way = ticket(self.tail.word.load(Ordering::Relaxed)).saturating_sub(head);
        self.capacity.unwrap_or(0).saturating_sub(under_way)
    }

    fn pending_wakeups(&self) -> u64 {
        self.pending_wakeups.load(Ordering::Relaxed).cast_signed().max(0) as u64
    }

    /// Number of free slots, if some woken senders have not polled yet and other senders may be
    /// asleep; otherwise 0. A receiver that sleeps makes no more room, so if the woken senders are
    /// stopped, the others would have to wait for them.
    pub(super) fn unclaimed_room(&self, head: u64) -> u64 {
        // Relaxed: the receiver itself has set the bit again.
        let asleep = self.signals.load(Ordering::Relaxed) & SENDERS_SLEEP != 0;
        if asleep && self.pending_wakeups() > 0 { self.room(head) } else { 0 }
    }

    pub(super) fn wake_senders(&self, most: u64) {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        crate::wait::wake_some(self.parker(SENDERS), EPOCH, RECEIVER, most);
    }

    /// Continues as if a sender had been woken because there was room, and stopped before it
    /// polled.
    #[cfg(test)]
    pub(super) fn stop_a_woken_sender(&self) {
        self.pending_wakeups.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn is_disconnected(&self) -> bool {
        self.tail.word.load(Ordering::Acquire) & (ALIVE | RECEIVER_GONE) != ALIVE
    }

    /// Returns `true` if all senders are gone. Everything that they sent is then visible.
    #[inline(always)]
    pub(super) fn senders_are_gone(&self) -> bool {
        self.signals.load(mutate!(see_senders_gone, Acquire)) & SENDERS_GONE != 0
    }

    /// Called when the last sender is dropped.
    pub(super) fn senders_leave(&self) {
        // Set before the tail is read, so that a receiver that parks after that sees this bit.
        self.signals.fetch_or(SENDERS_GONE, mutate!(say_senders_gone, AcqRel));
        // A read-modify-write, so that it is ordered relative to the one that sets
        // `RECEIVER_PARKED`.
        let tail = self.tail.word.fetch_add(0, Ordering::AcqRel);
        if mutate!(wake_by_last_sender, tail & RECEIVER_PARKED != 0 => false) {
            self.wake_receiver();
        }
    }

    pub(super) fn is_forked(&self) -> bool {
        self.signals.load(Ordering::Relaxed) & FUTEX_ALIVE == 0
    }

    /// Called when the receiver is dropped. Drops all messages, and resumes the first panic.
    pub(super) fn receiver_leaves(&self, mut reader: Reader<T>, mut first_panic: FirstPanic) {
        // AcqRel: tickets drawn before this are valid, and senders that draw a ticket later find
        // `RECEIVER_GONE`.
        let tail = self.tail.word.fetch_or(RECEIVER_GONE, Ordering::AcqRel);
        debug_assert!(is_legal(tail | RECEIVER_GONE));
        mutate!(wake_senders_in_leave, self.wake_senders(u64::MAX) => ());
        let end = ticket(tail);
        while reader.poll(&self.chunks, &self.tail.word) {
            first_panic.drop(reader.take());
        }
        if std::mem::needs_drop::<T>() && reader.head < end {
            self.set_gone(reader.head);
            mutate!(drop_behind_busy_sender, reader.claim_all(end, |message| first_panic.drop(message)) => ());
        }
        // SAFETY: read only by the funnel's destructor, which runs after this end has left.
        self.abandoned
            .with_mut(|abandoned| unsafe { *abandoned = Some(Abandoned { reader, end }) });
        first_panic.resume();
    }

    /// Ensures that either a sender in the middle of a send finds `GONE_MID_SEND`, or the
    /// receiver's next check finds that sender's message. Every message below `head` must have been
    /// taken, and no chunk may be reused any more.
    fn set_gone(&self, head: u64) {
        self.taken.store(head, Ordering::Relaxed);
        // Release: a sender that sees the bit also sees `taken`.
        self.signals.fetch_or(GONE_MID_SEND, mutate!(say_gone, AcqRel));
        mutate!(barrier_in_funnel_leave, self.order_stamps() => FenceOutcome::Fenced).settle();
    }

    /// Stores a message in its slot. Returns the message if the receiver has left without it.
    ///
    /// # Safety
    ///
    /// The caller must have drawn the ticket, which must be this slot's, and not have used it.
    #[inline(always)]
    pub(super) unsafe fn put(
        &self,
        slot: *const Slot<T>,
        ticket: u64,
        message: T,
    ) -> Result<(), T> {
        // SAFETY: alive, since the receiver does not pass this ticket before its stamp is stored.
        let place = unsafe { &*slot };
        // SAFETY: the caller's promise.
        unsafe { place.put(ticket, message) };
        if self.is_quiet_after_stamp() {
            return Ok(());
        }
        let signals = self.signals_after_stamp();
        self.wake_from_behind(signals, ticket..ticket + 1);
        if std::mem::needs_drop::<T>() && signals & GONE_MID_SEND != 0 {
            // SAFETY: the message was just stored.
            return unsafe { self.take_back(slot, ticket) };
        }
        Ok(())
    }

    /// Wakes the receiver if it waits for one of these tickets, which have just been voided.
    pub(super) fn after_void(&self, tickets: Range<u64>) {
        if !self.is_quiet_after_stamp() {
            self.wake_from_behind(self.signals_after_stamp(), tickets);
        }
    }

    /// Returns `true` if nobody waits for the stamp that was just stored, and no fence is needed.
    #[inline(always)]
    fn is_quiet_after_stamp(&self) -> bool {
        // Pairs with the barrier in `order_stamps`.
        mutate!(barrier_in_funnel_send, light_barrier() => ());
        let signals = self.signals.load(Ordering::Relaxed);
        signals & (RECEIVER_BEHIND | GONE_MID_SEND | SENDERS_FENCE) == 0
    }

    /// Reads the signals after a stamp was stored. If they ask for a fence, executes it and reads
    /// the signals again.
    #[cold]
    fn signals_after_stamp(&self) -> u32 {
        if self.signals.load(Ordering::Relaxed) & SENDERS_FENCE != 0 {
            // Pairs with the fence in `order_stamps`.
            mutate!(fence_of_sender, fence(Ordering::SeqCst) => ());
        }
        // Acquire: pairs with the release in `set_gone` and `say_behind`.
        self.signals.load(mutate!(see_signals, Acquire))
    }

    /// Wakes the receiver if it sleeps until one of these tickets has its stamp. The stamps have
    /// just been stored.
    #[cold]
    fn wake_from_behind(&self, signals: u32, tickets: Range<u64>) {
        // Relaxed: reads the value that `say_behind` stored before it set the bit, or a later
        // value.
        let is_behind =
            signals & RECEIVER_BEHIND != 0 && tickets.contains(&self.taken.load(Ordering::Relaxed));
        if mutate!(wake_from_behind, is_behind => false) {
            self.wake_receiver();
        }
    }

    /// Takes a message back if the receiver has left without it.
    ///
    /// # Safety
    /// The caller must have just stored the message of this ticket in this slot, and have seen
    /// `GONE_MID_SEND`.
    #[cold]
    unsafe fn take_back(&self, slot: *const Slot<T>, ticket: u64) -> Result<(), T> {
        if mutate!(late_look, ticket < self.taken.load(Ordering::Relaxed) => false) {
            return Ok(());
        }
        // SAFETY: the receiver left before it reached this ticket, so this chunk lives as long as
        // the funnel.
        let slot = unsafe { &*slot };
        if mutate!(claim_late, slot.claim(ticket) => false) {
            // SAFETY: claimed.
            return Err(unsafe { slot.take() });
        }
        Ok(())
    }
}

/// The reader of a receiver that has left, and the first ticket drawn after it left (`end`), which
/// has no message.
struct Abandoned<T> {
    reader: Reader<T>,
    end: u64,
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let abandoned = self.abandoned.with_mut(|abandoned| {
            // SAFETY: no other owner is left.
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
