//! State that both ends of a pipe share, and the rules by which one of them drops a message when an
//! end leaves.
//!
//! **Leaving.** `send` stores a header and then reads the state. A receiver that leaves sets
//! `RECEIVER_GONE` and then reads the headers. Without a barrier, each could miss the other's
//! store. The message would then stay in the pipe until the sender is dropped, although a thread
//! may be waiting for a reply to it. So between setting its bit and reading the headers, the
//! receiver executes the barrier that `send` omits ([`crate::sync::request_barrier`]). It skips the
//! barrier if messages have no destructor, if the sender has left, or if the sender's next send is
//! its first, which begins with a read-modify-write of the state ([`Shared::no_send_in_flight`]).
//! If the kernel refuses the barrier, the receiver waits for a millisecond before it reads the
//! headers.
//!
//! A sender that finds `RECEIVER_GONE` after it has published sets `SENT_LATE`. If `DRAINED` was
//! not set, the receiver checks again and drops the message. If `DRAINED` was set, the receiver is
//! done, `taken` is final, and all later messages belong to the sender, which returns its message
//! or drops it.
//!
//! **Sleeping often.** A receiver that has taken few messages since its last sleep sets
//! `FENCE_FOR_NOW` when it goes to sleep ([`LastSleep`]). Once it has taken many without a sleep,
//! it clears the bit. While the bit is set, the sender executes a fence for each message, and the
//! receiver sleeps without a barrier. The receiver of a bounded pipe then also executes fences. So
//! a sender that finds the bit when it sets `SENDER_SLEEPS` sleeps without a barrier, too.

use std::task::Waker;

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
use crate::wait::{
    FenceOutcome, LastSleep, Needs, Parker, Wait, WaitStats, WakerCell, barrier_or_nap,
};

// The bits of `Shared::state`. `ALIVE` is always set. The other bits match one row of each of the
// three tables below; any combination of rows may occur, except that `SENT_LATE` is only set
// together with `RECEIVER_GONE`. Whenever a bit is set, a debug assertion checks with `is_legal`
// that the tables allow the new state.
//
// | `RECEIVER_SLEEPS` | `RECEIVER_GONE` | `DRAINED` | the receiver |
// |---|---|---|---|
// | 0 | 0 | 0 | receives, or is awake and waits |
// | 1 | 0 | 0 | sleeps, or is about to, or waits in a task |
// | 0 | 1 | 0 | is leaving, and drops what it finds |
// | 0 | 1 | 1 | has left, and reads nothing more: the sender must drop later messages |
//
// | `NEVER_SENT` | `SENDER_SLEEPS` | `SENT_LATE` | `SENDER_GONE` | the sender |
// |---|---|---|---|---|
// | 1 | 0 | 0 | 0 or 1 | has sent nothing yet, or left without having sent anything |
// | 0 | 0 | 0 or 1 | 0 or 1 | has sent |
// | 0 | 1 | 0 | 0 | sleeps for want of room, or is about to, or waits in a task |
// `SENT_LATE`: the sender has sent something since the receiver left, and the receiver has not
// checked again. `SENDER_GONE`: the sender has left, and everything that it sent is published.
//
// | `MUST_FENCE` | `FENCE_FOR_NOW` | an end that publishes |
// |---|---|---|
// | 0 | 0 | needs no fence before it reads the state |
// | 1 | 0 | fences, for the whole life of the pipe |
// | 0 | 1 | fences until the receiver takes many messages without a sleep |
//
// Without `ALIVE`, this is a forked child, and the other bits are meaningless.
pub(super) const RECEIVER_SLEEPS: u32 = 1 << 1;
pub(super) const SENDER_SLEEPS: u32 = 1 << 2;
pub(super) const RECEIVER_GONE: u32 = 1 << 3;
pub(super) const SENT_LATE: u32 = 1 << 4;
pub(super) const DRAINED: u32 = 1 << 5;
pub(super) const MUST_FENCE: u32 = 1 << 6;
pub(super) const SENDER_GONE: u32 = 1 << 7;
pub(super) const NEVER_SENT: u32 = 1 << 8;
pub(super) const FENCE_FOR_NOW: u32 = 1 << 9;
/// Bits that make an end execute a fence after it has published something.
const FENCES: u32 = MUST_FENCE | FENCE_FOR_NOW;

/// Returns `true` if the tables above allow this state.
pub(super) fn is_legal(state: u32) -> bool {
    let has = |bits: u32| state & bits != 0;
    let contradictory = has(RECEIVER_SLEEPS) && has(RECEIVER_GONE)
        || has(DRAINED | SENT_LATE) && !has(RECEIVER_GONE)
        || has(NEVER_SENT) && has(SENDER_SLEEPS | SENT_LATE)
        || has(SENDER_SLEEPS) && has(SENT_LATE | SENDER_GONE)
        || has(MUST_FENCE) && has(FENCE_FOR_NOW);
    !has(ALIVE) || !contradictory
}

/// Numbers of the two sides in [`WaitStats`].
pub(super) const SENDER: usize = 0;
pub(super) const RECEIVER: usize = 1;

/// Maximum number of frames after an announced one that the sender opens without announcing them.
/// The number fits into the low bits of a header's address, which are 0.
pub(super) const MAX_BEHIND: usize =
    if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 3 } else { 63 };

/// Number of times per lap of the ring that the receiver publishes `acked`.
const ACKS_PER_LAP: u64 = 8;

/// The frame that the sender announced last. [`Shared::sent`] counts messages from there.
/// `count_before` and `count_after` differ while the sender announces another frame.
struct OpenFrame {
    /// The frame's header. The low bits hold the number of frames after it that the sender opens
    /// without announcing them.
    header: AtomicPtr<Header>,
    /// Number of messages sent before the announced frame; stored before `header`.
    count_before: AtomicU64,
    /// A copy of `count_before`, stored after `header`.
    count_after: AtomicU64,
}

pub(super) struct Shared<T> {
    /// The bits listed above. Both ends read this word with each message. It is written only when
    /// an end sleeps, wakes or leaves, so both CPUs keep a copy of its cache line.
    pub(super) state: WipeOnFork<AtomicU32>,
    /// Number of messages that the receiver has taken, stored with each message. Read by a sender
    /// that finds no room according to `acked`.
    pub(super) taken: CachePadded<AtomicU64>,
    /// Like `taken`, but stored only a few times per lap, so that a sender that waits for room does
    /// not slow the receiver down.
    pub(super) acked: CachePadded<AtomicU64>,
    last_sleep: CachePadded<LastSleep>,
    open_frame: CachePadded<OpenFrame>,
    /// Used by the sender, and by the last end when it drops the pipe.
    pub(super) writer: CachePadded<UnsafeCell<Writer<T>>>,
    /// Used by the receiver, by a sender that finds `DRAINED`, and by the last end when it drops
    /// the pipe.
    pub(super) reader: CachePadded<UnsafeCell<Reader<T>>>,
    pub(super) layout: PipeLayout,
    pub(super) free_list: FreeList<T>,
    /// Number of units of the current ring.
    pub(super) ring_units: AtomicUsize,
    pub(super) stats: WaitStats,
    /// The wakers of both sides.
    tasks: [WakerCell; 2],
    process: u32,
}

// SAFETY: the only sender writes messages, the only receiver reads them, and a header's release and
// acquire order the two. So the pipe moves values of a `Send` type between threads and shares none.
// All other fields are `Sync`, or are used by one end at a time, as documented above.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Creates the shared state and the cursors of both ends.
    pub(super) fn new(
        wait: Wait,
        layout: PipeLayout,
        retain_bytes: usize,
        reserve: bool,
        must_fence: bool,
    ) -> (Self, WriteCursor<T>, ReadCursor<T>) {
        let segment = Segment::ring(layout.first.units);
        // SAFETY: just made.
        let memory = unsafe { &*segment }.memory;
        if reserve {
            // SAFETY: just made, and not shared yet.
            unsafe { memory.touch() };
        }
        let mut state = ALIVE | NEVER_SENT;
        if must_fence || sync::senders_must_fence() {
            state |= MUST_FENCE;
        }
        let (capacity, first) = (layout.capacity, memory.frame(0));
        let writer = Writer::new(segment, memory, layout.first, capacity);
        let lap = capacity.min(layout.largest.slots);
        let ack_interval = (lap / ACKS_PER_LAP).max(1);
        let reader = Reader::new(segment, memory, layout.first.units, ack_interval);
        let shared = Shared {
            state: WipeOnFork::new(AtomicU32::new(state)),
            taken: CachePadded(AtomicU64::new(0)),
            acked: CachePadded(AtomicU64::new(0)),
            last_sleep: CachePadded(LastSleep::new()),
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
            stats: WaitStats::new(wait),
            tasks: [WakerCell::new(), WakerCell::new()],
            process: sync::process(),
        };
        (shared, WriteCursor::new(first, 0), ReadCursor::new(first))
    }

    pub(super) fn parker(&self, side: usize, sticky_bits: u32) -> Parker<'_> {
        let bit = if side == SENDER { SENDER_SLEEPS } else { RECEIVER_SLEEPS };
        Parker {
            word: &self.state,
            bit,
            sticky_bits,
            stats: &self.stats,
            side,
            task: Some(&self.tasks[side]),
            pending_wakeups: None,
            spins_before_park: if side == SENDER { crate::wait::SPINS_BEFORE_PARK } else { 0 },
            process: self.process,
        }
    }

    /// Returns `true` if the receiver needs no barrier after it has updated the state by a
    /// read-modify-write. No send is then in flight that could miss the update while the receiver
    /// misses its message: the sender has left, or its next send is its first, which begins with a
    /// read-modify-write of its own.
    fn no_send_in_flight(state: u32) -> bool {
        mutate!(idle, state & (SENDER_GONE | NEVER_SENT) != 0 => true)
    }

    /// Executes the barrier that a side needs after it has set its bit. `state` is the value before
    /// the bit was set.
    pub(super) fn announce(&self, state: u32) -> FenceOutcome {
        if state & FENCES != 0 {
            // Pairs with the fence in `state_after_publishing`.
            mutate!(fence_of_sleeper, fence(Ordering::SeqCst) => ());
            return FenceOutcome::Fenced;
        }
        barrier_or_nap()
    }

    /// Like [`Shared::announce`], for a receiver that goes to sleep. In some cases, it needs no
    /// barrier.
    pub(super) fn announce_receiver(&self, state: u32, taken: u64) -> FenceOutcome {
        debug_assert!(is_legal(state | RECEIVER_SLEEPS));
        self.last_sleep.record(taken);
        if Self::no_send_in_flight(state) {
            return FenceOutcome::Fenced;
        }
        self.announce(state)
    }

    /// Like [`Shared::announce_receiver`], but returns what a `Select` has to execute.
    pub(super) fn needs_of_receiver(&self, state: u32, taken: u64) -> Needs {
        debug_assert!(is_legal(state | RECEIVER_SLEEPS));
        self.last_sleep.record(taken);
        if Self::no_send_in_flight(state) {
            Needs::Nothing
        } else if state & FENCES != 0 {
            Needs::Fence
        } else {
            Needs::Barrier
        }
    }

    /// Returns `FENCE_FOR_NOW` if the sender should execute fences from now on, otherwise 0.
    pub(super) fn sticky_fence_bit(&self, taken: u64) -> u32 {
        let must_fence = self.state.load(Ordering::Relaxed) & MUST_FENCE != 0;
        if must_fence || self.last_sleep.is_far(taken) { 0 } else { FENCE_FOR_NOW }
    }

    /// Stops the sender's fences once sleeps are so rare that the fences cost more than a barrier.
    pub(super) fn stop_fencing_if_dense(&self, taken: u64) {
        if self.last_sleep.is_far(taken) && self.state.load(Ordering::Relaxed) & FENCE_FOR_NOW != 0
        {
            // AcqRel: see `wait::for_now`.
            self.state.fetch_and(!FENCE_FOR_NOW, Ordering::AcqRel);
        }
    }

    /// Stops the wait of a task on this side, if there is one. Returns its waker, for the caller to
    /// drop.
    pub(super) fn stop_watching(&self, side: usize) -> Option<Waker> {
        self.parker(side, 0).unwatch(false)
    }

    /// Reads the state after this end has published something. If the state asks for a fence,
    /// executes the fence first.
    #[cold]
    pub(super) fn state_after_publishing(&self) -> u32 {
        if self.state.load(Ordering::Relaxed) & FENCES != 0 {
            // Pairs with the fence in `announce`.
            mutate!(fence_without_membarrier, fence(Ordering::SeqCst) => ());
        }
        self.state.load(Ordering::Acquire)
    }

    pub(super) fn wake_receiver(&self) {
        let task = Some(&self.tasks[RECEIVER]);
        crate::wait::wake(&self.state, RECEIVER_SLEEPS, task, &self.stats, SENDER);
    }

    pub(super) fn wake_sender(&self) {
        let task = Some(&self.tasks[SENDER]);
        crate::wait::wake(&self.state, SENDER_SLEEPS, task, &self.stats, RECEIVER);
    }

    /// Announces that the sender continues in `frame`, and in up to `behind` frames after it.
    pub(super) fn announce_frame(&self, frame: FramePtr<T>, stamp: u64, behind: usize) {
        debug_assert!(behind <= MAX_BEHIND);
        // SAFETY: a free frame of the sender's segment.
        unsafe { frame.store(stamp, Ordering::Relaxed) };
        let header = frame.header_pointer().wrapping_byte_add(behind);
        self.open_frame.count_before.store(count(stamp), Ordering::Relaxed);
        // Release: a receiver that sees this sees the new `count_before` and the stored header.
        self.open_frame.header.store(header, Ordering::Release);
        // Release: a receiver that sees this sees the new `header`.
        mutate!(tell_open, self.open_frame.count_after.store(count(stamp), Ordering::Release) => ());
    }

    /// Number of messages sent before the announced frame.
    pub(super) fn announced(&self) -> u64 {
        if cfg!(any(threadtoll_loom, threadtoll_shuttle)) {
            // 0 will do in a model, because this only determines what is prefetched.
            return 0;
        }
        self.open_frame.count_after.load(Ordering::Relaxed)
    }

    /// Number of messages sent, as seen by the receiver with this cursor. Reads no frame before the
    /// one that the receiver is in, because the sender may be writing there.
    pub(super) fn sent(&self, cursor: &ReadCursor<T>) -> u64 {
        let announced = self.open_frame.count_after.load(Ordering::Acquire);
        let open = self.open_frame.header.load(Ordering::Acquire);
        if self.open_frame.count_before.load(Ordering::Relaxed) != announced {
            // The sender is announcing another frame right now.
            return announced.max(cursor.visible());
        }
        let behind = open.addr() & MAX_BEHIND;
        let announced_until = announced + ((1 + behind) * Geometry::<T>::PER_FRAME) as u64;
        // A receiver that is past the announced frame is in the same segment as that frame.
        let (mut header, mut sent, mut full) = if announced >= cursor.visible() {
            let full = announced + Geometry::<T>::PER_FRAME as u64;
            (open.wrapping_byte_sub(behind), announced, full)
        } else {
            (cursor.next_header(), cursor.visible(), cursor.count_when_full())
        };
        loop {
            // SAFETY: the segment is alive: the sender announces a frame of the next segment before
            // it publishes the jump that lets the receiver leave this one. `header` belongs to the
            // receiver's frame or to a frame that was announced with `open`, and none of these is
            // beyond the end of the memory. A header is stored there, not a message: no lap has
            // overwritten the receiver's frame and those after it, runs begin where frames do, and
            // the frame before this one is full.
            let found = count(unsafe { &*header }.load(Ordering::Acquire));
            sent = sent.max(found);
            // `!=`, because the header may count more by now. `>=`, because the receiver may be
            // past everything that was announced.
            if found != full || full >= announced_until {
                return sent;
            }
            header = FramePtr::<T>::header_behind(header);
            full += Geometry::<T>::PER_FRAME as u64;
        }
    }

    /// Called when the receiver leaves. Drops all messages sent so far; the sender drops those that
    /// it sends later.
    pub(super) fn receiver_leaves(&self, mut cursor: ReadCursor<T>) {
        let mut first_panic = FirstPanic::default();
        first_panic.drop(self.stop_watching(RECEIVER));
        let state = self.state.fetch_or(RECEIVER_GONE, Ordering::AcqRel);
        debug_assert!(is_legal(state | RECEIVER_GONE));
        if mutate!(wake_in_leave, state & SENDER_SLEEPS != 0 => false) {
            self.wake_sender();
        }
        if std::mem::needs_drop::<T>() && !Self::no_send_in_flight(state) {
            // Pairs with the barrier in `send`; see the head of this file.
            mutate!(barrier_in_leave, self.announce(state) => FenceOutcome::Fenced).settle();
        }
        self.reader.with_mut(|reader| {
            // SAFETY: we are the receiver, and `DRAINED` is not set.
            let reader = unsafe { &mut *reader };
            loop {
                cursor = reader.drop_all(self, cursor, &mut first_panic);
                // Release: a sender that still waits may find room here, and then overwrite what
                // the receiver has read.
                self.taken.store(cursor.taken(), mutate!(tell_taken_in_leave, Release));
                // Read later by the sender, or by the end that drops the pipe.
                reader.stopped_at = Some(cursor);
                if state & SENDER_GONE != 0 {
                    break;
                }
                // `SENT_LATE` means that a message may have been sent after `drop_all`, so the loop
                // runs again.
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

    /// Called when the sender has published messages and finds the receiver gone. Returns `false`
    /// if the receiver will drop the messages, and `true` if the receiver is done and messages
    /// beyond `taken` belong to the sender.
    pub(super) fn flag_late_send(&self) -> bool {
        let state = self.state.fetch_or(SENT_LATE, mutate!(sent_late, AcqRel));
        debug_assert!(is_legal(state | SENT_LATE));
        state & DRAINED != 0
    }

    /// Drops the messages that no receiver will take: called by the sender after
    /// [`Shared::flag_late_send`] has returned `true`, and by the last end. Returns the number of
    /// messages that were taken before.
    pub(super) fn drop_remaining(&self, first_panic: &mut FirstPanic) -> u64 {
        let taken = self.taken.load(Ordering::Relaxed);
        self.reader.with_mut(|reader| {
            // SAFETY: the receiver has set `DRAINED`, which `flag_late_send` has seen with acquire,
            // or both ends are gone.
            let reader = unsafe { &mut *reader };
            if let Some(cursor) = reader.stopped_at {
                let cursor = reader.drop_all(self, cursor, first_panic);
                reader.stopped_at = Some(cursor);
                self.taken.store(cursor.taken(), Ordering::Relaxed);
            }
        });
        taken
    }

    pub(super) fn sender_leaves(&self, mut cursor: WriteCursor<T>) {
        let mut first_panic = FirstPanic::default();
        first_panic.drop(self.stop_watching(SENDER));
        self.writer.with_mut(|writer| {
            // SAFETY: we are the sender.
            unsafe { &mut *writer }.open_for_flags(self, &mut cursor);
        });
        let stamp = cursor.stamp() | CLOSED;
        // Release: as in `publish`.
        // SAFETY: the open frame begins here.
        unsafe { cursor.frame.store(stamp, mutate!(publish_close, Release)) };
        // AcqRel: a receiver that goes to sleep or leaves also updates the state by a
        // read-modify-write. Either the receiver's update comes first and we find its bit, or the
        // receiver finds the header.
        let state = self.state.fetch_or(SENDER_GONE, Ordering::AcqRel);
        debug_assert!(is_legal(state | SENDER_GONE));
        if mutate!(wake_in_close, state & RECEIVER_SLEEPS != 0 => false) {
            self.wake_receiver();
        }
        first_panic.resume();
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
