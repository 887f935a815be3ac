//! Frames in real memory.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::NonNull;

use super::Geometry;
use crate::copy;
use crate::sync::{AtomicU64, Ordering, prefetch, prefetch_to_write};

pub(crate) type Header = AtomicU64;

/// An array of units. Both ends keep copies of this struct, so [`Memory::free`] frees the array,
/// not `Drop`.
pub(crate) struct Memory<T> {
    start: NonNull<u8>,
    /// Start of the allocation. `start` is the first sufficiently aligned address from here on.
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
    /// Allocates zeroed memory. A header of 0 counts no messages.
    ///
    /// Aborts if the allocator has no memory left.
    ///
    /// # Panics
    ///
    /// If the size exceeds the address space.
    pub(crate) fn new(units: usize) -> Self {
        let layout = Self::layout(units);
        // SAFETY: a unit has at least 64 bytes and there is at least one.
        let base = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base) else { handle_alloc_error(layout) };
        let ahead = base.as_ptr().align_offset(Self::ALIGN);
        // SAFETY: the layout has room for this.
        let start = unsafe { base.add(ahead) };
        Memory { start, base, units, _messages: PhantomData }
    }

    /// At least 128 bytes, so that the prefetcher does not fetch lines of other objects along with
    /// those of the array.
    const ALIGN: usize =
        if Geometry::<T>::UNIT_BYTES > 128 { Geometry::<T>::UNIT_BYTES } else { 128 };
    /// Alignment that is requested from the allocator. Requesting more makes allocators several
    /// times slower.
    const GIVEN: usize = 16;

    /// Writes to each page, so that messages cause no page faults.
    ///
    /// # Safety
    ///
    /// The memory must not be in use yet.
    pub(crate) unsafe fn touch(&self) {
        const LEAST_PAGE_BYTES: usize = 4096;
        let bytes = self.units * Geometry::<T>::UNIT_BYTES;
        for offset in (0..bytes).step_by(LEAST_PAGE_BYTES).chain([bytes - 1]) {
            // SAFETY: inside the memory, which has at least one unit.
            let place = unsafe { self.start.as_ptr().add(offset) };
            // Volatile: a compiler could omit an ordinary store of 0 to memory that is already 0.
            // SAFETY: inside the memory, which nobody uses yet.
            unsafe { place.write_volatile(0) };
        }
    }

    fn layout(units: usize) -> Layout {
        let bytes = units.checked_mul(Geometry::<T>::UNIT_BYTES);
        let bytes = bytes.and_then(|bytes| bytes.checked_add(Self::ALIGN - Self::GIVEN));
        match bytes.map(|bytes| Layout::from_size_align(bytes, Self::GIVEN)) {
            Some(Ok(layout)) => layout,
            _ => panic!("the capacity exceeds the address space"),
        }
    }

    /// Frees the memory without dropping messages in it.
    ///
    /// # Safety
    ///
    /// No copy of this may be used any more.
    pub(crate) unsafe fn free(self) {
        // SAFETY: came from `alloc_zeroed` with this layout; the caller promises the rest.
        unsafe { dealloc(self.base.as_ptr(), Self::layout(self.units)) }
    }

    /// The frame that begins at this unit, or the end of the memory if `unit` is the number of
    /// units.
    #[inline(always)]
    pub(crate) fn frame(&self, unit: usize) -> FramePtr<T> {
        debug_assert!(unit <= self.units);
        // SAFETY: inside the memory, or just behind it.
        let start = unsafe { self.start.add(unit * Geometry::<T>::UNIT_BYTES) };
        FramePtr { start, _messages: PhantomData }
    }

    /// The unit at which a frame of this memory begins.
    pub(crate) fn unit(&self, frame: FramePtr<T>) -> usize {
        (frame.start.as_ptr().addr() - self.start.as_ptr().addr()) / Geometry::<T>::UNIT_BYTES
    }
}

/// Address of a frame. Valid as long as the frame's memory.
pub(crate) struct FramePtr<T> {
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
    /// The header.
    ///
    /// # Safety
    ///
    /// The memory must be alive, and a frame, not a message, must begin at this address.
    #[inline(always)]
    pub(crate) unsafe fn header<'a>(self) -> &'a Header {
        // SAFETY: inside the memory and aligned; the caller promises that it lives.
        unsafe { self.start.cast::<Header>().as_ref() }
    }

    pub(crate) fn header_pointer(self) -> *mut Header {
        self.start.cast().as_ptr()
    }

    /// Address of the header one frame after `header`.
    pub(crate) fn header_behind(header: *mut Header) -> *mut Header {
        header.wrapping_byte_add(Geometry::<T>::FRAME_UNITS * Geometry::<T>::UNIT_BYTES)
    }

    /// Stores the header.
    ///
    /// # Safety
    ///
    /// The conditions of [`FramePtr::header`], and the caller must be the sender.
    #[inline(always)]
    pub(crate) unsafe fn store(self, stamp: u64, order: Ordering) {
        // SAFETY: the caller's promise.
        unsafe { self.header() }.store(stamp, order);
    }

    /// Loads the header.
    ///
    /// # Safety
    ///
    /// The conditions of [`FramePtr::header`].
    #[inline(always)]
    pub(crate) unsafe fn load(self, order: Ordering) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.header() }.load(order)
    }

    /// The next frame, or the end of the memory.
    ///
    /// # Safety
    ///
    /// A frame must begin at this address, so it must not be the end of the memory.
    #[inline(always)]
    pub(crate) unsafe fn next(self) -> Self {
        // SAFETY: the caller's promise.
        let start =
            unsafe { self.start.add(Geometry::<T>::FRAME_UNITS * Geometry::<T>::UNIT_BYTES) };
        FramePtr { start, _messages: PhantomData }
    }

    /// Prefetches the header `frames` frames after this one, if that header is before `end`.
    #[inline(always)]
    pub(crate) fn prefetch(self, frames: usize, end: Self) {
        if let Some(header) = self.header_before(frames, end) {
            prefetch(header);
        }
    }

    /// As [`prefetch`](Self::prefetch), for a write.
    #[inline(always)]
    pub(crate) fn prefetch_to_write(self, frames: usize, end: Self) {
        if let Some(header) = self.header_before(frames, end) {
            prefetch_to_write(header);
        }
    }

    /// The header `frames` frames after this one, if it is before `end`.
    #[inline(always)]
    fn header_before(self, frames: usize, end: Self) -> Option<*mut Header> {
        let bytes = frames * Geometry::<T>::FRAME_UNITS * Geometry::<T>::UNIT_BYTES;
        let header = self.header_pointer().wrapping_byte_add(bytes);
        (header < end.header_pointer()).then_some(header)
    }

    /// The first message of a frame; the others follow it.
    #[inline(always)]
    pub(crate) fn first_message(self) -> MessagePtr<T> {
        // SAFETY: a frame is larger than its header.
        MessagePtr(unsafe { self.start.add(Geometry::<T>::HEADER_BYTES) }.cast())
    }

    /// The first message of a run of `count` messages; the others follow it.
    ///
    /// # Safety
    ///
    /// The memory must have room for that run, starting here.
    #[inline(always)]
    pub(crate) unsafe fn first_of_run(self, count: usize) -> MessagePtr<T> {
        // SAFETY: inside the memory: the caller's promise.
        MessagePtr(unsafe { self.start.add(Geometry::<T>::run_offset(count)) }.cast())
    }
}

/// Address of a message, or of a free slot.
pub(crate) struct MessagePtr<T>(NonNull<T>);

impl<T> Clone for MessagePtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for MessagePtr<T> {}

impl<T> MessagePtr<T> {
    /// Address of the message `count` places further on in the run, or of the run's end.
    ///
    /// # Safety
    ///
    /// The run must have room for `count` messages, starting here.
    #[inline(always)]
    pub(crate) unsafe fn add(self, count: usize) -> Self {
        // SAFETY: inside the memory, or just behind it: the caller's promise.
        MessagePtr(unsafe { self.0.add(count) })
    }

    /// The base of the run that contains this message, given the message's number.
    #[inline(always)]
    pub(crate) fn base(self, number: u64) -> BasePtr<T> {
        BasePtr(self.0.as_ptr().wrapping_sub(number as usize))
    }

    /// Moves a message in.
    ///
    /// # Safety
    /// The caller must be the sender, and the slot must be free.
    #[inline(always)]
    pub(crate) unsafe fn write(self, message: T) {
        // SAFETY: aligned and inside the memory; a slot is not read before its header counts it.
        unsafe { copy::write(self.0.as_ptr(), message) }
    }

    /// Copies contiguous messages in.
    ///
    /// # Safety
    ///
    /// The caller must be the sender, the slots must be free, and `from` must point to `count`
    /// messages outside the pipe.
    #[inline(always)]
    pub(crate) unsafe fn copy(self, from: *const T, count: usize)
    where
        T: Copy,
    {
        // SAFETY: inside the run, and not read before its header counts it.
        unsafe { copy::copy(from, self.0.as_ptr(), count) };
    }

    /// Moves a message out.
    ///
    /// # Safety
    ///
    /// The caller must have seen with acquire that the header counts the message, and must move it
    /// out only once.
    #[inline(always)]
    pub(crate) unsafe fn read(self) -> T {
        // SAFETY: the sender wrote it before it stored the header with release.
        unsafe { copy::read(self.0.as_ptr()) }
    }

    pub(crate) fn as_ptr(self) -> *mut T {
        self.0.as_ptr()
    }

    /// Borrows the message of a filled slot.
    ///
    /// # Safety
    ///
    /// The slot must be filled, and nobody may change it for as long as the borrow lasts.
    #[inline(always)]
    pub(crate) unsafe fn get<'a>(self) -> &'a T {
        // SAFETY: aligned and inside the memory; the caller promises the rest.
        unsafe { self.0.as_ref() }
    }

    /// Calls `body` with the message of a filled slot, to change it in place.
    ///
    /// # Safety
    ///
    /// The slot must be filled, and nobody else may use it meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn change(mut self, body: impl FnOnce(&mut T)) {
        // SAFETY: aligned and inside the memory; the caller promises the rest.
        body(unsafe { self.0.as_mut() });
    }
}

/// Address that message number 0 would have if it were part of the run.
pub(crate) struct BasePtr<T>(*mut T);

impl<T> Clone for BasePtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for BasePtr<T> {}

impl<T> BasePtr<T> {
    /// Address of the message with this number, which must be in the run or at its end.
    #[inline(always)]
    pub(crate) fn message(self, number: u64) -> MessagePtr<T> {
        // SAFETY: inside the memory, or just behind it.
        MessagePtr(unsafe { NonNull::new_unchecked(self.0.wrapping_add(number as usize)) })
    }
}
