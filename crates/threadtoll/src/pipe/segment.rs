//! The memory of a pipe: a *ring*, and *chunks* for bursts.
//!
//! A pipe begins with a small ring. If the receiver falls behind by a whole ring, the sender
//! continues in a larger one, and the receiver frees the old one once it has read it. The largest
//! ring of an unbounded pipe fits into the private caches of most cores. If the receiver falls
//! behind by more than that, the sender adds chunks. A chunk is used once, from start to end, and
//! then given back. So a burst costs the same per message at any depth, and the pipe returns to its
//! ring afterwards.

use super::memory::{Geometry, Memory};
use crate::sync::{AtomicPtr, AtomicUsize, Ordering, boxed, free_boxed, mutate};

/// Size in bytes of an unbounded pipe's largest ring, and of a chunk, unless an option says
/// otherwise.
pub(super) const SEGMENT_BYTES: usize = 256 << 10;
/// Size in bytes of a pipe's first ring. In a model checker, it holds two messages.
const FIRST_BYTES: usize =
    if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 320 } else { 4 << 10 };
/// Factor by which each ring is larger than the previous one.
const GROWTH: usize = 4;
/// Minimum number of messages that a ring of an unbounded pipe holds.
const MIN_SLOTS: usize = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 2 } else { 12 };
/// Maximum number of units in a run: a page of messages, and the header.
const MAX_RUN_UNITS: usize = 65;

/// A ring or a chunk.
pub(super) struct Segment<T> {
    pub(super) memory: Memory<T>,
    /// The segment in which messages continue after a jump.
    pub(super) next: AtomicPtr<Segment<T>>,
    /// Number of units for frames with messages. A chunk has one more frame at its end, for a jump.
    pub(super) units: usize,
    pub(super) is_ring: bool,
    /// Number of units whose headers must be cleared; 0 while the memory is fresh. The sender
    /// stores the number when it leaves the segment.
    pub(super) dirty_units: AtomicUsize,
}

impl<T> Segment<T> {
    fn new(units: usize, is_ring: bool) -> Self {
        let end = if is_ring { 0 } else { Geometry::<T>::FRAME_UNITS };
        let memory = Memory::new(units.saturating_add(end));
        let next = AtomicPtr::new(std::ptr::null_mut());
        Segment { memory, next, units, is_ring, dirty_units: AtomicUsize::new(0) }
    }

    pub(super) fn ring(units: usize) -> *mut Self {
        boxed(Segment::new(units, true))
    }

    /// Frees a segment without dropping messages in it.
    ///
    /// # Safety
    ///
    /// The segment must have been created by this type, and no end may use it any more.
    pub(super) unsafe fn free(segment: *mut Self) {
        // SAFETY: alive until `free_boxed` below.
        let memory = unsafe { &*segment }.memory;
        // SAFETY: the caller gives it up.
        unsafe { memory.free() };
        // SAFETY: made by `boxed`, and the caller gives it up.
        unsafe { free_boxed(segment) };
    }
}

pub(super) fn bytes<T>(units: usize) -> usize {
    units.saturating_mul(Geometry::<T>::UNIT_BYTES)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RingLayout {
    pub(super) units: usize,
    /// Maximum number of units that a run in the ring may take.
    pub(super) max_run_units: usize,
    /// Number of messages that the ring holds.
    pub(super) slots: u64,
}

impl RingLayout {
    /// The largest ring that has at most `frames` frames, or the smallest possible ring if that is
    /// larger.
    fn of_frames<T>(frames: usize) -> Self {
        let max_run_units = Self::max_run_units::<T>(frames / 5);
        let overhead = Self::overhead_frames(max_run_units);
        let full = frames.saturating_sub(overhead).max(1);
        let slots = (full as u64).saturating_mul(Geometry::<T>::PER_FRAME as u64);
        let units = full.saturating_add(overhead).saturating_mul(Geometry::<T>::FRAME_UNITS);
        RingLayout { units, max_run_units, slots }
    }

    fn of_messages<T>(messages: usize) -> Self {
        let full = messages.div_ceil(Geometry::<T>::PER_FRAME);
        let max_run_units = Self::max_run_units::<T>(full / 4);
        let units = full
            .saturating_add(Self::overhead_frames(max_run_units))
            .saturating_mul(Geometry::<T>::FRAME_UNITS);
        RingLayout { units, max_run_units, slots: messages as u64 }
    }

    fn max_run_units<T>(units: usize) -> usize {
        if Geometry::<T>::PACKS_RUNS { units.clamp(1, MAX_RUN_UNITS) } else { 1 }
    }

    /// Number of frames in an unbounded pipe's smallest ring.
    fn min_frames<T>() -> usize {
        MIN_SLOTS.div_ceil(Geometry::<T>::PER_FRAME) + Self::overhead_frames(1)
    }

    /// Number of frames that a ring needs in addition to full ones: `max_run_units` for the rest of
    /// a run that the receiver is reading, and one each for the frame that the sender is filling,
    /// for the first frame without room (its header is cleared, too), and for a jump.
    fn overhead_frames(max_run_units: usize) -> usize {
        max_run_units + 3
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PipeLayout {
    /// Number of messages that the pipe holds; [`NO_LIMIT`] if it is unbounded.
    pub(super) capacity: u64,
    pub(super) first: RingLayout,
    pub(super) largest: RingLayout,
    /// Number of units of a chunk, without the frame that ends it; 0 if the pipe is bounded.
    pub(super) chunk_units: usize,
}

/// Capacity of an unbounded pipe: more than it could ever hold.
pub(super) const NO_LIMIT: u64 = u64::MAX >> 3;

impl PipeLayout {
    pub(super) fn bounded<T>(capacity: usize) -> Self {
        let largest = RingLayout::of_messages::<T>(capacity);
        PipeLayout {
            capacity: capacity as u64,
            first: Self::first::<T>(largest),
            largest,
            chunk_units: 0,
        }
    }

    /// An unbounded pipe with `bytes` bytes in the largest ring and in each chunk.
    pub(super) fn unbounded<T>(bytes: usize) -> Self {
        let capacity = NO_LIMIT;
        if cfg!(any(threadtoll_loom, threadtoll_shuttle)) {
            // A model that needs long runs sets a size other than the default; 16 messages are
            // enough.
            let messages = if bytes == SEGMENT_BYTES { 2 } else { 16 };
            let ring = RingLayout::of_messages::<T>(messages);
            return PipeLayout { capacity, first: ring, largest: ring, chunk_units: 2 };
        }
        let frame_bytes = self::bytes::<T>(Geometry::<T>::FRAME_UNITS);
        let frames = (bytes / frame_bytes).max(RingLayout::min_frames::<T>());
        let largest = RingLayout::of_frames::<T>(frames);
        let chunk_units = frames * Geometry::<T>::FRAME_UNITS;
        PipeLayout { capacity, first: Self::first::<T>(largest), largest, chunk_units }
    }

    pub(super) fn is_bounded(&self) -> bool {
        self.chunk_units == 0
    }

    /// Like this layout, but starting with the largest ring.
    pub(super) fn fully_grown(self) -> Self {
        PipeLayout { first: self.largest, ..self }
    }

    fn first<T>(largest: RingLayout) -> RingLayout {
        let frames = FIRST_BYTES / bytes::<T>(Geometry::<T>::FRAME_UNITS);
        let frames = frames.max(RingLayout::min_frames::<T>());
        Self::at_most(RingLayout::of_frames::<T>(frames), largest)
    }

    /// The ring that follows a ring of `units` units.
    pub(super) fn next<T>(&self, units: usize) -> RingLayout {
        let frames = units.saturating_mul(GROWTH) / Geometry::<T>::FRAME_UNITS;
        Self::at_most(RingLayout::of_frames::<T>(frames), self.largest)
    }

    fn at_most(ring: RingLayout, largest: RingLayout) -> RingLayout {
        if ring.units >= largest.units || ring.slots >= largest.slots { largest } else { ring }
    }
}

/// Unused chunks. The receiver gives them back, the sender takes them.
pub(super) struct FreeList<T> {
    /// A list linked by `next`. The receiver pushes chunks, and the sender takes the whole list, so
    /// there is no ABA problem.
    list: AtomicPtr<Segment<T>>,
    /// Number of chunks in `list` and in the list that the sender has taken.
    kept: AtomicUsize,
    /// Number of allocated chunks.
    chunks: AtomicUsize,
    /// Maximum number of chunks to keep.
    limit: usize,
    chunk_units: usize,
}

impl<T> FreeList<T> {
    pub(super) fn new(chunk_units: usize, retain_bytes: usize) -> Self {
        let list = FreeList {
            list: AtomicPtr::new(std::ptr::null_mut()),
            kept: AtomicUsize::new(0),
            chunks: AtomicUsize::new(0),
            limit: 0,
            chunk_units,
        };
        FreeList { limit: retain_bytes / list.chunk_bytes().max(1), ..list }
    }

    fn chunk_bytes(&self) -> usize {
        bytes::<T>(self.chunk_units + Geometry::<T>::FRAME_UNITS)
    }

    pub(super) fn kept_bytes(&self) -> usize {
        self.kept.load(Ordering::Relaxed) * self.chunk_bytes()
    }

    pub(super) fn used_bytes(&self) -> usize {
        let chunks = self.chunks.load(Ordering::Relaxed);
        chunks.saturating_sub(self.kept.load(Ordering::Relaxed)) * self.chunk_bytes()
    }

    /// Returns a chunk: from `own`, the list that the sender took earlier; otherwise from the
    /// shared list; otherwise a new one.
    pub(super) fn take(&self, own: &mut *mut Segment<T>) -> *mut Segment<T> {
        if own.is_null() {
            // Acquire: the receiver has finished reading these chunks.
            *own = self.list.swap(std::ptr::null_mut(), mutate!(take_spare, Acquire));
        }
        if own.is_null() {
            self.chunks.fetch_add(1, Ordering::Relaxed);
            return boxed(Segment::new(self.chunk_units, false));
        }
        let chunk = *own;
        self.kept.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: chunks in the list are alive and belong to the end that took the list.
        *own = unsafe { &*chunk }.next.load(Ordering::Relaxed);
        chunk
    }

    /// Keeps or frees a chunk that the receiver has read.
    ///
    /// # Safety
    ///
    /// The chunk must come from [`FreeList::take`], and no end may use it any more.
    pub(super) unsafe fn give(&self, chunk: *mut Segment<T>) {
        if self.kept.load(Ordering::Relaxed) >= self.limit {
            // SAFETY: the caller's promise.
            unsafe { self.free(chunk) };
            return;
        }
        self.kept.fetch_add(1, Ordering::Relaxed);
        let mut head = self.list.load(Ordering::Relaxed);
        loop {
            // SAFETY: the chunk is alive and still ours.
            unsafe { &*chunk }.next.store(head, Ordering::Relaxed);
            // Release: the sender will overwrite what the receiver has read.
            let order = mutate!(give_spare, Release);
            match self.list.compare_exchange_weak(head, chunk, order, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => head = other,
            }
        }
    }

    /// Frees the kept chunks and the sender's own list. Both ends must be gone.
    pub(super) fn free_all(&self, own: *mut Segment<T>) {
        let list = self.list.swap(std::ptr::null_mut(), Ordering::Acquire);
        for mut list in [list, own] {
            while !list.is_null() {
                // SAFETY: chunks in a list are alive and belong to the end that took the list.
                let next = unsafe { &*list }.next.load(Ordering::Relaxed);
                self.kept.fetch_sub(1, Ordering::Relaxed);
                // SAFETY: taken out of the list, so it is ours alone.
                unsafe { self.free(list) };
                list = next;
            }
        }
    }

    /// # Safety
    /// The chunk must come from [`FreeList::take`], and no end may use it any more.
    pub(super) unsafe fn free(&self, chunk: *mut Segment<T>) {
        self.chunks.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { Segment::free(chunk) };
    }
}

#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_begins_small_and_grows_to_its_full_size() {
        let layout = PipeLayout::unbounded::<u64>(SEGMENT_BYTES);
        let mut ring = layout.first;
        assert!(bytes::<u64>(ring.units) <= FIRST_BYTES);
        let mut steps = 0;
        while ring != layout.largest {
            let next = layout.next::<u64>(ring.units);
            assert!(next.units > ring.units && next.slots > ring.slots);
            ring = next;
            steps += 1;
        }
        assert_eq!((steps, bytes::<u64>(ring.units)), (3, SEGMENT_BYTES));
    }

    #[test]
    fn the_largest_ring_of_a_bounded_pipe_holds_its_capacity() {
        for capacity in [1, 2, 7, 8, 100, 1024, 1 << 20, usize::MAX / 2, usize::MAX] {
            let layout = PipeLayout::bounded::<u64>(capacity);
            assert_eq!(layout.largest.slots, capacity as u64);
            assert!(layout.first.units <= layout.largest.units);
        }
        assert!(bytes::<()>(PipeLayout::bounded::<()>(1 << 30).largest.units) < 2 << 20);
        assert_eq!(bytes::<u64>(PipeLayout::bounded::<u64>(1).first.units), 5 * 64);
    }
}
