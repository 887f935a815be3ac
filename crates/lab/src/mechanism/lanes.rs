//! Memory that two ends share. Each direction has a lane: a counter with the sequence number of the
//! last message, and room for the rest of the message.
//!
//! In the `own` layout, each lane starts on its own cache line, and the message follows the
//! counter. In the `shared` layout, one cache line holds both counters, as in M. Thompson's C++
//! program (2011), and the messages are on other lines. A line counts as 128 bytes, because x86's
//! adjacent-line prefetcher and big aarch64 cores move pairs of 64-byte lines.

use std::alloc::{Layout as Allocation, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use threadtoll_record::Layout;

use super::Settings;
use super::message::verify_sum;

const LINE: usize = 128;
const WORD: usize = 8;

struct Memory {
    start: NonNull<u8>,
    allocation: Allocation,
}

// SAFETY: a counter is an atomic. A message passes between threads with a release and an acquire on
// its counter, or on the futex word, lock or semaphore that the mechanism uses as well.
unsafe impl Send for Memory {}
// SAFETY: as for `Send`.
unsafe impl Sync for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc_zeroed` with this layout, and no lane refers to it any
        // more.
        unsafe { dealloc(self.start.as_ptr(), self.allocation) }
    }
}

pub(super) struct Lane {
    counter: NonNull<AtomicU64>,
    message: NonNull<u64>,
    words: usize,
    _memory: Arc<Memory>,
}

// SAFETY: a lane holds pointers into memory that it keeps alive; `Memory` says how threads access
// that memory.
unsafe impl Send for Lane {}

impl Lane {
    /// Creates both lanes; the calling thread is the first to touch their memory. Returns, for each
    /// end, the lane to send on and the lane to receive from.
    pub(super) fn pair(settings: &Settings) -> ((Lane, Lane), (Lane, Lane)) {
        let words = settings.payload_bytes / WORD - 1;
        let span = (WORD + words * WORD).next_multiple_of(LINE);
        // In the `shared` layout, both counters are on a line of their own, in front of the two
        // lanes.
        let size = LINE + 2 * span;
        let allocation = match Allocation::from_size_align(size, LINE) {
            Ok(allocation) => allocation,
            Err(error) => unreachable!("the command limits the payload: {error}"),
        };
        // SAFETY: the size is not zero.
        let memory = unsafe { alloc_zeroed(allocation) };
        let Some(start) = NonNull::new(memory) else { handle_alloc_error(allocation) };
        let memory = Arc::new(Memory { start, allocation });
        // A page is mapped only when it is written: write to every page before the clock starts.
        // SAFETY: the memory was just allocated and is not shared yet.
        unsafe { start.write_bytes(0, size) };
        let lane = |direction: usize| {
            let begin = LINE + direction * span;
            let counter = match settings.layout {
                Layout::Own => begin,
                Layout::Shared => direction * WORD,
            };
            // SAFETY: the offset is inside the allocation, for both layouts and directions.
            let counter = unsafe { start.add(counter) };
            // SAFETY: the offset is inside the allocation, or one past its end if there are no
            // words.
            let message = unsafe { start.add(begin + WORD) };
            Lane {
                counter: counter.cast(),
                message: message.cast(),
                words,
                _memory: Arc::clone(&memory),
            }
        };
        ((lane(0), lane(1)), (lane(1), lane(0)))
    }

    /// Writes message `seq`, except its counter.
    ///
    /// # Safety
    ///
    /// The receiver must have read the previous message and replied. After this call, the counter
    /// must be stored with release or under a lock.
    #[inline(always)]
    pub(super) unsafe fn write(&self, seq: u64) {
        for word in 0..self.words {
            // SAFETY: the lane has `words` words inside the allocation.
            let place = unsafe { self.message.add(word) };
            // SAFETY: the receiver has replied, so no other thread accesses the message.
            unsafe { place.write(seq.wrapping_add(word as u64)) };
        }
    }

    /// Reads the message whose counter was `seq`. Returns `seq` if every word is right, and a
    /// different number otherwise.
    ///
    /// # Safety
    ///
    /// The caller must have read `seq` from the counter with acquire or under a lock, and must not
    /// have replied since.
    #[inline(always)]
    pub(super) unsafe fn read(&self, seq: u64) -> u64 {
        if self.words == 0 {
            return seq;
        }
        let mut sum = 0u64;
        for word in 0..self.words {
            // SAFETY: the lane has `words` words inside the allocation.
            let place = unsafe { self.message.add(word) };
            // SAFETY: the writer's release was seen, so it has finished; it writes again only after
            // the reply.
            sum = sum.wrapping_add(unsafe { place.read() });
        }
        verify_sum(seq, sum, self.words)
    }
}

impl Deref for Lane {
    type Target = AtomicU64;

    #[inline(always)]
    fn deref(&self) -> &AtomicU64 {
        // SAFETY: the pointer leads to an aligned, initialised word in memory that the lane keeps
        // alive.
        unsafe { self.counter.as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use threadtoll_record::Pause;

    use super::*;

    fn settings(payload_bytes: usize, layout: Layout) -> Settings {
        Settings { payload_bytes, layout, pause: Pause::Off }
    }

    #[test]
    fn the_layout_decides_whether_counters_share_a_line() {
        let distance = |layout| {
            let ((to, from), _) = Lane::pair(&settings(8, layout));
            (to.counter.as_ptr() as usize).abs_diff(from.counter.as_ptr() as usize)
        };
        assert_eq!(distance(Layout::Shared), 8);
        assert_eq!(distance(Layout::Own), 128);
    }

    #[test]
    fn a_message_that_is_not_the_announced_one_is_noticed() {
        let ((to, _), (_, from)) = Lane::pair(&settings(4096, Layout::Own));
        // SAFETY: one thread is both ends, in turn.
        unsafe { to.write(7) };
        to.store(7, Ordering::Release);
        assert_eq!(from.load(Ordering::Acquire), 7);
        // SAFETY: one thread is both ends, in turn.
        assert_eq!(unsafe { from.read(7) }, 7);
        // SAFETY: one thread is both ends, in turn.
        assert_ne!(unsafe { from.read(8) }, 8, "the bytes are still those of message 7");
    }
}
