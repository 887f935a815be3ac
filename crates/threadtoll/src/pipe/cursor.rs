//! Where the receiver is in a pipe's memory, and what it finds there.

use super::memory::{COUNT, FINAL, Frame, Geometry, JUMP, Memory};
use super::segment::Segment;
use super::shared::{Shared, is_closed};
use crate::sync::{Ordering, mutate};
use crate::unwound::Unwound;

/// Where the receiver is.
pub(super) struct Cursor<T> {
    memory: Memory<T>,
    segment: *mut Segment<T>,
    /// The record that is being read…
    pub(super) frame: Frame<T>,
    /// …and where it is in the memory.
    unit: usize,
    /// Messages in the records before it.
    pub(super) before: u64,
    /// Messages of it that were read.
    pub(super) index: usize,
    /// Messages of it that are known to be there.
    pub(super) there: usize,
    /// Its header's flags, as last seen.
    flags: u32,
    /// Units of home.
    end: usize,
    /// Where reading goes on in home.
    home_unit: usize,
}

impl<T> Clone for Cursor<T> {
    fn clone(&self) -> Self {
        Cursor { ..*self }
    }
}

/// What a look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Message,
    Closed,
}

impl<T> Cursor<T> {
    pub(super) fn new(shared: &Shared<T>) -> Self {
        Cursor {
            memory: shared.home.memory,
            segment: std::ptr::from_ref(&shared.home).cast_mut(),
            frame: shared.home.memory.frame(0),
            unit: 0,
            before: 0,
            index: 0,
            there: 0,
            flags: 0,
            end: shared.measures.home_units,
            home_unit: 0,
        }
    }

    /// Looks whether there is a message, or never will be.
    #[inline(always)]
    pub(super) fn look(&mut self, shared: &Shared<T>) -> Option<Found> {
        self.advance(shared, false)
    }

    /// The same from a copy of the cursor, so that nothing moves.
    pub(super) fn look_from_copy(&self, shared: &Shared<T>) -> Option<Found> {
        self.clone().advance(shared, true)
    }

    #[inline(always)]
    fn advance(&mut self, shared: &Shared<T>, copy: bool) -> Option<Found> {
        if self.index != self.there {
            return Some(Found::Message);
        }
        loop {
            if self.flags != 0 {
                if is_closed(self.flags) {
                    return Some(Found::Closed);
                }
                self.follow(shared, copy);
            }
            // SAFETY: the memory is alive while the receiver is in it, and a record begins here: the sender zeroed this header
            // before it made the record before it final.
            let header = unsafe { self.frame.header() };
            // Acquire: the partner of the release with which the sender publishes. Without it the messages might not be there.
            let header = header.load(mutate!(see_header, Acquire));
            let count = (header & COUNT) as usize;
            if count != self.index {
                self.there = count;
                self.flags = header & !COUNT;
                return Some(Found::Message);
            }
            if header & FINAL == 0 {
                return None;
            }
            self.flags = header & !COUNT;
        }
    }

    /// Goes to the next record.
    #[inline(always)]
    fn follow(&mut self, shared: &Shared<T>, copy: bool) {
        if self.flags & JUMP != 0 {
            return self.jump(shared, copy);
        }
        self.go_on();
    }

    /// Goes to the record behind this one.
    #[inline(always)]
    fn go_on(&mut self) {
        self.unit += Geometry::<T>::units(self.there);
        if self.unit == self.end {
            self.unit = 0;
        }
        self.start_record();
    }

    /// Goes on in the next segment. Gives the one that was read back, unless it is home or this is but a copy of the cursor.
    #[cold]
    fn jump(&mut self, shared: &Shared<T>, copy: bool) {
        let home = std::ptr::from_ref(&shared.home).cast_mut();
        // SAFETY: alive: the segment that the receiver is in, or one behind it.
        let next = unsafe { &*self.segment }.next.load(Ordering::Relaxed);
        if self.segment == home {
            self.home_unit = self.unit + Geometry::<T>::FRAME;
            if self.home_unit == shared.measures.home_units {
                self.home_unit = 0;
            }
        } else if !copy {
            // SAFETY: the sender left this chunk before it published the jump, and we have read all of it.
            unsafe { shared.spares.give(self.segment) };
        }
        self.segment = next;
        // SAFETY: the sender prepared it before it published the jump.
        self.memory = unsafe { &*next }.memory;
        // A chunk is left by a jump, never by its end.
        (self.unit, self.end) =
            if next == home { (self.home_unit, shared.measures.home_units) } else { (0, usize::MAX) };
        self.start_record();
    }

    #[inline(always)]
    fn start_record(&mut self) {
        self.before += self.there as u64;
        self.frame = self.memory.frame(self.unit);
        self.index = 0;
        self.there = 0;
        self.flags = 0;
    }

    /// Goes from a record that is read and final to the next one, if the sender has not gone elsewhere and there is a message: what
    /// nearly every step is, done fast. Otherwise [`Cursor::look`] finds out the rest.
    #[inline(always)]
    pub(super) fn step(&mut self) -> bool {
        if self.flags != FINAL || self.index != self.there {
            return false;
        }
        self.go_on();
        // SAFETY: as in `advance`.
        let header = unsafe { self.frame.header() };
        // Acquire: as in `advance`.
        let header = header.load(mutate!(see_next_header, Acquire));
        let count = (header & COUNT) as usize;
        if count != 0 {
            self.there = count;
            self.flags = header & !COUNT;
        }
        count != 0
    }

    /// Messages that were moved out in all.
    #[inline(always)]
    pub(super) fn taken(&self) -> u64 {
        self.before + self.index as u64
    }

    /// Moves the message out that a look has found.
    #[inline(always)]
    pub(super) fn take(&mut self) -> T {
        debug_assert!(self.index < self.there);
        // SAFETY: the header counts it, and `index` moves on, so it is moved out once.
        let message = unsafe { self.frame.read(self.index) };
        self.index += 1;
        message
    }

    /// Drops everything that is there.
    pub(super) fn drop_all(&mut self, shared: &Shared<T>, unwound: &mut Unwound) {
        while self.look(shared) == Some(Found::Message) {
            unwound.drop(self.take());
        }
    }

    /// Frees the segment in which reading ended.
    ///
    /// Called once, when both ends are gone and everything was dropped.
    pub(super) fn free(self, shared: &Shared<T>) {
        if self.segment != std::ptr::from_ref(&shared.home).cast_mut() {
            // SAFETY: a chunk, the last one of the pipe, and nobody is left who could use it.
            unsafe { shared.spares.free(self.segment) };
        }
    }
}
