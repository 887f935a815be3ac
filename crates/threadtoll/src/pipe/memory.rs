//! Where messages lie: an array of *frames*, each a cache line that holds a header and the messages behind it.
//!
//! ```text
//!  unit 0                  unit 1                  unit 2 …
//! ┌────────┬──┬──┬─ … ─┐  ┌────────┬──┬──┬─ … ─┐  ┌───
//! │ header │m0│m1│ m6  │  │ header │m7│m8│ m13 │  │
//! └────────┴──┴──┴─ … ─┘  └────────┴──┴──┴─ … ─┘  └───
//! ```
//!
//! A header tells how many messages of its frame are there, and whether any more will come ([`FINAL`]). Data and readiness
//! travel in one line: this is the epoch word of Barrelfish's URPC messages (Baumann et al., SOSP 2009), carrying a count. A
//! batch may span many units as one *long record*: one header, and messages without gaps up to the end of the last unit.
//!
//! Headers are stored by the sender only, and the one behind a record is zeroed before the record is made final; so memory
//! is used again without being cleared, whatever lies in it.

#[cfg(any(loom, shuttle))]
mod modelled;

use std::marker::PhantomData;
#[cfg(not(any(loom, shuttle)))]
use std::ptr::NonNull;

#[cfg(not(any(loom, shuttle)))]
use crate::sync::AtomicU32;
#[cfg(any(loom, shuttle))]
pub(super) use modelled::{Frame, Memory};

/// The header's bits that count messages.
pub(super) const COUNT: u32 = (1 << 24) - 1;
/// Nothing will be added to this record.
pub(super) const FINAL: u32 = 1 << 31;
/// The next record is in another segment.
pub(super) const JUMP: u32 = 1 << 30;
/// The sender is gone; there is no next record.
pub(super) const CLOSED: u32 = 1 << 29;

/// Bytes of a unit, unless messages are aligned more strictly.
const LINE: usize = 64;

/// How messages of type `T` lie in frames.
pub(super) struct Geometry<T>(PhantomData<T>);

#[cfg(not(any(loom, shuttle)))]
impl<T> Geometry<T> {
    /// Bytes of a unit: a line, or more for a type that wants it.
    pub(super) const UNIT: usize = if align_of::<T>() > LINE { align_of::<T>() } else { LINE };
    /// Where the first message of a record begins.
    const OFFSET: usize = if align_of::<T>() > 4 { align_of::<T>() } else { 4 };
    /// Units of a frame: more than one where a message does not fit.
    pub(super) const FRAME: usize = (Self::OFFSET + size_of::<T>()).div_ceil(Self::UNIT);
    /// Messages in a frame.
    pub(super) const PER_FRAME: usize = match size_of::<T>() {
        0 => LINE,
        size if Self::FRAME == 1 => (Self::UNIT - Self::OFFSET) / size,
        _ => 1,
    };
    /// Whether a batch can do better than a row of frames.
    pub(super) const DENSE: bool = Self::FRAME == 1 && size_of::<T>() > 0;

    /// How many messages a record of so many units holds.
    pub(super) const fn fits(units: usize) -> usize {
        if !Self::DENSE {
            return Self::PER_FRAME;
        }
        (units * Self::UNIT - Self::OFFSET) / size_of::<T>()
    }

    /// How many units a record of so many messages takes.
    pub(super) const fn units(count: usize) -> usize {
        if count <= Self::PER_FRAME {
            return Self::FRAME;
        }
        (Self::OFFSET + count * size_of::<T>()).div_ceil(Self::UNIT)
    }
}

/// A checker looks at few steps: two messages to a frame, two frames to the longest record.
#[cfg(any(loom, shuttle))]
impl<T> Geometry<T> {
    pub(super) const UNIT: usize = LINE;
    pub(super) const FRAME: usize = 1;
    pub(super) const PER_FRAME: usize = 2;
    pub(super) const DENSE: bool = true;

    pub(super) const fn fits(units: usize) -> usize {
        units * Self::PER_FRAME
    }

    pub(super) const fn units(count: usize) -> usize {
        if count == 0 { 1 } else { count.div_ceil(Self::PER_FRAME) }
    }
}

/// An array of units. Freed by [`Memory::free`], not by dropping, since both ends keep copies.
#[cfg(not(any(loom, shuttle)))]
pub(super) struct Memory<T> {
    start: NonNull<u8>,
    units: usize,
    _messages: PhantomData<T>,
}

#[cfg(not(any(loom, shuttle)))]
impl<T> Clone for Memory<T> {
    fn clone(&self) -> Self {
        *self
    }
}

#[cfg(not(any(loom, shuttle)))]
impl<T> Copy for Memory<T> {}

#[cfg(not(any(loom, shuttle)))]
impl<T> Memory<T> {
    /// Fresh memory, whatever lies in it: a header is zeroed before the receiver comes to it.
    ///
    /// # Panics
    ///
    /// If so much memory cannot be addressed.
    pub(super) fn new(units: usize) -> Self {
        let layout = Self::layout(units);
        // SAFETY: a unit has at least 64 bytes and there is at least one.
        let start = unsafe { std::alloc::alloc(layout) };
        let Some(start) = NonNull::new(start) else { std::alloc::handle_alloc_error(layout) };
        Memory { start, units, _messages: PhantomData }
    }

    /// Writes to all of it, so that no page is missing when messages come.
    ///
    /// # Safety
    ///
    /// Nobody has put anything there.
    pub(super) unsafe fn touch(&self) {
        // SAFETY: allocated with this size.
        unsafe { self.start.as_ptr().write_bytes(0, Self::layout(self.units).size()) }
    }

    fn layout(units: usize) -> std::alloc::Layout {
        let bytes = units.checked_mul(Geometry::<T>::UNIT);
        // 128: so that no line of another object is fetched along with ours.
        let align = Geometry::<T>::UNIT.max(128);
        match bytes.map(|bytes| std::alloc::Layout::from_size_align(bytes, align)) {
            Some(Ok(layout)) => layout,
            _ => panic!("a queue of this capacity does not fit into memory"),
        }
    }

    /// Gives the memory back. Messages in it are forgotten.
    ///
    /// # Safety
    ///
    /// No copy of this may be used any more.
    pub(super) unsafe fn free(self) {
        // SAFETY: came from `alloc` with this layout; the caller promises the rest.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), Self::layout(self.units)) }
    }

    /// The frame, or the first one of a longer record, that begins at this unit.
    #[inline(always)]
    pub(super) fn frame(&self, unit: usize) -> Frame<T> {
        debug_assert!(unit < self.units);
        // SAFETY: the ends count units below `units`.
        let start = unsafe { self.start.add(unit * Geometry::<T>::UNIT) };
        Frame { start, _messages: PhantomData }
    }

    /// Where a unit would begin, for [`crate::sync::prefetch_to_write`]; may lie outside.
    #[inline(always)]
    pub(super) fn line(&self, unit: usize) -> *const u8 {
        self.start.as_ptr().wrapping_add(unit * Geometry::<T>::UNIT)
    }
}

/// Where a record begins. Lives as long as its memory.
#[cfg(not(any(loom, shuttle)))]
pub(super) struct Frame<T> {
    start: NonNull<u8>,
    _messages: PhantomData<T>,
}

#[cfg(not(any(loom, shuttle)))]
impl<T> Clone for Frame<T> {
    fn clone(&self) -> Self {
        *self
    }
}

#[cfg(not(any(loom, shuttle)))]
impl<T> Copy for Frame<T> {}

#[cfg(not(any(loom, shuttle)))]
impl<T> Frame<T> {
    /// The header of the record.
    ///
    /// # Safety
    ///
    /// The memory is alive, and no message lies here.
    #[inline(always)]
    pub(super) unsafe fn header<'a>(self) -> &'a AtomicU32 {
        // SAFETY: inside the memory, aligned to a line; the caller promises that it lives and is a header now.
        unsafe { self.start.cast::<AtomicU32>().as_ref() }
    }

    /// Where a message of the record lies, with all that follow it in the record.
    #[inline(always)]
    pub(super) fn place(self, index: usize) -> NonNull<T> {
        let offset = Geometry::<T>::OFFSET + index * size_of::<T>();
        // SAFETY: the ends place no more messages in a record than fit there.
        unsafe { self.start.add(offset) }.cast()
    }

    /// Moves a message in.
    ///
    /// # Safety
    ///
    /// The caller is the sender, and the place is free.
    #[inline(always)]
    pub(super) unsafe fn write(self, index: usize, message: T) {
        // SAFETY: aligned and inside the memory; nobody reads a place before its header counts it.
        unsafe { self.place(index).write(message) }
    }

    /// Copies messages in, side by side.
    ///
    /// # Safety
    ///
    /// The caller is the sender, the places are free, and so many messages lie at `from`, which is not in the pipe.
    #[inline(always)]
    pub(super) unsafe fn copy(self, index: usize, from: *const T, count: usize)
    where
        T: Copy,
    {
        // SAFETY: aligned and inside the memory, as far as the record reaches; nobody reads a place before its header counts it.
        unsafe { std::ptr::copy_nonoverlapping(from, self.place(index).as_ptr(), count) };
    }

    /// Moves a message out.
    ///
    /// # Safety
    ///
    /// The caller has seen with acquire that the header counts it, and moves it out once.
    #[inline(always)]
    pub(super) unsafe fn read(self, index: usize) -> T {
        // SAFETY: the sender wrote it before it stored the header with release.
        unsafe { self.place(index).read() }
    }
}
