//! Where the receiver is in a pipe's memory, and what it finds there.
//!
//! Every receive needs a [`Reading`], which is copied in and out of slow paths and never lent, so
//! that a loop around `recv` keeps it in registers. The rest is in [`Incoming`].

use super::memory::{
    Base, CLOSED, FLAGS, Frame, Geometry, Header, JUMP, Memory, ONE, Place, RETIRED, count, news,
};
use super::segment::Segment;
use super::shared::Shared;
use crate::sync::{Ordering, mutate};
use crate::unwound::Unwound;

/// Frames ahead of its turn at which a line is asked for: some 100 ns, which it takes to come from
/// another core. Between 8 and 32 no difference was measured.
const AHEAD: usize = 16;

/// Where the receiver is.
pub(super) struct Reading<T> {
    /// Where messages lie, by number.
    base: Base<T>,
    /// Number of messages moved out in all, and so that of the next one. All that changes with each
    /// message: what else there is to know follows from it.
    taken: u64,
    /// Number of messages sent in all, up to the last one that is known to be there.
    known: u64,
    /// Messages that may still come in the frame behind those.
    rest: usize,
    /// The frame whose header tells of the messages behind those.
    frame: Frame<T>,
}

impl<T> Clone for Reading<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Reading<T> {}

impl<T> Reading<T> {
    pub(super) fn new(frame: Frame<T>) -> Self {
        let rest = Geometry::<T>::PER_FRAME;
        Reading { base: frame.place().base(0), taken: 0, known: 0, rest, frame }
    }

    /// Messages that were moved out in all.
    #[inline(always)]
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Messages that are known to be there.
    #[inline(always)]
    pub(super) fn left(&self) -> usize {
        (self.known - self.taken) as usize
    }

    /// Where the next message lies.
    #[inline(always)]
    pub(super) fn at(&self) -> Place<T> {
        self.base.at(self.taken)
    }

    /// Moves the next message out.
    #[inline(always)]
    pub(super) fn take(&mut self) -> T {
        let place = self.at();
        self.go_to(self.taken + 1);
        // SAFETY: a header counts it, and `taken` has gone on, so it is moved out once.
        unsafe { place.read() }
    }

    /// Counts messages as taken, up to so many in all.
    #[inline(always)]
    pub(super) fn go_to(&mut self, taken: u64) {
        debug_assert!(taken <= self.known);
        self.taken = taken;
    }

    /// Number of messages sent in all, up to the last one that is known to be there.
    pub(super) fn known(&self) -> u64 {
        self.known
    }

    /// The header that tells of the messages behind those.
    pub(super) fn next_header(&self) -> *mut Header {
        self.frame.header_pointer()
    }

    /// What that header counts once its frame is full.
    pub(super) fn full(&self) -> u64 {
        self.known + self.rest as u64
    }

    fn header(&self, order: Ordering) -> u64 {
        // SAFETY: the memory is alive while the receiver is in it, and a record begins here.
        unsafe { self.frame.load(order) }
    }
}

#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
impl<T> Reading<T> {
    /// Goes on as if so many messages had been received.
    pub(super) fn begin_at(&mut self, count: u64) {
        *self = Reading { base: self.at().base(count), taken: count, known: count, ..*self };
    }
}

/// Result of a successful look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Message,
    Closed,
}

/// State of the receiver that only slow paths need, in addition to its [`Reading`].
pub(super) struct Incoming<T> {
    segment: *mut Segment<T>,
    start: Frame<T>,
    /// Where the ring begins anew. A chunk never does.
    end: Frame<T>,
    /// The frame to which no ordinary step leads: `end`, or where the sender is to be told about
    /// room.
    stop: Frame<T>,
    /// The frame before which all were written when that was last looked at.
    written: Frame<T>,
    /// The ring that the sender will come back to, if reading goes on elsewhere…
    ring: *mut Segment<T>,
    /// …and where reading goes on in it.
    ring_frame: Frame<T>,
    /// When to tell the sender about its room, in messages taken.
    next_room: u64,
    /// Messages between two words about room.
    step: u64,
    /// Where reading stopped when the receiver left.
    pub(super) rest: Option<Reading<T>>,
}

impl<T> Incoming<T> {
    /// At the beginning of a ring; tells about room each time that so many messages were taken.
    pub(super) fn new(
        segment: *mut Segment<T>,
        memory: Memory<T>,
        units: usize,
        step: u64,
    ) -> Self {
        let start = memory.frame(0);
        Incoming {
            segment,
            start,
            end: memory.frame(units),
            // SAFETY: a ring has more than one frame.
            stop: unsafe { start.next() },
            written: start,
            ring: std::ptr::null_mut(),
            ring_frame: start,
            next_room: step,
            step,
            rest: None,
        }
    }

    /// Finds what lies behind the messages that were taken, if it is not out of the ordinary: what
    /// nearly every receive that has used up a line needs. Otherwise [`Incoming::look`] finds out.
    ///
    /// Where the sender is ahead, a stream is bound by the instructions per message and per line,
    /// so a whole line takes as few as possible. Nothing is computed from its header: a CPU that
    /// predicts the branches goes on to the next line while it waits for this one, and their
    /// transfers overlap.
    #[inline(always)]
    pub(super) fn step(&self, mut reading: Reading<T>) -> Option<Reading<T>> {
        // Acquire: the partner of the release with which the sender publishes. Without it the
        // messages might not be there.
        let header = reading.header(mutate!(see_next_header, Acquire));
        let taken = reading.known;
        let all = Geometry::<T>::PER_FRAME;
        // SAFETY: the frame that is read is not the end of the memory.
        let next = unsafe { reading.frame.next() };
        // Nothing but a whole line that begins here can have this header: what is left of a line
        // counts less, a long record more.
        if header == (taken + all as u64) * ONE {
            if next == self.stop {
                return None;
            }
            // Not for lines that the sender may have yet to write: that would slow it down.
            reading.frame.prefetch(AHEAD, self.written);
            let base = reading.frame.place().base(taken);
            return Some(Reading {
                base,
                taken,
                known: taken + all as u64,
                rest: all,
                frame: next,
            });
        }
        let news = news(header, taken);
        let is_in_frame = news.wrapping_sub(1) < reading.rest as u64;
        let is_due = self.is_due(taken) || news == reading.rest as u64 && next == self.stop;
        (is_in_frame && !is_due).then(|| {
            self.show(&mut reading, news as usize);
            reading
        })
    }

    /// Goes on to messages of an ordinary frame.
    #[inline(always)]
    fn show(&self, reading: &mut Reading<T>, news: usize) {
        if reading.rest == Geometry::<T>::PER_FRAME {
            reading.base = reading.frame.place().base(reading.known);
        }
        reading.rest -= news;
        reading.known += news as u64;
        if reading.rest == 0 {
            reading.rest = Geometry::<T>::PER_FRAME;
            // SAFETY: a frame that holds messages is not the end of the memory.
            reading.frame = self.wrapped(unsafe { reading.frame.next() });
        }
    }

    #[inline(always)]
    fn wrapped(&self, frame: Frame<T>) -> Frame<T> {
        if frame == self.end { self.start } else { frame }
    }

    /// Looks whether there is a message, or never will be.
    pub(super) fn look(&mut self, shared: &Shared<T>, reading: &mut Reading<T>) -> Option<Found> {
        if reading.left() > 0 {
            return Some(Found::Message);
        }
        loop {
            // Acquire: as in `step`.
            let header = reading.header(mutate!(see_header, Acquire));
            let ahead = header.wrapping_sub(reading.known * ONE);
            if ahead.cast_signed() <= 0 {
                return None;
            }
            let news = count(ahead) as usize;
            if news > 0 {
                if news > reading.rest {
                    self.show_long_record(reading, news);
                } else {
                    self.show(reading, news);
                }
                self.stop = self.next_stop(reading);
                return Some(Found::Message);
            }
            if header & JUMP == 0 {
                debug_assert_eq!(header & FLAGS, CLOSED);
                return Some(Found::Closed);
            }
            self.jump(shared, reading, header & RETIRED != 0);
        }
    }

    fn show_long_record(&self, reading: &mut Reading<T>, news: usize) {
        debug_assert_eq!(reading.rest, Geometry::<T>::PER_FRAME, "a record is published at once");
        reading.base = reading.frame.place().base(reading.known);
        reading.known += news as u64;
        // SAFETY: in the ring or chunk that we are in.
        let memory = unsafe { &*self.segment }.memory;
        let unit = memory.unit(reading.frame) + Geometry::<T>::units(news);
        reading.frame = self.wrapped(memory.frame(unit));
    }

    /// The frame to which ordinary steps do not lead from here.
    fn next_stop(&self, reading: &Reading<T>) -> Frame<T> {
        let due = self.next_room.saturating_sub(reading.known);
        self.behind(reading.frame, due.div_ceil(Geometry::<T>::PER_FRAME as u64) + 1)
    }

    /// Finds out up to which frame the sender has written, for the steps to come.
    pub(super) fn look_ahead(&mut self, shared: &Shared<T>, reading: &Reading<T>) {
        let written = shared.told().saturating_sub(reading.known);
        self.written = self.behind(reading.frame, written / Geometry::<T>::PER_FRAME as u64);
    }

    /// The frame that comes so many frames behind this one, or the end of the memory.
    fn behind(&self, frame: Frame<T>, frames: u64) -> Frame<T> {
        // SAFETY: in the ring or chunk that we are in.
        let memory = unsafe { &*self.segment }.memory;
        let (unit, end) = (memory.unit(frame), memory.unit(self.end));
        let left = (end - unit) / Geometry::<T>::FRAME;
        memory.frame(unit + frames.min(left as u64) as usize * Geometry::<T>::FRAME)
    }

    /// Goes on in the next segment.
    #[cold]
    fn jump(&mut self, shared: &Shared<T>, reading: &mut Reading<T>, retired: bool) {
        let left = self.segment;
        // SAFETY: the segment that we are in is alive.
        let segment = unsafe { &*left };
        let next = segment.next.load(Ordering::Relaxed);
        if !segment.is_ring {
            // SAFETY: the sender left this chunk before it published the jump, and we have read it.
            unsafe { shared.spares.give(left) };
        } else if retired {
            // SAFETY: the sender never comes back to it, says the header, and we have read it.
            unsafe { Segment::free(left) };
        } else {
            self.ring = left;
            // SAFETY: the frame in which the jump lies is not the end of the memory.
            self.ring_frame = self.wrapped(unsafe { reading.frame.next() });
        }
        self.segment = next;
        // SAFETY: the sender prepared it before it published the jump.
        let Segment { memory, units, is_ring, .. } = unsafe { &*next };
        self.start = memory.frame(0);
        self.end = memory.frame(*units);
        if !is_ring {
            // SAFETY: a chunk has one frame more.
            self.end = unsafe { self.end.next() };
        }
        reading.frame = if next == self.ring { self.ring_frame } else { self.start };
        self.ring = if *is_ring { std::ptr::null_mut() } else { self.ring };
        reading.rest = Geometry::<T>::PER_FRAME;
        self.stop = self.next_stop(reading);
        self.written = self.start;
    }

    /// Tells the sender how much room there is. Whatever waits for it is woken by the caller.
    pub(super) fn tell(&mut self, shared: &Shared<T>, taken: u64) {
        // Release: the sender may write where we have read.
        shared.taken.store(taken, Ordering::Release);
        // Release: as above.
        shared.room.store(taken, Ordering::Release);
        self.next_room = taken + self.step;
    }

    /// Returns `true` if it is time to tell the sender about room.
    pub(super) fn is_due(&self, taken: u64) -> bool {
        taken >= self.next_room
    }

    /// Drops everything that is there. Returns where reading ended.
    pub(super) fn drop_all(
        &mut self,
        shared: &Shared<T>,
        mut reading: Reading<T>,
        unwound: &mut Unwound,
    ) -> Reading<T> {
        while self.look(shared, &mut reading) == Some(Found::Message) {
            unwound.drop(reading.take());
        }
        reading
    }

    /// Frees the segment in which reading ended, if it is a chunk: rings are the sender's to free.
    ///
    /// Called once, when both ends are gone and everything was dropped.
    pub(super) fn free(&self, shared: &Shared<T>) {
        // SAFETY: alive, since reading ended here.
        if !unsafe { &*self.segment }.is_ring {
            // SAFETY: the last chunk of the pipe, and nobody is left who could use it.
            unsafe { shared.spares.free(self.segment) };
        }
    }
}
