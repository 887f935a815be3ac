//! What the ends of a funnel share: above all the tail, one word that tells a sender everything.
//!
//! | bits of the tail | |
//! |---|---|
//! | 63 … 4 | the next ticket |
//! | 3 | `NO_SENDERS`: the last sender is gone |
//! | 2 | `ALIVE`: always set; a forked child finds zeros |
//! | 1 | `CLOSED`: the receiver is gone; tickets from here on are void |
//! | 0 | `PARKED`: the receiver sleeps, or is about to |
//!
//! Drawing a ticket returns the whole word, so a sender learns for nothing whether somebody must be woken: the receiver sets
//! `PARKED` by a compare-and-swap that succeeds only if no ticket was drawn that it has not seen, so there is one order of all that happens and
//! no barrier to be forgotten. This is how `MpscBlockingConsumerArrayQueue` of JCTools marks its sleeping consumer.

use super::Limit;
use super::chunks::{Chunks, Reading};
use crate::sync::{
    self, Alone, AtomicU32, AtomicU64, AtomicUsize, Kept, Ordering, UnsafeCell, fence, mutate,
};
use crate::unwound::Unwound;
use crate::wait::{Meeting, Sleeper, Wait};

pub(super) const PARKED: u64 = 1;
pub(super) const CLOSED: u64 = 1 << 1;
pub(super) const ALIVE: u64 = 1 << 2;
pub(super) const NO_SENDERS: u64 = 1 << 3;
const SHIFT: u32 = 4;
/// One ticket.
pub(super) const TICKET: u64 = 1 << SHIFT;

/// The ticket that a value of the tail holds.
#[inline(always)]
pub(super) fn ticket(tail: u64) -> u64 {
    tail >> SHIFT
}

/// The bell's: always set, so that 0 means a forked child.
pub(super) const BELL_ALIVE: u32 = 1;
/// The receiver sleeps, or is about to.
pub(super) const RECEIVER_SLEEPS: u32 = 1 << 1;
/// A sender that waits for room sleeps, or is about to.
pub(super) const SENDERS_SLEEP: u32 = 1 << 2;
/// The kernel has no membarrier: the receiver must fence before it looks for sleeping senders.
const MUST_FENCE: u32 = 1 << 3;

/// The senders' side of a [`Meeting`].
pub(super) const SENDERS: usize = 0;
/// The receiver's.
pub(super) const RECEIVER: usize = 1;

pub(super) type OnHighWater = std::sync::Arc<dyn Fn(usize) + Send + Sync>;

pub(super) struct Shared<T> {
    /// See above. Written with each send.
    pub(super) tail: Kept<AtomicU64>,
    /// Where threads sleep. Written only when somebody sleeps or wakes.
    pub(super) bell: Kept<AtomicU32>,
    /// Tickets that the receiver is done with. Written with each message; senders read it only at a ceiling.
    pub(super) taken: Alone<AtomicU64>,
    pub(super) chunks: Chunks<T>,
    pub(super) limit: Option<Limit>,
    pub(super) meeting: Meeting,
    pub(super) senders: AtomicUsize,
    pub(super) high_water: AtomicU64,
    pub(super) on_high_water: Option<OnHighWater>,
    pub(super) dropped: AtomicU64,
    process: u32,
    /// Where the receiver stopped reading when it left.
    rest: UnsafeCell<Option<Reading<T>>>,
}

// SAFETY: a message is written by the one sender that drew its ticket and read by the one receiver, handed over by its stamp's release and
// acquire, so the funnel moves values of a `Send` type from thread to thread and shares none. Everything else is atomics, or `rest`,
// which is handed over by the end of the last owner.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub(super) fn new<W: Wait>(
        retain_bytes: usize,
        limit: Option<Limit>,
        on_high_water: Option<OnHighWater>,
    ) -> Self {
        let fence = if sync::senders_must_fence() { MUST_FENCE } else { 0 };
        Shared {
            tail: Kept::new(AtomicU64::new(ALIVE)),
            bell: Kept::new(AtomicU32::new(BELL_ALIVE | fence)),
            taken: Alone(AtomicU64::new(0)),
            chunks: Chunks::new(retain_bytes),
            limit,
            meeting: Meeting::new::<W>(),
            senders: AtomicUsize::new(1),
            high_water: AtomicU64::new(0),
            on_high_water,
            dropped: AtomicU64::new(0),
            process: sync::process(),
            rest: UnsafeCell::new(None),
        }
    }

    pub(super) fn sleeper(&self, side: usize) -> Sleeper<'_> {
        let bit = if side == SENDERS { SENDERS_SLEEP } else { RECEIVER_SLEEPS };
        let many = side == SENDERS;
        Sleeper {
            word: &self.bell,
            bit,
            meeting: &self.meeting,
            side,
            many,
            bare: crate::wait::BARE,
            glances: if many { crate::wait::GLANCES } else { 0 },
            process: self.process,
        }
    }

    /// Wakes the receiver, which was found parked.
    #[cold]
    pub(super) fn wake_receiver(&self) {
        // The receiver set its bit before the mark, which we have seen by acquire, so the bit is there for us to clear, unless it has woken
        // already. The mark stays until the receiver takes it back: were it cleared here, a sender that is held up before it has woken
        // the receiver would keep those behind it from doing so.
        crate::wait::wake(&self.bell, RECEIVER_SLEEPS, &self.meeting, SENDERS);
    }

    /// The bell, looked at after room was made: with a full fence before it where nobody else provides one.
    #[cold]
    pub(super) fn bell_after_publishing(&self) -> u32 {
        if self.bell.load(Ordering::Relaxed) & MUST_FENCE != 0 {
            // The partner of the one in `heavy_barrier`.
            mutate!(funnel_fence_without_membarrier, fence(Ordering::SeqCst) => ());
        }
        self.bell.load(Ordering::Acquire)
    }

    pub(super) fn wake_senders(&self) {
        crate::wait::wake(&self.bell, SENDERS_SLEEP, &self.meeting, RECEIVER);
    }

    /// A sender has found so many messages under way.
    #[cold]
    pub(super) fn look_after_mark(&self, drawn: u64) {
        let under_way = drawn.saturating_sub(self.taken.load(Ordering::Relaxed));
        if self.high_water.fetch_max(under_way, Ordering::Relaxed) < under_way
            && let Some(callback) = &self.on_high_water
        {
            callback(under_way as usize);
        }
    }

    /// The receiver leaves: everything that is there is dropped now.
    pub(super) fn leave(&self, mut reading: Reading<T>) {
        // AcqRel: tickets drawn before this are valid, and those drawn later find `CLOSED`.
        let tail = self.tail.fetch_or(CLOSED, Ordering::AcqRel);
        mutate!(wake_senders_in_leave, self.wake_senders() => ());
        let end = ticket(tail);
        let mut unwound = Unwound::default();
        let mut patience = PATIENCE;
        loop {
            while reading.look(&self.chunks, &self.tail) {
                unwound.drop(reading.take());
            }
            // A sender in the midst of its send is given the time to finish, since what it sends may be what it waits for an answer
            // to. One that is held up for longer leaves its message to the end of the funnel.
            if tail & ALIVE == 0 || reading.head >= end || patience == 0 {
                break;
            }
            patience -= 1;
            sync::yield_now();
        }
        // SAFETY: read only by the drop of the funnel, which comes after this end's.
        self.rest.with_mut(|rest| unsafe { *rest = Some(reading) });
        unwound.resume();
    }
}

/// How often a receiver that leaves yields to a sender in the midst of its send.
const PATIENCE: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 1000 };

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let rest = self.rest.with_mut(|rest| {
            // SAFETY: the last owner is alone.
            let rest = unsafe { &mut *rest };
            rest.take()
        });
        let mut unwound = Unwound::default();
        if let Some(mut reading) = rest {
            // Every valid ticket has its message by now; the first that has none is void, and so are all behind it.
            while reading.look(&self.chunks, &self.tail) {
                unwound.drop(reading.take());
            }
            reading.free(&self.chunks);
        }
        unwound.resume();
    }
}
