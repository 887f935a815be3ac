//! Frames in memory.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::NonNull;

use super::Geometry;
use crate::sync::{AtomicU64, Ordering, prefetch};

/// The header of a run.
pub(in super::super) type Header = AtomicU64;

/// An array of units. Freed by [`Memory::free`], not by dropping, since both ends keep copies.
pub(in super::super) struct Memory<T> {
    start: NonNull<u8>,
    /// The allocation that `start` lies in.
    base: NonNull<u8>,
    units: usize,
    _messages: PhantomData<T>,
}

impl<T> Clone for Memory<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Memory<T> {}

impl<T> Memory<T> {
    /// Fresh memory, whatever lies in it: a header is cleared before the receiver comes to it.
    ///
    /// Aborts, as a collection does, where the allocator has no more.
    ///
    /// # Panics
    ///
    /// If so much memory cannot be addressed.
    pub(in super::super) fn new(units: usize) -> Self {
        let layout = Self::layout(units);
        // SAFETY: a unit has at least 64 bytes and there is at least one.
        let base = unsafe { alloc(layout) };
        let Some(base) = NonNull::new(base) else { handle_alloc_error(layout) };
        let ahead = base.as_ptr().align_offset(Self::ALIGN);
        // SAFETY: the layout has room for this.
        let start = unsafe { base.add(ahead) };
        Memory { start, base, units, _messages: PhantomData }
    }

    /// So that no line of another object is fetched along with ours.
    const ALIGN: usize =
        if Geometry::<T>::UNIT_BYTES > 128 { Geometry::<T>::UNIT_BYTES } else { 128 };
    /// The alignment that an allocator gives without being asked, which is several times faster.
    const GIVEN: usize = 16;

    /// Writes to all of it, so that no page is missing when messages come.
    ///
    /// # Safety
    ///
    /// Nobody has put anything there.
    pub(in super::super) unsafe fn touch(&self) {
        // SAFETY: allocated with this size.
        unsafe { self.start.as_ptr().write_bytes(0, self.units * Geometry::<T>::UNIT_BYTES) }
    }

    fn layout(units: usize) -> Layout {
        let bytes = units.checked_mul(Geometry::<T>::UNIT_BYTES);
        let bytes = bytes.and_then(|bytes| bytes.checked_add(Self::ALIGN - Self::GIVEN));
        match bytes.map(|bytes| Layout::from_size_align(bytes, Self::GIVEN)) {
            Some(Ok(layout)) => layout,
            _ => panic!("a queue of this capacity does not fit into memory"),
        }
    }

    /// Gives the memory back. Messages in it are forgotten.
    ///
    /// # Safety
    ///
    /// No copy of this may be used any more.
    pub(in super::super) unsafe fn free(self) {
        // SAFETY: came from `alloc` with this layout; the caller promises the rest.
        unsafe { dealloc(self.base.as_ptr(), Self::layout(self.units)) }
    }

    /// The frame that begins at this unit, or the end of the memory.
    #[inline(always)]
    pub(in super::super) fn frame(&self, unit: usize) -> FramePtr<T> {
        debug_assert!(unit <= self.units);
        // SAFETY: inside the memory, or just behind it.
        let start = unsafe { self.start.add(unit * Geometry::<T>::UNIT_BYTES) };
        FramePtr { start, _messages: PhantomData }
    }

    /// The unit at which a frame of this memory begins.
    pub(in super::super) fn unit(&self, frame: FramePtr<T>) -> usize {
        (frame.start.as_ptr().addr() - self.start.as_ptr().addr()) / Geometry::<T>::UNIT_BYTES
    }
}

/// Where a run begins. Lives as long as its memory.
pub(in super::super) struct FramePtr<T> {
    start: NonNull<u8>,
    _messages: PhantomData<T>,
}

impl<T> Clone for FramePtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for FramePtr<T> {}

impl<T> PartialEq for FramePtr<T> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.start == other.start
    }
}

impl<T> FramePtr<T> {
    /// The header of the run.
    ///
    /// # Safety
    ///
    /// The memory is alive, a frame begins here, and no message lies here.
    #[inline(always)]
    pub(in super::super) unsafe fn header<'a>(self) -> &'a Header {
        // SAFETY: inside the memory and aligned; the caller promises that it lives.
        unsafe { self.start.cast::<Header>().as_ref() }
    }

    /// Where the header is.
    pub(in super::super) fn header_pointer(self) -> *mut Header {
        self.start.cast().as_ptr()
    }

    /// Where the header of the frame behind that of another header is.
    pub(in super::super) fn header_behind(header: *mut Header) -> *mut Header {
        header.wrapping_byte_add(Geometry::<T>::FRAME_UNITS * Geometry::<T>::UNIT_BYTES)
    }

    /// Stores the header.
    ///
    /// # Safety
    ///
    /// As for [`FramePtr::header`], and the caller is the sender.
    #[inline(always)]
    pub(in super::super) unsafe fn store(self, stamp: u64, order: Ordering) {
        // SAFETY: the caller's promise.
        unsafe { self.header() }.store(stamp, order);
    }

    /// Loads the header.
    ///
    /// # Safety
    ///
    /// As for [`FramePtr::header`].
    #[inline(always)]
    pub(in super::super) unsafe fn load(self, order: Ordering) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.header() }.load(order)
    }

    /// The frame behind this one, or the end of the memory.
    ///
    /// # Safety
    ///
    /// This is a frame and not the end of the memory.
    #[inline(always)]
    pub(in super::super) unsafe fn next(self) -> Self {
        // SAFETY: the caller's promise.
        let start =
            unsafe { self.start.add(Geometry::<T>::FRAME_UNITS * Geometry::<T>::UNIT_BYTES) };
        FramePtr { start, _messages: PhantomData }
    }

    /// Asks for the line that comes so many frames behind this one, if that is before `end`.
    #[inline(always)]
    pub(in super::super) fn prefetch(self, frames: usize, end: Self) {
        let bytes = frames * Geometry::<T>::FRAME_UNITS * Geometry::<T>::UNIT_BYTES;
        let behind = self.header_pointer().wrapping_byte_add(bytes);
        if behind < end.header_pointer() {
            prefetch(behind);
        }
    }

    /// Where the first message of the run lies, with all that follow it in the run behind it.
    #[inline(always)]
    pub(in super::super) fn first_message(self) -> MessagePtr<T> {
        // SAFETY: a frame is larger than its header.
        MessagePtr(unsafe { self.start.add(Geometry::<T>::HEADER_BYTES) }.cast())
    }
}

/// Where a message lies, or may lie.
pub(in super::super) struct MessagePtr<T>(NonNull<T>);

impl<T> Clone for MessagePtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for MessagePtr<T> {}

impl<T> MessagePtr<T> {
    /// The place so many messages further on in the run, or its end.
    ///
    /// # Safety
    ///
    /// The run has room for so many from here.
    #[inline(always)]
    pub(in super::super) unsafe fn add(self, count: usize) -> Self {
        // SAFETY: inside the memory, or just behind it: the caller's promise.
        MessagePtr(unsafe { self.0.add(count) })
    }

    /// Where messages lie if the one that lies here has this number.
    #[inline(always)]
    pub(in super::super) fn base(self, number: u64) -> BasePtr<T> {
        BasePtr(self.0.as_ptr().wrapping_sub(number as usize))
    }

    /// Moves a message in.
    ///
    /// # Safety
    ///
    /// The caller is the sender, and the place is free.
    #[inline(always)]
    pub(in super::super) unsafe fn write(self, message: T) {
        // SAFETY: aligned and inside the memory; nobody reads a place before its header counts it.
        unsafe { self.0.write(message) }
    }

    /// Copies messages in, side by side.
    ///
    /// # Safety
    ///
    /// The caller is the sender, the places are free, and so many messages lie at `from`, which is
    /// not in the pipe.
    #[inline(always)]
    pub(in super::super) unsafe fn copy(self, from: *const T, count: usize)
    where
        T: Copy,
    {
        // SAFETY: inside the memory, as far as the run reaches, and read by nobody before its
        // header counts it.
        unsafe { std::ptr::copy_nonoverlapping(from, self.0.as_ptr(), count) };
    }

    /// Moves a message out.
    ///
    /// # Safety
    ///
    /// The caller has seen with acquire that the header counts it, and moves it out once.
    #[inline(always)]
    pub(in super::super) unsafe fn read(self) -> T {
        // SAFETY: the sender wrote it before it stored the header with release.
        unsafe { self.0.read() }
    }

    pub(in super::super) fn as_ptr(self) -> *mut T {
        self.0.as_ptr()
    }
}

/// Where messages of a run lie, by their numbers: those that are not in the run lie nowhere.
pub(in super::super) struct BasePtr<T>(*mut T);

impl<T> Clone for BasePtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for BasePtr<T> {}

impl<T> BasePtr<T> {
    /// Where the message with this number lies, which is in the run, or just behind it.
    #[inline(always)]
    pub(in super::super) fn message(self, number: u64) -> MessagePtr<T> {
        // SAFETY: inside the memory, or just behind it.
        MessagePtr(unsafe { NonNull::new_unchecked(self.0.wrapping_add(number as usize)) })
    }
}
