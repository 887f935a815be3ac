//! The receiver's position in a pipe.
//!
//! Every receive needs the [`ReadCursor`]. It is copied into slow paths and back, never borrowed,
//! so that a loop around `recv` keeps it in registers. The [`Reader`] holds everything else.

use super::memory::{
    BasePtr, CLOSED, FLAGS, FramePtr, Geometry, Header, JUMP, Memory, MessagePtr, ONE, RETIRED,
    count, new_messages,
};
use super::segment::Segment;
use super::shared::Shared;
use crate::first_panic::FirstPanic;
use crate::sync::{Ordering, mutate};
use crate::wait::Polled;

/// Distance in frames from the frame that is read to the one that is prefetched. Reading that many
/// frames takes about 100 ns, the time to transfer a cache line from another core. Values between 8
/// and 32 performed equally well.
const AHEAD: usize = 16;

/// The part of the position that every receive needs.
pub(super) struct ReadCursor<T> {
    /// Gives the address of a message by its number.
    base: BasePtr<T>,
    /// Number of messages taken, which is also the number of the next message. The only field that
    /// changes with each message.
    taken: u64,
    /// Number of messages sent, as far as the receiver has seen.
    visible: u64,
    /// Number of slots of `frame` that are not filled, as far as the receiver has seen.
    frame_slots: usize,
    /// The frame whose header counts the next messages.
    frame: FramePtr<T>,
}

impl<T> Clone for ReadCursor<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ReadCursor<T> {}

impl<T> ReadCursor<T> {
    pub(super) fn new(frame: FramePtr<T>) -> Self {
        let frame_slots = Geometry::<T>::PER_FRAME;
        ReadCursor { base: frame.first_message().base(0), taken: 0, visible: 0, frame_slots, frame }
    }

    #[inline(always)]
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Number of messages that can be taken without reading a header again.
    #[inline(always)]
    pub(super) fn available(&self) -> usize {
        (self.visible - self.taken) as usize
    }

    #[inline(always)]
    pub(super) fn next_message(&self) -> MessagePtr<T> {
        self.base.message(self.taken)
    }

    /// Moves the next message out.
    #[inline(always)]
    pub(super) fn take(&mut self) -> T {
        let place = self.next_message();
        self.advance_to(self.taken + 1);
        // SAFETY: a header counts the message, and `taken` has advanced past it, so it is moved out
        // once.
        unsafe { place.read() }
    }

    /// Counts messages as taken, up to the total `taken`.
    #[inline(always)]
    pub(super) fn advance_to(&mut self, taken: u64) {
        debug_assert!(taken <= self.visible);
        self.taken = taken;
    }

    /// Continues at another position with the same `taken`. That field is stored again all the
    /// same, separately from the others. Otherwise the compiler would reload the field after a load
    /// with acquire, and a loop around `recv` could not keep it in a register.
    #[inline(always)]
    pub(super) fn move_to(&mut self, other: Self) {
        debug_assert_eq!(self.taken, other.taken);
        let ReadCursor { base, taken, visible, frame_slots, frame } = other;
        self.base = base;
        self.visible = visible;
        self.frame_slots = frame_slots;
        self.frame = frame;
        self.taken = taken;
    }

    /// Returns `true` unless [`Reader::poll`] would find nothing.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        // Relaxed: `poll` reads the header again.
        let ahead = || self.load_header(Ordering::Relaxed).wrapping_sub(self.visible * ONE);
        self.available() > 0 || ahead().cast_signed() > 0
    }

    pub(super) fn visible(&self) -> u64 {
        self.visible
    }

    /// The header that counts the next messages.
    pub(super) fn next_header(&self) -> *mut Header {
        self.frame.header_pointer()
    }

    /// The count that [`next_header`](Self::next_header) will hold when its frame is full.
    pub(super) fn count_when_full(&self) -> u64 {
        self.visible + self.frame_slots as u64
    }

    fn load_header(&self, order: Ordering) -> u64 {
        // SAFETY: the memory is alive while the receiver is in it, and a frame begins here.
        unsafe { self.frame.load(order) }
    }
}

#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
impl<T> ReadCursor<T> {
    /// Continues as if `count` messages had been received.
    pub(super) fn begin_at(&mut self, count: u64) {
        *self = ReadCursor {
            base: self.next_message().base(count),
            taken: count,
            visible: count,
            ..*self
        };
    }
}

/// The receiver's state that only slow paths need.
pub(super) struct Reader<T> {
    segment: *mut Segment<T>,
    start: FramePtr<T>,
    /// End of the frames: a ring wraps around here, a chunk does not.
    end: FramePtr<T>,
    /// The first frame that [`Reader::step`] does not enter: `end`, or the frame at which an
    /// acknowledgement is due.
    step_end: FramePtr<T>,
    /// All frames before this one are known to be written.
    written_end: FramePtr<T>,
    /// While the receiver reads chunks: the ring to which the sender will return. Otherwise null.
    ring: *mut Segment<T>,
    /// The frame at which reading resumes in `ring`.
    ring_resume: FramePtr<T>,
    /// Value of `taken` at which the next acknowledgement is due.
    next_ack: u64,
    ack_interval: u64,
    /// Position at which the receiver left.
    pub(super) stopped_at: Option<ReadCursor<T>>,
}

impl<T> Reader<T> {
    pub(super) fn new(
        segment: *mut Segment<T>,
        memory: Memory<T>,
        units: usize,
        ack_interval: u64,
    ) -> Self {
        let start = memory.frame(0);
        Reader {
            segment,
            start,
            end: memory.frame(units),
            // SAFETY: a ring has more than one frame.
            step_end: unsafe { start.next() },
            written_end: start,
            ring: std::ptr::null_mut(),
            ring_resume: start,
            next_ack: ack_interval,
            ack_interval,
            stopped_at: None,
        }
    }

    /// Finds the next messages in the common case, and returns `None` in all others, which
    /// [`Reader::poll`] handles.
    ///
    /// While messages are waiting, the number of instructions per message and per cache line limits
    /// the throughput, so the path for a full line has as few as possible. This path computes
    /// nothing from the header. So a CPU that predicts the branches goes on to the next line while
    /// it waits for this one, and the transfers of the two lines overlap.
    #[inline(always)]
    pub(super) fn step(&self, mut cursor: ReadCursor<T>) -> Option<ReadCursor<T>> {
        // Acquire: pairs with the release in `WriteCursor::publish`, so that the messages are
        // visible.
        let header = cursor.load_header(mutate!(see_next_header, Acquire));
        let taken = cursor.visible;
        let all = Geometry::<T>::PER_FRAME;
        // SAFETY: the frame that is read is not the end of the memory.
        let next = unsafe { cursor.frame.next() };
        // Only the header of a full frame has this value: a partly filled frame has a smaller one,
        // and a long run a larger one.
        if header == (taken + all as u64) * ONE {
            if next == self.step_end {
                return None;
            }
            // Does not prefetch beyond `written_end`: the sender has yet to write those lines, and
            // a prefetch would take them from it.
            cursor.frame.prefetch(AHEAD, self.written_end);
            let base = cursor.frame.first_message().base(taken);
            return Some(ReadCursor {
                base,
                taken,
                visible: taken + all as u64,
                frame_slots: all,
                frame: next,
            });
        }
        let news = new_messages(header, taken);
        let is_in_frame = news.wrapping_sub(1) < cursor.frame_slots as u64;
        let is_ack_due =
            self.is_ack_due(taken) || news == cursor.frame_slots as u64 && next == self.step_end;
        (is_in_frame && !is_ack_due).then(|| {
            self.advance(&mut cursor, news as usize);
            cursor
        })
    }

    /// Like [`Reader::step`], for the case that the next messages are a long run. The cursor is
    /// passed by value and the function is inlined, because copying a cursor that another function
    /// has just stored is slow.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    #[inline(always)]
    pub(super) fn step_run(&mut self, mut cursor: ReadCursor<T>) -> Option<ReadCursor<T>> {
        // Acquire: as in `step`.
        let header = cursor.load_header(Ordering::Acquire);
        let news = new_messages(header, cursor.visible);
        // A larger value is not a run, but a header that is behind or has flags.
        let is_run = (cursor.frame_slots as u64 + 1..1 << 32).contains(&news);
        (is_run && !self.is_ack_due(cursor.visible)).then(|| {
            self.advance_over_run(&mut cursor, news as usize);
            self.step_end = self.next_step_end(&cursor);
            cursor
        })
    }

    /// Makes `news` new messages of the current frame available to the cursor.
    #[inline(always)]
    fn advance(&self, cursor: &mut ReadCursor<T>, news: usize) {
        if cursor.frame_slots == Geometry::<T>::PER_FRAME {
            cursor.base = cursor.frame.first_message().base(cursor.visible);
        }
        cursor.frame_slots -= news;
        cursor.visible += news as u64;
        if cursor.frame_slots == 0 {
            cursor.frame_slots = Geometry::<T>::PER_FRAME;
            // SAFETY: a frame that holds messages is not the end of the memory.
            cursor.frame = self.wrapped(unsafe { cursor.frame.next() });
        }
    }

    #[inline(always)]
    fn wrapped(&self, frame: FramePtr<T>) -> FramePtr<T> {
        if frame == self.end { self.start } else { frame }
    }

    /// Finds the next message, in another segment if necessary. Returns `None` if there is none
    /// yet.
    pub(super) fn poll(
        &mut self,
        shared: &Shared<T>,
        cursor: &mut ReadCursor<T>,
    ) -> Option<Polled> {
        if cursor.available() > 0 {
            return Some(Polled::Message);
        }
        loop {
            // Acquire: as in `step`.
            let header = cursor.load_header(mutate!(see_header, Acquire));
            let ahead = header.wrapping_sub(cursor.visible * ONE);
            if ahead.cast_signed() <= 0 {
                return None;
            }
            let news = count(ahead) as usize;
            if news > 0 {
                if news > cursor.frame_slots {
                    self.advance_over_run(cursor, news);
                } else {
                    self.advance(cursor, news);
                }
                self.step_end = self.next_step_end(cursor);
                return Some(Polled::Message);
            }
            if header & JUMP == 0 {
                debug_assert_eq!(header & FLAGS, CLOSED);
                return Some(Polled::Closed);
            }
            self.jump(shared, cursor, header & RETIRED != 0);
        }
    }

    #[inline(always)]
    fn advance_over_run(&self, cursor: &mut ReadCursor<T>, news: usize) {
        debug_assert_eq!(
            cursor.frame_slots,
            Geometry::<T>::PER_FRAME,
            "a run is published at once"
        );
        // SAFETY: the header says that a run of this length begins here.
        cursor.base = unsafe { cursor.frame.first_of_run(news) }.base(cursor.visible);
        cursor.visible += news as u64;
        // SAFETY: the segment that we are in is alive.
        let memory = unsafe { &*self.segment }.memory;
        let unit = memory.unit(cursor.frame) + Geometry::<T>::units_for(news);
        cursor.frame = self.wrapped(memory.frame(unit));
    }

    fn next_step_end(&self, cursor: &ReadCursor<T>) -> FramePtr<T> {
        let due = self.next_ack.saturating_sub(cursor.visible);
        self.frame_after(cursor.frame, due.div_ceil(Geometry::<T>::PER_FRAME as u64) + 1)
    }

    /// Updates how far [`Reader::step`] may prefetch.
    pub(super) fn update_written_end(&mut self, shared: &Shared<T>, cursor: &ReadCursor<T>) {
        let written_end = shared.announced().saturating_sub(cursor.visible);
        self.written_end =
            self.frame_after(cursor.frame, written_end / Geometry::<T>::PER_FRAME as u64);
    }

    /// The frame that is `frames` frames after `frame`, or the end of the memory if that is nearer.
    fn frame_after(&self, frame: FramePtr<T>, frames: u64) -> FramePtr<T> {
        // SAFETY: the segment that we are in is alive.
        let memory = unsafe { &*self.segment }.memory;
        let (unit, end) = (memory.unit(frame), memory.unit(self.end));
        let left = (end - unit) / Geometry::<T>::FRAME_UNITS;
        memory.frame(unit + frames.min(left as u64) as usize * Geometry::<T>::FRAME_UNITS)
    }

    /// Continues in the next segment.
    #[cold]
    fn jump(&mut self, shared: &Shared<T>, cursor: &mut ReadCursor<T>, retired: bool) {
        let left = self.segment;
        // SAFETY: the segment that we are in is alive.
        let segment = unsafe { &*left };
        let next = segment.next.load(Ordering::Relaxed);
        if !segment.is_ring {
            // SAFETY: the sender left this chunk before it published the jump, and we have read it.
            unsafe { shared.free_list.give(left) };
        } else if retired {
            // SAFETY: the header says that the sender never returns to this ring, and we have read
            // it.
            unsafe { Segment::free(left) };
        } else {
            self.ring = left;
            // SAFETY: the frame of the jump is not the end of the memory.
            self.ring_resume = self.wrapped(unsafe { cursor.frame.next() });
        }
        self.segment = next;
        // SAFETY: the sender prepared the next segment before it published the jump.
        let Segment { memory, units, is_ring, .. } = unsafe { &*next };
        self.start = memory.frame(0);
        self.end = memory.frame(*units);
        if !is_ring {
            // SAFETY: a chunk has one more frame.
            self.end = unsafe { self.end.next() };
        }
        cursor.frame = if next == self.ring { self.ring_resume } else { self.start };
        self.ring = if *is_ring { std::ptr::null_mut() } else { self.ring };
        cursor.frame_slots = Geometry::<T>::PER_FRAME;
        self.step_end = self.next_step_end(cursor);
        self.written_end = self.start;
    }

    /// Publishes how far the receiver has read. The caller must wake a sender that waits.
    pub(super) fn acknowledge(&mut self, shared: &Shared<T>, taken: u64) {
        // Release: the sender may overwrite what the receiver has read.
        shared.taken.store(taken, Ordering::Release);
        // Release: as for `taken`.
        shared.acked.store(taken, Ordering::Release);
        self.next_ack = taken + self.ack_interval;
    }

    pub(super) fn is_ack_due(&self, taken: u64) -> bool {
        taken >= self.next_ack
    }

    /// Drops all messages. Returns where reading ended.
    pub(super) fn drop_all(
        &mut self,
        shared: &Shared<T>,
        mut cursor: ReadCursor<T>,
        first_panic: &mut FirstPanic,
    ) -> ReadCursor<T> {
        while self.poll(shared, &mut cursor) == Some(Polled::Message) {
            first_panic.drop(cursor.take());
        }
        cursor
    }

    /// Frees the segment in which reading ended, if it is a chunk. The writer frees rings. Called
    /// once, when both ends are gone and all messages were dropped.
    pub(super) fn free(&self, shared: &Shared<T>) {
        // SAFETY: the segment in which reading ended is alive.
        if !unsafe { &*self.segment }.is_ring {
            // SAFETY: the last chunk of the pipe, and no end is left to use it.
            unsafe { shared.free_list.free(self.segment) };
        }
    }
}
