//! What both ends of a pipe share, and the agreement on who drops what when one of them leaves.
//!
//! **Leaving and sending.** `send` stores a header and then looks at the state; a receiver that
//! leaves sets its bit and then looks at the headers. Each could miss the other, and the message
//! would lie there until the sender goes: with it the reply channel that it may carry, and whoever
//! waits for the reply. So the receiver executes the barrier that `send` leaves out
//! ([`crate::sync::heavy_barrier`]) between its bit and its look. Nobody pays for that needlessly:
//! there is no barrier where messages have no destructor, where the sender has left, and where its
//! next send begins with a read-modify-write of the state ([`Shared::no_send_in_flight`]). Where
//! the kernel refuses the barrier, the receiver waits for a millisecond and looks again.
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

use super::memory::{CLOSED, FramePtr, Geometry, Header, count};
use super::reader::{ReadCursor, Reader};
use super::segment::{FreeList, PipeLayout, Segment};
use super::writer::{WriteCursor, Writer};
use crate::first_panic::FirstPanic;
use crate::sync::{
    self, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, CachePadded, Ordering, UnsafeCell,
    WipeOnFork, fence, mutate,
};
pub(super) use crate::wait::ALIVE;
use crate::wait::{FenceOutcome, Parker, Wait, WaitStats, barrier_or_nap};

// The bits of `Shared::state`. `ALIVE` is always set. The other bits are one row of each of the
// three tables below, in any combination, except that `SENT_LATE` is only set with `RECEIVER_GONE`.
// `is_legal` asserts it whenever a bit is set.
//
// | `RECEIVER_SLEEPS` | `RECEIVER_GONE` | `DRAINED` | the receiver |
// |---|---|---|---|
// | 0 | 0 | 0 | receives, or is awake and waits |
// | 1 | 0 | 0 | sleeps, or is about to |
// | 0 | 1 | 0 | is leaving, and drops what it finds |
// | 0 | 1 | 1 | has left, and reads nothing more: later messages are the sender's to drop |
//
// | `NEVER_SENT` | `FIRST_FILL` | `SENDER_SLEEPS` | `SENT_LATE` | `SENDER_GONE` | the sender |
// |---|---|---|---|---|---|
// | 1 | 0 or 1 | 0 | 0 | 0 or 1 | has sent nothing yet, or left without having sent anything |
// | 0 | 1 | 0 | 0 or 1 | 0 or 1 | has sent no more than the pipe holds |
// | 0 | 0 | 0 | 0 or 1 | 0 or 1 | has asked for room again since its first send |
// | 0 | 0 | 1 | 0 | 0 | sleeps for want of room, or is about to |
//
// `SENT_LATE` says that it has sent something since the receiver left, and the receiver has not
// looked again; `SENDER_GONE`, that it has left.
//
// | `MUST_FENCE` | `FENCE_FOR_NOW` | an end that publishes |
// |---|---|---|
// | 0 | 0 | needs no fence before it looks at the state |
// | 1 | 0 | fences, for the whole life of the pipe |
// | 0 | 1 | fences until the receiver takes many messages without a sleep |
//
// Without `ALIVE` this is a forked child, and the other bits mean nothing.
pub(super) const RECEIVER_SLEEPS: u32 = 1 << 1;
pub(super) const SENDER_SLEEPS: u32 = 1 << 2;
pub(super) const RECEIVER_GONE: u32 = 1 << 3;
pub(super) const SENT_LATE: u32 = 1 << 4;
pub(super) const DRAINED: u32 = 1 << 5;
pub(super) const MUST_FENCE: u32 = 1 << 6;
pub(super) const SENDER_GONE: u32 = 1 << 7;
pub(super) const NEVER_SENT: u32 = 1 << 8;
pub(super) const FIRST_FILL: u32 = 1 << 9;
pub(super) const FENCE_FOR_NOW: u32 = 1 << 10;
/// Whoever publishes fences.
const FENCES: u32 = MUST_FENCE | FENCE_FOR_NOW;

/// Returns `true` if the tables above have this state.
pub(super) fn is_legal(state: u32) -> bool {
    let has = |bits: u32| state & bits != 0;
    let contradictory = has(RECEIVER_SLEEPS) && has(RECEIVER_GONE)
        || has(DRAINED | SENT_LATE) && !has(RECEIVER_GONE)
        || has(NEVER_SENT) && has(SENDER_SLEEPS | SENT_LATE)
        || has(SENDER_SLEEPS) && has(FIRST_FILL | SENT_LATE | SENDER_GONE)
        || has(MUST_FENCE) && has(FENCE_FOR_NOW);
    !has(ALIVE) || !contradictory
}

/// Messages from one sleep to the next beyond which an interruption of the other CPUs costs less
/// than a fence for each of them: some microseconds against some tens of nanoseconds.
const DENSE: u64 = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 2 } else { 64 };

/// A pipe that holds more than this begins without `FIRST_FILL`: while the bit is set, each send
/// looks twice. The bit is meant for the pipe that carries one answer.
const MAX_FIRST_FILL: u64 = 1;

/// The sender's side of a [`WaitStats`].
pub(super) const SENDER: usize = 0;
/// The receiver's.
pub(super) const RECEIVER: usize = 1;

/// Frames behind one that was told to the receiver which the sender may open without telling. Also
/// the low bits of a header's address, which are 0, so that they can hold such a number.
pub(super) const MAX_BEHIND: usize =
    if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 3 } else { 63 };

/// The receiver tells about room so often in a round of a pipe.
const ACKS_PER_LAP: u64 = 8;

/// The frame of which the sender has told the receiver.
struct OpenFrame {
    /// Its header; the low bits say in how many frames behind that one the sender may go on without
    /// storing here.
    header: AtomicPtr<Header>,
    /// Messages that were sent before that frame; stored before `header`.
    count_before: AtomicU64,
    /// The same, stored after it.
    count_after: AtomicU64,
}

pub(super) struct Shared<T> {
    /// The bits above. Both ends look at it with each message; it is written only when somebody
    /// sleeps, wakes or leaves, so each has a copy of its line.
    pub(super) state: WipeOnFork<AtomicU32>,
    /// Messages that the receiver has taken, stored with each. Read by a sender that finds no room
    /// in `acked`.
    pub(super) taken: CachePadded<AtomicU64>,
    /// As `taken`, but stored rarely, so that a sender that waits for room does not slow the
    /// receiver down.
    pub(super) acked: CachePadded<AtomicU64>,
    /// Messages that the receiver had taken when it last went to sleep. Its own.
    slept_at: CachePadded<AtomicU64>,
    /// For a receiver that asks for the length.
    open_frame: CachePadded<OpenFrame>,
    /// The sender's, and after it has left that of whoever drops the pipe.
    pub(super) writer: CachePadded<UnsafeCell<Writer<T>>>,
    /// The receiver's, and that of a sender that finds `DRAINED`, and of whoever drops the pipe.
    pub(super) reader: CachePadded<UnsafeCell<Reader<T>>>,
    pub(super) layout: PipeLayout,
    pub(super) free_list: FreeList<T>,
    /// Units of the ring that is in use.
    pub(super) ring_units: AtomicUsize,
    pub(super) stats: WaitStats,
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
        layout: PipeLayout,
        retain_bytes: usize,
        reserve: bool,
        must_fence: bool,
    ) -> (Self, WriteCursor<T>, ReadCursor<T>) {
        let segment = Segment::ring(layout.first.units);
        // SAFETY: just made.
        let memory = unsafe { &*segment }.memory;
        if reserve {
            // SAFETY: nobody else knows of it.
            unsafe { memory.touch() };
        }
        let mut state = ALIVE | NEVER_SENT;
        if must_fence || sync::senders_must_fence() {
            state |= MUST_FENCE;
        }
        if layout.capacity <= MAX_FIRST_FILL {
            state |= FIRST_FILL;
        }
        let (capacity, first) = (layout.capacity, memory.frame(0));
        let writer = Writer::new(segment, memory, layout.first, capacity);
        // A bounded pipe tells as often as its capacity requires, an unbounded one as its ring
        // does.
        let lap = capacity.min(layout.largest.slots);
        let ack_interval = (lap / ACKS_PER_LAP).max(1);
        let reader = Reader::new(segment, memory, layout.first.units, ack_interval);
        let shared = Shared {
            state: WipeOnFork::new(AtomicU32::new(state)),
            taken: CachePadded(AtomicU64::new(0)),
            acked: CachePadded(AtomicU64::new(0)),
            slept_at: CachePadded(AtomicU64::new(0)),
            open_frame: CachePadded(OpenFrame {
                header: AtomicPtr::new(first.header_pointer()),
                count_before: AtomicU64::new(0),
                count_after: AtomicU64::new(0),
            }),
            writer: CachePadded(UnsafeCell::new(writer)),
            reader: CachePadded(UnsafeCell::new(reader)),
            layout,
            free_list: FreeList::new(layout.chunk_units, retain_bytes),
            ring_units: AtomicUsize::new(layout.first.units),
            stats: WaitStats::new::<W>(),
            process: sync::process(),
        };
        (shared, WriteCursor::new(first, 0), ReadCursor::new(first))
    }

    /// `sticky_bits` are bits that are set with the side's own.
    pub(super) fn parker(&self, side: usize, sticky_bits: u32) -> Parker<'_> {
        let bit = if side == SENDER { SENDER_SLEEPS } else { RECEIVER_SLEEPS };
        Parker {
            word: &self.state,
            bit,
            sticky_bits,
            stats: &self.stats,
            side,
            pending_wakeups: None,
            spins_before_park: if side == SENDER { crate::wait::SPINS_BEFORE_PARK } else { 0 },
            process: self.process,
        }
    }

    /// Returns `true` if the receiver can do without the barrier, having changed the state by a
    /// read-modify-write: no send is under way whose look at the state may come before that and
    /// whose message may come after.
    ///
    /// This holds once the sender has left. It holds while the sender's next send must begin with a
    /// read-modify-write: its first one, and the first one beyond the capacity of a pipe with
    /// `FIRST_FILL`, if every message up to that capacity was taken.
    fn no_send_in_flight(&self, state: u32, taken: u64) -> bool {
        let first_fill_over = state & FIRST_FILL != 0 && taken >= self.layout.capacity;
        mutate!(idle, state & (SENDER_GONE | NEVER_SENT) != 0 || first_fill_over => true)
    }

    /// Announces a sleep, or a departure, after a bit was set where the state was this: see
    /// [`crate::wait::barrier_or_nap`].
    pub(super) fn announce(&self, state: u32) -> FenceOutcome {
        if state & FENCES != 0 {
            // The partner of the fence in `state_after_publishing`.
            mutate!(fence_of_sleeper, fence(Ordering::SeqCst) => ());
            return FenceOutcome::Fenced;
        }
        barrier_or_nap()
    }

    /// As [`Shared::announce`], but for a receiver that goes to sleep, which may be spared the
    /// barrier.
    pub(super) fn announce_receiver(&self, state: u32, taken: u64) -> FenceOutcome {
        debug_assert!(is_legal(state | RECEIVER_SLEEPS));
        self.slept_at.store(taken, Ordering::Relaxed);
        if self.no_send_in_flight(state, taken) {
            return FenceOutcome::Fenced;
        }
        self.announce(state)
    }

    /// The bit that the receiver sets with its own before it sleeps, where the sender is to fence
    /// from now on.
    pub(super) fn sticky_fence_bit(&self, taken: u64) -> u32 {
        let must_fence = self.state.load(Ordering::Relaxed) & MUST_FENCE != 0;
        if must_fence || self.is_dense(taken) { 0 } else { FENCE_FOR_NOW }
    }

    /// Whether many messages were taken since the receiver last slept.
    fn is_dense(&self, taken: u64) -> bool {
        taken - self.slept_at.load(Ordering::Relaxed) >= DENSE
    }

    /// The sender fences no more where that has become too expensive.
    pub(super) fn stop_fencing_if_dense(&self, taken: u64) {
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
        crate::wait::wake(&self.state, RECEIVER_SLEEPS, &self.stats, SENDER);
    }

    pub(super) fn wake_sender(&self) {
        crate::wait::wake(&self.state, SENDER_SLEEPS, &self.stats, RECEIVER);
    }

    /// The sender goes on in a frame, and perhaps in so many behind it.
    pub(super) fn announce_frame(&self, frame: FramePtr<T>, stamp: u64, behind: usize) {
        debug_assert!(behind <= MAX_BEHIND);
        // SAFETY: a free frame of a segment in which the sender is.
        unsafe { frame.store(stamp, Ordering::Relaxed) };
        let header = frame.header_pointer().wrapping_byte_add(behind);
        self.open_frame.count_before.store(count(stamp), Ordering::Relaxed);
        // Release: a receiver that finds this finds the new `sent`, and the header as just stored.
        self.open_frame.header.store(header, Ordering::Release);
        // Release: a receiver that finds this finds the new `header`.
        mutate!(tell_open, self.open_frame.count_after.store(count(stamp), Ordering::Release) => ());
    }

    /// Number of messages that were sent before the frame of which the sender has told.
    pub(super) fn announced(&self) -> u64 {
        if cfg!(any(threadtoll_loom, threadtoll_shuttle)) {
            // It decides about nothing that a checker could see.
            return 0;
        }
        self.open_frame.count_after.load(Ordering::Relaxed)
    }

    /// Number of messages that were sent, as the receiver sees it, which is here. Exact while the
    /// sender does nothing, otherwise a moment old.
    ///
    /// Looks at no frame before the receiver's: the sender may write there.
    pub(super) fn sent(&self, cursor: &ReadCursor<T>) -> u64 {
        let told = self.open_frame.count_after.load(Ordering::Acquire);
        let open = self.open_frame.header.load(Ordering::Acquire);
        if self.open_frame.count_before.load(Ordering::Relaxed) != told {
            // The sender is telling of the next frame.
            return told.max(cursor.visible());
        }
        let behind = open.addr() & MAX_BEHIND;
        let last = (0..behind)
            .fold(open.wrapping_byte_sub(behind), |header, _| FramePtr::<T>::header_behind(header));
        // Otherwise the receiver is in a frame behind that one, in the same segment.
        let (mut header, mut sent, mut full) = if told >= cursor.visible() {
            let full = told + Geometry::<T>::PER_FRAME as u64;
            (open.wrapping_byte_sub(behind), told, full)
        } else {
            (cursor.next_header(), cursor.visible(), cursor.count_when_full())
        };
        loop {
            // SAFETY: in a segment that the receiver has not given back: the sender tells where it
            // is before it publishes the jump that lets the receiver leave a segment. A header lies
            // here and no message: it is the receiver's frame or one behind that, so nothing was
            // written over it; long runs begin where a frame does, and the one before this is
            // full.
            let found = count(unsafe { &*header }.load(Ordering::Acquire));
            sent = sent.max(found);
            if found != full || header == last {
                return sent;
            }
            header = FramePtr::<T>::header_behind(header);
            full += Geometry::<T>::PER_FRAME as u64;
        }
    }

    /// The receiver leaves: everything that was sent is dropped now, and what comes later by the
    /// sender.
    pub(super) fn receiver_leaves(&self, mut cursor: ReadCursor<T>) {
        let state = self.state.fetch_or(RECEIVER_GONE, Ordering::AcqRel);
        debug_assert!(is_legal(state | RECEIVER_GONE));
        if mutate!(wake_in_leave, state & SENDER_SLEEPS != 0 => false) {
            self.wake_sender();
        }
        if std::mem::needs_drop::<T>() && !self.no_send_in_flight(state, cursor.taken()) {
            // The partner of the barrier in `send`; see the head of this file.
            mutate!(barrier_in_leave, self.announce(state) => FenceOutcome::Fenced).settle();
        }
        let mut first_panic = FirstPanic::default();
        self.reader.with_mut(|reader| {
            // SAFETY: we are the receiver, and have not said `DRAINED`.
            let reader = unsafe { &mut *reader };
            loop {
                cursor = reader.drop_all(self, cursor, &mut first_panic);
                // Release: a sender that still waits for room may find it here, and writes where we
                // have read. Whether its message was dropped, it asks only after `DRAINED`.
                self.taken.store(cursor.taken(), mutate!(tell_taken_in_leave, Release));
                // Handed to the sender, or to whoever drops the pipe.
                reader.stopped_at = Some(cursor);
                if state & SENDER_GONE != 0 {
                    break;
                }
                // A message that was sent after the last look is announced by `SENT_LATE`: it is
                // dropped here too.
                let state = self.state.load(Ordering::Acquire);
                let late = state & SENT_LATE != 0;
                let next = if late { state & !SENT_LATE } else { state | DRAINED };
                debug_assert!(is_legal(next));
                let order = mutate!(drained, AcqRel);
                let swapped = self.state.compare_exchange(state, next, order, Ordering::Relaxed);
                if swapped.is_ok() && !late {
                    break;
                }
            }
        });
        first_panic.resume();
    }

    /// The sender has published messages and finds the receiver gone. Returns `false` if the
    /// receiver will look again and drop them. If `true`, it looks no more and `taken` is final:
    /// messages beyond it are the sender's.
    pub(super) fn flag_late_send(&self) -> bool {
        let state = self.state.fetch_or(SENT_LATE, mutate!(sent_late, AcqRel));
        debug_assert!(is_legal(state | SENT_LATE));
        state & DRAINED != 0
    }

    /// The sender drops what it has published and cannot take back, after [`Shared::sent_late`] has
    /// said that it must, or the pipe ends. Returns the number of messages that were taken before.
    pub(super) fn drop_remaining(&self, first_panic: &mut FirstPanic) -> u64 {
        let taken = self.taken.load(Ordering::Relaxed);
        self.reader.with_mut(|reader| {
            // SAFETY: the receiver has set `DRAINED`, which `sent_late` has seen with acquire, or
            // both ends are gone.
            let reader = unsafe { &mut *reader };
            if let Some(cursor) = reader.stopped_at {
                let cursor = reader.drop_all(self, cursor, first_panic);
                reader.stopped_at = Some(cursor);
                self.taken.store(cursor.taken(), Ordering::Relaxed);
            }
        });
        taken
    }

    /// The sender leaves.
    pub(super) fn sender_leaves(&self, mut cursor: WriteCursor<T>) {
        self.writer.with_mut(|writer| {
            // SAFETY: we are the sender.
            unsafe { &mut *writer }.open_for_flags(self, &mut cursor);
        });
        let stamp = cursor.stamp() | CLOSED;
        // Release: as in `publish`.
        // SAFETY: the open frame begins here.
        unsafe { cursor.frame.store(stamp, mutate!(publish_close, Release)) };
        // A read-modify-write has its place among those of a receiver that goes to sleep: either it
        // is told here, or it finds the header. AcqRel: for that, and for one that leaves later.
        let state = self.state.fetch_or(SENDER_GONE, Ordering::AcqRel);
        debug_assert!(is_legal(state | SENDER_GONE));
        if mutate!(wake_in_close, state & RECEIVER_SLEEPS != 0 => false) {
            self.wake_receiver();
        }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let mut first_panic = FirstPanic::default();
        self.drop_remaining(&mut first_panic);
        self.reader.with_mut(|reader| {
            // SAFETY: both ends are gone.
            unsafe { &*reader }.free(self);
        });
        self.writer.with_mut(|writer| {
            // SAFETY: both ends are gone.
            unsafe { &mut *writer }.free(self);
        });
        first_panic.resume();
    }
}
