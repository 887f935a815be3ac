//! The slots of a ring, and a position in them.
//!
//! Frames and their headers are those of the module [`memory`](crate::memory). A header is the
//! number of events published up to and including the last one in its frame, so a reader that
//! follows the writer finds an event and its count in one cache line.
//!
//! The ring has one frame more than its capacity needs. Let `r` be the next event of a reader, and
//! `e` the first event after its frame, so `r < e`. The writer fills that frame again from event
//! `e + (frames - 1) * PER_FRAME` on, which is at least `e + capacity`. But as long as the reader
//! has not read `r`, the writer fills only events below `r + capacity`. So the header of a reader's
//! frame never counts events of a later lap. A header of an earlier lap counts no more than `r`,
//! and neither does one left by a publication whose closure panicked. A publication of several
//! frames stores its first header last, and no reader comes to the others before.

use crate::first_panic::FirstPanic;
use crate::memory::{BasePtr, FramePtr, Geometry, Memory, MessagePtr};
use crate::sync::{Ordering, mutate};

/// The memory of a ring.
pub(super) struct Slots<T> {
    memory: Memory<T>,
    units: usize,
    /// Number of slots, from the first one, that hold an event.
    made: usize,
}

impl<T> Slots<T> {
    /// Allocates slots for `capacity` events and fills each by `make`.
    ///
    /// # Panics
    ///
    /// If the size exceeds the address space, or if `make` panics.
    pub(super) fn new(capacity: usize, mut make: impl FnMut() -> T) -> Self {
        let frames = capacity.div_ceil(Geometry::<T>::PER_FRAME);
        let frames = frames.checked_add(mutate!(spare_frame, 1 => 0));
        let units = frames.and_then(|frames| frames.checked_mul(Geometry::<T>::FRAME_UNITS));
        let Some(units) = units else { panic!("the capacity exceeds the address space") };
        // If `make` panics, this drops what was made.
        let mut slots = Slots { memory: Memory::new(units), units, made: 0 };
        for slot in 0..units / Geometry::<T>::FRAME_UNITS * Geometry::<T>::PER_FRAME {
            let event = make();
            // SAFETY: nobody else has this memory yet, and the slot is free.
            unsafe { slots.slot(slot).write(event) };
            slots.made = slot + 1;
        }
        slots
    }

    /// The slot with this number, which must be less than the number of slots.
    fn slot(&self, slot: usize) -> MessagePtr<T> {
        let (frame, index) = (slot / Geometry::<T>::PER_FRAME, slot % Geometry::<T>::PER_FRAME);
        let first = self.memory.frame(frame * Geometry::<T>::FRAME_UNITS).first_message();
        // SAFETY: the frame holds `PER_FRAME` events.
        unsafe { first.add(index) }
    }

    /// The place of the event with this number, which is the first one that the ring carries.
    pub(super) fn first_place(&self, number: u64) -> Place<T> {
        let first = self.memory.frame(0);
        Place {
            base: first.first_message().base(number),
            frame_end: number + Geometry::<T>::PER_FRAME as u64,
            frame: first,
            first,
            end: self.memory.frame(self.units),
        }
    }
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        let mut first_panic = FirstPanic::default();
        if std::mem::needs_drop::<T>() || cfg!(any(threadtoll_loom, threadtoll_shuttle)) {
            for slot in 0..self.made {
                // SAFETY: the slot is filled, and all ends are gone, or `make` has
                // panicked and there were none.
                first_panic.drop(unsafe { self.slot(slot).read() });
            }
        }
        // SAFETY: as above, so there are no copies of the pointers.
        unsafe { self.memory.free() };
        first_panic.resume();
    }
}

/// A position in the ring: the frame of an event. Valid as long as its [`Slots`].
pub(super) struct Place<T> {
    /// Gives the address of an event of this frame by its number.
    base: BasePtr<T>,
    /// Number of the first event after this frame.
    frame_end: u64,
    frame: FramePtr<T>,
    /// The first frame of the ring.
    first: FramePtr<T>,
    /// The end of the ring's memory.
    end: FramePtr<T>,
}

impl<T> Clone for Place<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Place<T> {}

impl<T> Place<T> {
    pub(super) const PER_FRAME: u64 = Geometry::<T>::PER_FRAME as u64;

    #[inline(always)]
    pub(super) fn frame_end(&self) -> u64 {
        self.frame_end
    }

    /// Moves on to the next frame.
    #[inline(always)]
    pub(super) fn next_frame(&mut self) {
        // SAFETY: a frame begins here, since this is never the end of the memory.
        let next = unsafe { self.frame.next() };
        self.frame = if next == self.end { self.first } else { next };
        self.base = self.frame.first_message().base(self.frame_end);
        self.frame_end += Geometry::<T>::PER_FRAME as u64;
    }

    /// Moves on to a frame that has the event before this one, if this frame has not.
    #[inline(always)]
    pub(super) fn advance_to(&mut self, number: u64) {
        while self.frame_end < number {
            self.next_frame();
        }
    }

    /// Prefetches, for a write, the header `frames` frames after this one, if it is in memory after
    /// it.
    #[inline(always)]
    pub(super) fn prefetch_to_write(&self, frames: usize) {
        self.frame.prefetch_to_write(frames, self.end);
    }

    /// The slot of an event of this frame.
    #[inline(always)]
    pub(super) fn slot(&self, number: u64) -> MessagePtr<T> {
        debug_assert!(number < self.frame_end);
        debug_assert!(self.frame_end - number <= Geometry::<T>::PER_FRAME as u64);
        self.base.message(number)
    }

    /// Number of events that were published up to the last one in this frame.
    #[inline(always)]
    pub(super) fn count(&self) -> u64 {
        // SAFETY: the memory is alive, and a frame begins here. Acquire: the events that the header
        // counts are visible.
        unsafe { self.frame.load(mutate!(see_event, Acquire)) }
    }

    /// Publishes the events of this frame before the event `number`. The caller must be the writer.
    #[inline(always)]
    pub(super) fn publish(&self, number: u64) {
        // SAFETY: the memory is alive, and a frame begins here. Release: a reader that sees the
        // count sees the events, and the headers that were stored before.
        unsafe { self.frame.store(number, mutate!(publish_event, Release)) };
    }

    /// Like [`Place::publish`], for a frame that no reader reaches before it has seen what is
    /// published next.
    pub(super) fn publish_before(&self, number: u64) {
        // SAFETY: the memory is alive, and a frame begins here.
        unsafe { self.frame.store(number, Ordering::Relaxed) };
    }
}
