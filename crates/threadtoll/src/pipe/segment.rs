//! Memory that a pipe's messages pass through: the *home* ring, and *chunks* that an unbounded pipe adds when home is full.
//!
//! Home is small enough for most cores' own caches and is used round and round. A chunk is used once from its beginning to its
//! end; the receiver gives it back when it has read it. So a pipe whose receiver keeps up never leaves home, and a burst costs the
//! same per message however deep it is.

use super::memory::{Geometry, Memory};
use crate::sync::{AtomicPtr, AtomicUsize, Ordering, boxed, free_boxed, mutate};

/// Bytes of home and of a chunk where nothing says. Well beyond a first-level cache: a line that one core wants and another one has in its
/// first-level cache comes over later than from its second-level cache, so a stream of slices in a home of 64 KiB is a quarter slower.
pub(super) const SEGMENT_BYTES: usize = 256 << 10;
/// Frames in home and in a chunk, at least.
const FEW_FRAMES: usize = 8;
/// Units of the longest record of a batch: a page.
const LONGEST: usize = 64;

/// How far ahead of itself the sender asks for lines: the store buffer alone covers four, which is not enough where a line takes
/// hundreds of nanoseconds to come over.
const AHEAD: usize = 16;

/// A stretch of frames.
pub(super) struct Segment<T> {
    pub(super) memory: Memory<T>,
    /// The segment in which the messages behind this one's go on, once this one's last header says so.
    pub(super) next: AtomicPtr<Segment<T>>,
}

impl<T> Segment<T> {
    pub(super) fn new(units: usize) -> Self {
        Segment { memory: Memory::new(units), next: AtomicPtr::new(std::ptr::null_mut()) }
    }

    fn bytes(units: usize) -> usize {
        units.saturating_mul(Geometry::<T>::UNIT)
    }
}

/// The measures of a pipe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measures {
    /// Messages in home, at most.
    pub(super) home: u64,
    /// Units of home.
    pub(super) home_units: usize,
    /// Units of the longest record.
    pub(super) longest: usize,
    /// Units of a chunk without the one that ends it; 0 for a bounded pipe.
    pub(super) chunk_units: usize,
    /// How many units ahead of itself the sender asks for lines; 0 where home is too small for that.
    pub(super) ahead: usize,
}

impl Measures {
    /// For at most so many messages.
    pub(super) fn bounded<T>(capacity: usize) -> Self {
        let frames = capacity.div_ceil(Geometry::<T>::PER_FRAME);
        let longest = if Geometry::<T>::DENSE { (frames / 4).clamp(1, LONGEST) } else { 1 };
        let ahead = if frames < AHEAD || cfg!(any(loom, shuttle)) { 0 } else { AHEAD };
        // Beside the messages that count, home holds what is left of a record that the receiver has not finished, the frame
        // that the sender fills, and the one behind it, whose header is already zero. And lines that the sender asks for: if the
        // receiver had to read them yet, they would go back and forth.
        let spare = longest + 3 + if ahead == 0 { 0 } else { ahead + longest };
        let home_units = frames.saturating_add(spare).saturating_mul(Geometry::<T>::FRAME);
        Measures { home: capacity as u64, home_units, longest, chunk_units: 0, ahead }
    }

    /// For any number, with so many bytes in home and in each chunk.
    pub(super) fn unbounded<T>(bytes: usize) -> Self {
        if cfg!(any(loom, shuttle)) {
            return Measures { chunk_units: 2, ..Self::bounded::<T>(2) };
        }
        let frames = (bytes / Segment::<T>::bytes(Geometry::<T>::FRAME)).max(FEW_FRAMES);
        let chunk_units = frames * Geometry::<T>::FRAME;
        Measures { chunk_units, ..Self::bounded::<T>(frames * Geometry::<T>::PER_FRAME) }
    }
}

/// Chunks that are not in use: the receiver puts them here, the sender takes them.
pub(super) struct Spares<T> {
    /// A list through `next`. The receiver pushes, the sender takes the whole list, so there is no ABA.
    list: AtomicPtr<Segment<T>>,
    /// Chunks in the list, and in the one that the sender has taken from it.
    kept: AtomicUsize,
    /// Chunks that exist.
    chunks: AtomicUsize,
    /// No more chunks than this are kept.
    limit: AtomicUsize,
    chunk_units: usize,
}

impl<T> Spares<T> {
    pub(super) fn new(chunk_units: usize, retain_bytes: usize) -> Self {
        let spares = Spares {
            list: AtomicPtr::new(std::ptr::null_mut()),
            kept: AtomicUsize::new(0),
            chunks: AtomicUsize::new(0),
            limit: AtomicUsize::new(0),
            chunk_units,
        };
        spares.retain(retain_bytes);
        spares
    }

    pub(super) fn chunk_bytes(&self) -> usize {
        Segment::<T>::bytes(self.chunk_units + Geometry::<T>::FRAME)
    }

    pub(super) fn retain(&self, bytes: usize) {
        self.limit.store(bytes / self.chunk_bytes().max(1), Ordering::Relaxed);
    }

    pub(super) fn kept_bytes(&self) -> usize {
        self.kept.load(Ordering::Relaxed) * self.chunk_bytes()
    }

    pub(super) fn used_bytes(&self) -> usize {
        let chunks = self.chunks.load(Ordering::Relaxed);
        chunks.saturating_sub(self.kept.load(Ordering::Relaxed)) * self.chunk_bytes()
    }

    /// A chunk for the sender: from `own`, what it took before, else from the list, else new.
    pub(super) fn take(&self, own: &mut *mut Segment<T>) -> *mut Segment<T> {
        if own.is_null() {
            // Acquire: the receiver has read the last message of each, and pushed them with release.
            *own = self.list.swap(std::ptr::null_mut(), mutate!(take_spare, Acquire));
        }
        if own.is_null() {
            self.chunks.fetch_add(1, Ordering::Relaxed);
            return boxed(Segment::new(self.chunk_units + Geometry::<T>::FRAME));
        }
        let chunk = *own;
        self.kept.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: chunks in the list are alive and belong to whoever took the list.
        *own = unsafe { &*chunk }.next.load(Ordering::Relaxed);
        chunk
    }

    /// A chunk that the receiver has read to its end.
    ///
    /// # Safety
    ///
    /// The chunk came from [`Spares::take`], and neither end uses it any more.
    pub(super) unsafe fn give(&self, chunk: *mut Segment<T>) {
        if self.kept.load(Ordering::Relaxed) >= self.limit.load(Ordering::Relaxed) {
            // SAFETY: the caller's promise.
            unsafe { self.free(chunk) };
            return;
        }
        self.kept.fetch_add(1, Ordering::Relaxed);
        let mut head = self.list.load(Ordering::Relaxed);
        loop {
            // SAFETY: the chunk is alive and still ours.
            unsafe { &*chunk }.next.store(head, Ordering::Relaxed);
            // Release: the sender will write where we have read.
            match self.list.compare_exchange_weak(
                head,
                chunk,
                mutate!(give_spare, Release),
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(other) => head = other,
            }
        }
    }

    /// Frees what is kept, and the caller's own list.
    pub(super) fn trim(&self, own: &mut *mut Segment<T>) {
        // Acquire: as in `take`.
        let list = self.list.swap(std::ptr::null_mut(), mutate!(trim_spare, Acquire));
        for mut list in [list, std::mem::replace(own, std::ptr::null_mut())] {
            while !list.is_null() {
                // SAFETY: chunks in a list are alive and belong to whoever took the list.
                let next = unsafe { &*list }.next.load(Ordering::Relaxed);
                self.kept.fetch_sub(1, Ordering::Relaxed);
                // SAFETY: taken out of the list, so nobody else knows of it.
                unsafe { self.free(list) };
                list = next;
            }
        }
    }

    /// # Safety
    ///
    /// The chunk came from [`Spares::take`], and nobody uses it any more.
    pub(super) unsafe fn free(&self, chunk: *mut Segment<T>) {
        self.chunks.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: alive until the line below.
        let memory = unsafe { &*chunk }.memory;
        // SAFETY: the caller gives it up.
        unsafe { memory.free() };
        // SAFETY: `take` made it so, and the caller gives it up.
        unsafe { free_boxed(chunk) };
    }
}
