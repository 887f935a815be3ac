//! What both ends of a pipe share, and the agreement on who drops what when one of them leaves.
//!
//! | bit of the state | set by | meaning |
//! |---|---|---|
//! | `ALIVE` | birth | always set, so that 0 means a forked child |
//! | `RECEIVER_SLEEPS`, `SENDER_SLEEPS` | that end; cleared by the other one, or by itself | it sleeps, or is about to |
//! | `RECEIVER_GONE` | receiver | it has left, and drops what it finds |
//! | `SENT_LATE` | sender; cleared by the receiver | it has sent something after that |
//! | `DRAINED` | receiver | it has left, and looks at nothing any more |
//! | `SENDER_GONE` | sender | it has left; everything that it sent is there |
//! | `MUST_FENCE` | birth | whoever publishes must fence before it looks at this word |
//! | `FENCE_FOR_NOW` | receiver; cleared by it | the same, while it sleeps for few messages at a time |
//! | `UNSENT` | birth; cleared by the sender | nothing was ever sent |
//! | `ONE_LEASE` | birth; cleared by the sender | no more was sent than the pipe holds |
//!
//! **Leaving and sending.** `send` stores a header and then looks at the state; a receiver that
//! leaves sets its bit and then looks at the headers. Each could miss the other, and the message
//! would lie there until the sender goes: with it the reply channel that it may carry, and whoever
//! waits for the reply. So the receiver executes the barrier that `send` leaves out
//! ([`crate::sync::heavy_barrier`]) between its bit and its look. Nobody pays for that needlessly:
//! there is no barrier where messages have no destructor, where the sender has left, and where its
//! next send begins with a read-modify-write of the state ([`Shared::is_idle`]). Where the kernel
//! refuses the barrier, the receiver waits for a millisecond and looks again.
//!
//! **Sleeping often.** The barrier interrupts every CPU that runs a thread of the process, some
//! microseconds each time. A receiver that has taken fewer than [`DENSE`] messages since it last
//! slept sets `FENCE_FOR_NOW` as it goes to sleep, and executes the barrier once more: from then on
//! the sender sees that bit, so it fences for each message, and the receiver sleeps without a
//! barrier. When it has taken so many messages without sleep, it clears the bit. So no message that
//! is sent after the receiver has taken [`DENSE`] costs a fence, and no sleep that comes after
//! fewer costs a barrier, but for the first in a row. The receiver of a bounded pipe fences too. A
//! sender that sleeps may rely on the bit as well, if it finds it as it sets its own: the receiver
//! clears it by a read-modify-write, which then finds the sender's.
//!
//! A sender that finds `RECEIVER_GONE` after it has published sets `SENT_LATE`. If `DRAINED` was
//! not set, the receiver looks again and drops the message. If it was, the receiver touches nothing
//! any more, `taken` is final, and messages beyond it are the sender's: it takes a message back, or
//! drops those that cannot be handed back.

use super::incoming::{Incoming, Reading};
use super::memory::{CLOSED, Frame, Geometry, Header, count};
use super::outgoing::{Outgoing, Writing};
use super::segment::{Measures, Segment, Spares};
use crate::sync::{
    self, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, CachePadded, Ordering, UnsafeCell,
    WipeOnFork, fence, mutate,
};
use crate::unwound::Unwound;
use crate::wait::{Announced, Sleeper, Wait, WaitStats, by_barrier};

pub(super) const ALIVE: u32 = 1;
pub(super) const RECEIVER_SLEEPS: u32 = 1 << 1;
pub(super) const SENDER_SLEEPS: u32 = 1 << 2;
pub(super) const RECEIVER_GONE: u32 = 1 << 3;
pub(super) const SENT_LATE: u32 = 1 << 4;
pub(super) const DRAINED: u32 = 1 << 5;
pub(super) const MUST_FENCE: u32 = 1 << 6;
pub(super) const SENDER_GONE: u32 = 1 << 7;
pub(super) const UNSENT: u32 = 1 << 8;
pub(super) const ONE_LEASE: u32 = 1 << 9;
pub(super) const FENCE_FOR_NOW: u32 = 1 << 10;
/// Whoever publishes fences.
const FENCES: u32 = MUST_FENCE | FENCE_FOR_NOW;

/// Messages from one sleep to the next beyond which an interruption of the other CPUs costs less
/// than a fence for each of them: some microseconds against some tens of nanoseconds.
const DENSE: u64 = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 2 } else { 64 };

/// A pipe that holds more than this begins without `ONE_LEASE`: while the bit is set, each send
/// looks twice. The bit is meant for the pipe that carries one answer.
const SMALL: u64 = 1;

/// The sender's side of a [`WaitStats`].
pub(super) const SENDER: usize = 0;
/// The receiver's.
pub(super) const RECEIVER: usize = 1;

/// Frames behind one that was told to the receiver which the sender may open without telling. Also
/// the low bits of a header's address, which are 0, so that they can hold such a number.
pub(super) const MAX_BEHIND: usize =
    if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 3 } else { 63 };

/// The receiver tells about room so often in a round of a pipe.
const WORDS_PER_ROUND: u64 = 8;

/// The frame of which the sender has told the receiver.
struct Open {
    /// Its header; the low bits say in how many frames behind that one the sender may go on without
    /// storing here.
    header: AtomicPtr<Header>,
    /// Messages that were sent before that frame; stored before `header`.
    sent: AtomicU64,
    /// The same, stored after it.
    told: AtomicU64,
}

pub(super) struct Shared<T> {
    /// The bits above. Both ends look at it with each message; it is written only when somebody
    /// sleeps, wakes or leaves, so each has a copy of its line.
    pub(super) state: WipeOnFork<AtomicU32>,
    /// Messages that the receiver has taken, stored with each. Read by a sender that finds no room
    /// in `room`.
    pub(super) taken: CachePadded<AtomicU64>,
    /// As `taken`, but stored rarely, so that a sender that waits for room does not slow the
    /// receiver down.
    pub(super) room: CachePadded<AtomicU64>,
    /// Messages that the receiver had taken when it last went to sleep. Its own.
    slept_at: CachePadded<AtomicU64>,
    /// For a receiver that asks for the length.
    open: CachePadded<Open>,
    /// The sender's, and after it has left that of whoever drops the pipe.
    pub(super) outgoing: CachePadded<UnsafeCell<Outgoing<T>>>,
    /// The receiver's, and that of a sender that finds `DRAINED`, and of whoever drops the pipe.
    pub(super) incoming: CachePadded<UnsafeCell<Incoming<T>>>,
    pub(super) measures: Measures,
    pub(super) spares: Spares<T>,
    /// Units of the ring that is in use.
    pub(super) ring_units: AtomicUsize,
    pub(super) meeting: WaitStats,
    process: u32,
}

// SAFETY: messages are written by the one sender and read by the one receiver, handed over by a
// header's release and acquire, so the pipe moves values of a `Send` type from thread to thread and
// shares none. Everything else is atomics, or is used by one end at a time, as said above.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// With where its ends begin.
    pub(super) fn new<W: Wait>(
        measures: Measures,
        retain_bytes: usize,
        reserve: bool,
        must_fence: bool,
    ) -> (Self, Writing<T>, Reading<T>) {
        let segment = Segment::ring(measures.first.units);
        // SAFETY: just made.
        let memory = unsafe { &*segment }.memory;
        if reserve {
            // SAFETY: nobody else knows of it.
            unsafe { memory.touch() };
        }
        let mut state = ALIVE | UNSENT;
        if must_fence || sync::senders_must_fence() {
            state |= MUST_FENCE;
        }
        if measures.capacity <= SMALL {
            state |= ONE_LEASE;
        }
        let (capacity, first) = (measures.capacity, memory.frame(0));
        let outgoing = Outgoing::new(segment, memory, measures.first, capacity);
        // A bounded pipe tells as often as its capacity requires, an unbounded one as its ring
        // does.
        let round = capacity.min(measures.largest.holds);
        let step = (round / WORDS_PER_ROUND).max(1);
        let incoming = Incoming::new(segment, memory, measures.first.units, step);
        let shared = Shared {
            state: WipeOnFork::new(AtomicU32::new(state)),
            taken: CachePadded(AtomicU64::new(0)),
            room: CachePadded(AtomicU64::new(0)),
            slept_at: CachePadded(AtomicU64::new(0)),
            open: CachePadded(Open {
                header: AtomicPtr::new(first.header_pointer()),
                sent: AtomicU64::new(0),
                told: AtomicU64::new(0),
            }),
            outgoing: CachePadded(UnsafeCell::new(outgoing)),
            incoming: CachePadded(UnsafeCell::new(incoming)),
            measures,
            spares: Spares::new(measures.chunk_units, retain_bytes),
            ring_units: AtomicUsize::new(measures.first.units),
            meeting: WaitStats::new::<W>(),
            process: sync::process(),
        };
        (shared, Writing::new(first, 0), Reading::new(first))
    }

    /// `lasting` are bits that are set with the side's own.
    pub(super) fn sleeper(&self, side: usize, lasting: u32) -> Sleeper<'_> {
        let bit = if side == SENDER { SENDER_SLEEPS } else { RECEIVER_SLEEPS };
        Sleeper {
            word: &self.state,
            bit,
            lasting,
            meeting: &self.meeting,
            side,
            many: None,
            glances: if side == SENDER { crate::wait::GLANCES } else { 0 },
            process: self.process,
        }
    }

    /// Returns `true` if the receiver can do without the barrier, having changed the state by a
    /// read-modify-write: no send is under way whose look at the state may come before that and
    /// whose message may come after.
    ///
    /// This holds once the sender has left. It holds while the sender's next send must begin with a
    /// read-modify-write: its first one, and the first one beyond the capacity of a pipe with
    /// `ONE_LEASE`, if every message up to that capacity was taken.
    fn is_idle(&self, state: u32, taken: u64) -> bool {
        let first_lease_used_up = state & ONE_LEASE != 0 && taken >= self.measures.capacity;
        mutate!(idle, state & (SENDER_GONE | UNSENT) != 0 || first_lease_used_up => true)
    }

    /// Announces a sleep, or a departure, after a bit was set where the state was this: see
    /// [`crate::wait::by_barrier`].
    pub(super) fn announce(&self, state: u32) -> Announced {
        if state & FENCES != 0 {
            // The partner of the fence in `state_after_publishing`.
            mutate!(fence_of_sleeper, fence(Ordering::SeqCst) => ());
            return Announced::Surely;
        }
        by_barrier()
    }

    /// As [`Shared::announce`], but for a receiver that goes to sleep, which may be spared the
    /// barrier.
    pub(super) fn announce_receiver(&self, state: u32, taken: u64) -> Announced {
        self.slept_at.store(taken, Ordering::Relaxed);
        if self.is_idle(state, taken) {
            return Announced::Surely;
        }
        self.announce(state)
    }

    /// The bit that the receiver sets with its own before it sleeps, where the sender is to fence
    /// from now on.
    pub(super) fn fences_for(&self, taken: u64) -> u32 {
        let must_fence = self.state.load(Ordering::Relaxed) & MUST_FENCE != 0;
        if must_fence || self.is_dense(taken) { 0 } else { FENCE_FOR_NOW }
    }

    /// Whether many messages were taken since the receiver last slept.
    fn is_dense(&self, taken: u64) -> bool {
        taken - self.slept_at.load(Ordering::Relaxed) >= DENSE
    }

    /// The sender fences no more where that has become too expensive.
    pub(super) fn spare_fences(&self, taken: u64) {
        if self.is_dense(taken) && self.state.load(Ordering::Relaxed) & FENCE_FOR_NOW != 0 {
            // AcqRel: if this finds the bit of a sender that sleeps, whoever looks next finds it;
            // otherwise that sender finds this bit cleared, and executes the barrier.
            self.state.fetch_and(!FENCE_FOR_NOW, Ordering::AcqRel);
        }
    }

    /// The state, looked at after something was published: with a full fence before it where nobody
    /// else provides one.
    #[cold]
    pub(super) fn state_after_publishing(&self) -> u32 {
        if self.state.load(Ordering::Relaxed) & FENCES != 0 {
            // The partner of the one in `heavy_barrier`, or in `announce`.
            mutate!(fence_without_membarrier, fence(Ordering::SeqCst) => ());
        }
        self.state.load(Ordering::Acquire)
    }

    pub(super) fn wake_receiver(&self) {
        crate::wait::wake(&self.state, RECEIVER_SLEEPS, &self.meeting, SENDER);
    }

    pub(super) fn wake_sender(&self) {
        crate::wait::wake(&self.state, SENDER_SLEEPS, &self.meeting, RECEIVER);
    }

    /// The sender goes on in a frame, and perhaps in so many behind it.
    pub(super) fn open(&self, frame: Frame<T>, stamp: u64, behind: usize) {
        debug_assert!(behind <= MAX_BEHIND);
        // SAFETY: a free frame of a segment in which the sender is.
        unsafe { frame.store(stamp, Ordering::Relaxed) };
        let header = frame.header_pointer().wrapping_byte_add(behind);
        self.open.sent.store(count(stamp), Ordering::Relaxed);
        // Release: a receiver that finds this finds the new `sent`, and the header as just stored.
        self.open.header.store(header, Ordering::Release);
        // Release: a receiver that finds this finds the new `header`.
        mutate!(tell_open, self.open.told.store(count(stamp), Ordering::Release) => ());
    }

    /// Number of messages that were sent before the frame of which the sender has told.
    pub(super) fn told(&self) -> u64 {
        if cfg!(any(threadtoll_loom, threadtoll_shuttle)) {
            // It decides about nothing that a checker could see.
            return 0;
        }
        self.open.told.load(Ordering::Relaxed)
    }

    /// Number of messages that were sent, as the receiver sees it, which is here. Exact while the
    /// sender does nothing, otherwise a moment old.
    ///
    /// Looks at no frame before the receiver's: the sender may write there.
    pub(super) fn sent(&self, reading: &Reading<T>) -> u64 {
        let told = self.open.told.load(Ordering::Acquire);
        let open = self.open.header.load(Ordering::Acquire);
        if self.open.sent.load(Ordering::Relaxed) != told {
            // The sender is telling of the next frame.
            return told.max(reading.known());
        }
        let behind = open.addr() & MAX_BEHIND;
        let last = (0..behind)
            .fold(open.wrapping_byte_sub(behind), |header, _| Frame::<T>::header_behind(header));
        // Otherwise the receiver is in a frame behind that one, in the same segment.
        let (mut header, mut sent, mut full) = if told >= reading.known() {
            let full = told + Geometry::<T>::PER_FRAME as u64;
            (open.wrapping_byte_sub(behind), told, full)
        } else {
            (reading.next_header(), reading.known(), reading.full())
        };
        loop {
            // SAFETY: in a segment that the receiver has not given back: the sender tells where it
            // is before it publishes the jump that lets the receiver leave a segment. A header lies
            // here and no message: it is the receiver's frame or one behind that, so nothing was
            // written over it; long records begin where a frame does, and the one before this is
            // full.
            let found = count(unsafe { &*header }.load(Ordering::Acquire));
            sent = sent.max(found);
            if found != full || header == last {
                return sent;
            }
            header = Frame::<T>::header_behind(header);
            full += Geometry::<T>::PER_FRAME as u64;
        }
    }

    /// The receiver leaves: everything that was sent is dropped now, and what comes later by the
    /// sender.
    pub(super) fn leave(&self, mut reading: Reading<T>) {
        let state = self.state.fetch_or(RECEIVER_GONE, Ordering::AcqRel);
        if mutate!(wake_in_leave, state & SENDER_SLEEPS != 0 => false) {
            self.wake_sender();
        }
        if std::mem::needs_drop::<T>() && !self.is_idle(state, reading.taken()) {
            // The partner of the barrier in `send`; see the head of this file.
            mutate!(barrier_in_leave, self.announce(state) => Announced::Surely).settle();
        }
        let mut unwound = Unwound::default();
        self.incoming.with_mut(|incoming| {
            // SAFETY: we are the receiver, and have not said `DRAINED`.
            let incoming = unsafe { &mut *incoming };
            loop {
                reading = incoming.drop_all(self, reading, &mut unwound);
                // Release: a sender that still waits for room may find it here, and writes where we
                // have read. Whether its message was dropped, it asks only after `DRAINED`.
                self.taken.store(reading.taken(), mutate!(tell_taken_in_leave, Release));
                // Handed to the sender, or to whoever drops the pipe.
                incoming.rest = Some(reading);
                if state & SENDER_GONE != 0 {
                    break;
                }
                // A message that was sent after the last look is announced by `SENT_LATE`: it is
                // dropped here too.
                let state = self.state.load(Ordering::Acquire);
                let late = state & SENT_LATE != 0;
                let next = if late { state & !SENT_LATE } else { state | DRAINED };
                let order = mutate!(drained, AcqRel);
                let swapped = self.state.compare_exchange(state, next, order, Ordering::Relaxed);
                if swapped.is_ok() && !late {
                    break;
                }
            }
        });
        unwound.resume();
    }

    /// The sender has published messages and finds the receiver gone. Returns `false` if the
    /// receiver will look again and drop them. If `true`, it looks no more and `taken` is final:
    /// messages beyond it are the sender's.
    pub(super) fn sent_late(&self) -> bool {
        self.state.fetch_or(SENT_LATE, mutate!(sent_late, AcqRel)) & DRAINED != 0
    }

    /// The sender drops what it has published and cannot take back, after [`Shared::sent_late`] has
    /// said that it must, or the pipe ends. Returns the number of messages that were taken before.
    pub(super) fn drop_rest(&self, unwound: &mut Unwound) -> u64 {
        let taken = self.taken.load(Ordering::Relaxed);
        self.incoming.with_mut(|incoming| {
            // SAFETY: the receiver has set `DRAINED`, which `sent_late` has seen with acquire, or
            // both ends are gone.
            let incoming = unsafe { &mut *incoming };
            if let Some(reading) = incoming.rest {
                let reading = incoming.drop_all(self, reading, unwound);
                incoming.rest = Some(reading);
                self.taken.store(reading.taken(), Ordering::Relaxed);
            }
        });
        taken
    }

    /// The sender leaves.
    pub(super) fn close(&self, mut writing: Writing<T>) {
        self.outgoing.with_mut(|outgoing| {
            // SAFETY: we are the sender.
            unsafe { &mut *outgoing }.open_for_flags(self, &mut writing);
        });
        let stamp = writing.stamp() | CLOSED;
        // Release: as in `publish`.
        // SAFETY: the open frame begins here.
        unsafe { writing.frame.store(stamp, mutate!(publish_close, Release)) };
        // A read-modify-write has its place among those of a receiver that goes to sleep: either it
        // is told here, or it finds the header. AcqRel: for that, and for one that leaves later.
        let state = self.state.fetch_or(SENDER_GONE, Ordering::AcqRel);
        if mutate!(wake_in_close, state & RECEIVER_SLEEPS != 0 => false) {
            self.wake_receiver();
        }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let mut unwound = Unwound::default();
        self.drop_rest(&mut unwound);
        self.incoming.with_mut(|incoming| {
            // SAFETY: both ends are gone.
            unsafe { &*incoming }.free(self);
        });
        self.outgoing.with_mut(|outgoing| {
            // SAFETY: both ends are gone.
            unsafe { &mut *outgoing }.free(self);
        });
        unwound.resume();
    }
}
