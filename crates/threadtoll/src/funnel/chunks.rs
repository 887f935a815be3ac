//! The chunks of a funnel: how senders find them, and when they may be reused.
//!
//! A sender first draws a ticket and then looks for the ticket's chunk, starting from `latest`. If
//! `latest` is an earlier chunk, the sender walks forward and links chunks that are missing. If it
//! is a later one, because the sender was stopped in between, the sender walks back. The ticket's
//! chunk and all later ones are alive, because the receiver does not pass a ticket before its
//! message is stored or the ticket is voided.
//!
//! A sender that walks forward starts from a chunk *before* its ticket's. That chunk must not be
//! reused either, so a sender that moves `latest` past a chunk stores the tail as the chunk's
//! `cutoff`. Every sender that loaded the old pointer drew its ticket below the cutoff: if it had
//! drawn later, it would have seen the new pointer, because drawing a ticket and reading the tail
//! for the cutoff are both read-modify-writes. So once the receiver has reached the cutoff, all
//! these senders have finished, and no sender can reach the chunk. tokio's `mpsc` reclaims its
//! blocks in the same way (`observed_tail_position`). The walk back is our addition: it ensures
//! that a stopped sender never makes others walk.
//!
//! The argument requires that senders use chunks only between drawing a ticket and storing its
//! stamp. There is one exception: a sender that finds the receiver gone may take its message back,
//! if the receiver has not reached that message. The message's chunk and all later ones live as
//! long as the funnel.

use super::chunk::{Chunk, SlotState};
use crate::sync::{
    AtomicPtr, AtomicU64, AtomicUsize, CachePadded, Ordering, free_boxed, mutate, prefetch,
};

/// Maximum number of chunks that can be kept for the next burst: 1 GiB of small messages.
const MAX_KEPT: usize = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 1 } else { 1 << 16 };
/// Number of entries of the free list that a search tries before it gives up.
const PROBES: usize = 64;

/// A kept chunk, or null.
type FreeListEntry<T> = AtomicPtr<Chunk<T>>;

pub(super) struct Chunks<T> {
    /// The chunk of the latest tickets, or one shortly before it. Read by each send, written once
    /// per chunk.
    latest: CachePadded<AtomicPtr<Chunk<T>>>,
    /// Kept chunks, in approximately the first `kept` entries.
    free_list: Box<[FreeListEntry<T>]>,
    /// Number of chunks in total; `kept` of them are in `free_list`.
    allocated: AtomicUsize,
    kept: AtomicUsize,
}

impl<T> Chunks<T> {
    pub(super) fn new(retain_bytes: usize) -> Self {
        let first = Chunk::boxed(0);
        // At least two chunks, so that steady traffic of large messages does not allocate.
        let least = if retain_bytes > 0 { 2 } else { 0 };
        let places = (retain_bytes / Chunk::<T>::bytes()).max(least).min(MAX_KEPT);
        Chunks {
            latest: CachePadded(AtomicPtr::new(first)),
            free_list: (0..places).map(|_| AtomicPtr::new(std::ptr::null_mut())).collect(),
            allocated: AtomicUsize::new(1),
            kept: AtomicUsize::new(0),
        }
    }

    /// The first chunk of a new funnel.
    pub(super) fn first(&self) -> *mut Chunk<T> {
        self.latest.load(Ordering::Relaxed)
    }

    pub(super) fn used_bytes(&self) -> usize {
        let allocated = self.allocated.load(Ordering::Relaxed);
        allocated.saturating_sub(self.kept.load(Ordering::Relaxed)) * Chunk::<T>::bytes()
    }

    pub(super) fn kept_bytes(&self) -> usize {
        self.kept.load(Ordering::Relaxed) * Chunk::<T>::bytes()
    }

    /// Returns the chunk of a ticket.
    ///
    /// # Safety
    /// The caller must have drawn the ticket and not have used it yet. The caller may use the chunk
    /// only until it has used the ticket.
    #[inline(always)]
    pub(super) unsafe fn find(&self, ticket: u64, tail: &AtomicU64) -> &Chunk<T> {
        // Acquire: everything written to the chunk before it was linked is visible.
        let latest = self.latest.load(mutate!(see_latest, Acquire));
        // SAFETY: the chunk is not reused before this ticket's message is received: see the head of
        // this file.
        let chunk = unsafe { &*latest };
        if chunk.number.load(Ordering::Relaxed) == Chunk::<T>::number_of(ticket) {
            return chunk;
        }
        self.walk(latest, ticket, tail)
    }

    #[cold]
    #[inline(never)]
    fn walk(&self, latest: *mut Chunk<T>, ticket: u64, tail: &AtomicU64) -> &Chunk<T> {
        let number = Chunk::<T>::number_of(ticket);
        let mut at = latest;
        loop {
            // SAFETY: `at` is between `latest` and the ticket's chunk: see the head of this file.
            let chunk = unsafe { &*at };
            match chunk.number.load(Ordering::Relaxed).cmp(&number) {
                std::cmp::Ordering::Equal => break,
                std::cmp::Ordering::Less => at = self.next(at),
                std::cmp::Ordering::Greater => at = chunk.prev.load(Ordering::Acquire),
            }
        }
        // SAFETY: the chunk where we started is not reused until our message is there.
        let behind = unsafe { &*latest }.number.load(Ordering::Relaxed) < number;
        if behind {
            self.move_latest(latest, at, tail);
        }
        // SAFETY: the ticket's chunk.
        unsafe { &*at }
    }

    /// Moves `latest` to a later chunk, unless another thread has done so, and sets the cutoff of
    /// the chunks that it passes.
    fn move_latest(&self, from: *mut Chunk<T>, to: *mut Chunk<T>, tail: &AtomicU64) {
        // There is no ABA problem, because `from` is not reused while this code runs. AcqRel: a
        // thread that loads the pointer sees the chunk, and the cutoff is read after the pointer
        // has moved. Acquire on failure: if a receiver finds that a sender has moved the pointer,
        // the cutoff that the receiver reads next is above that sender's ticket.
        if self
            .latest
            .compare_exchange(from, to, mutate!(move_latest, AcqRel), Ordering::Acquire)
            .is_err()
        {
            return;
        }
        let mut at = from;
        while at != to {
            // SAFETY: `at` is between `from` and the ticket's chunk.
            let chunk = unsafe { &*at };
            note_cutoff(chunk, tail);
            at = chunk.next.load(Ordering::Acquire);
        }
    }

    /// Returns the next chunk, and links one first if there is none.
    pub(super) fn next(&self, at: *mut Chunk<T>) -> *mut Chunk<T> {
        // SAFETY: the caller's chunk.
        let chunk = unsafe { &*at };
        let next = chunk.next.load(Ordering::Acquire);
        if !next.is_null() {
            return next;
        }
        let fresh = self.take(chunk.number.load(Ordering::Relaxed) + 1, at);
        // Release: a thread that finds the chunk sees its number. Acquire: if another chunk was
        // linked first, we see that chunk's number.
        match chunk.next.compare_exchange(
            std::ptr::null_mut(),
            fresh,
            mutate!(link, AcqRel),
            Ordering::Acquire,
        ) {
            Ok(_) => fresh,
            Err(other) => {
                // SAFETY: not linked, so it is ours alone.
                unsafe { self.give(fresh) };
                other
            }
        }
    }

    fn take(&self, number: u64, prev: *mut Chunk<T>) -> *mut Chunk<T> {
        let (full, free) = self.kept_and_free();
        for place in full.iter().rev().chain(free).take(PROBES) {
            if place.load(Ordering::Relaxed).is_null() {
                continue;
            }
            // Acquire: the receiver has finished reading the chunk.
            let chunk = place.swap(std::ptr::null_mut(), mutate!(take_spare_chunk, Acquire));
            if !chunk.is_null() {
                self.kept.fetch_sub(1, Ordering::Relaxed);
                // SAFETY: swapped out, so it is ours.
                unsafe { &*chunk }.reuse_as(number, prev);
                return chunk;
            }
        }
        self.allocated.fetch_add(1, Ordering::Relaxed);
        let chunk = Chunk::boxed(number);
        // SAFETY: just made.
        unsafe { &*chunk }.prev.store(prev, Ordering::Relaxed);
        chunk
    }

    /// The entries that probably contain chunks, and those that are probably empty.
    fn kept_and_free(&self) -> (&[FreeListEntry<T>], &[FreeListEntry<T>]) {
        self.free_list.split_at(self.kept.load(Ordering::Relaxed).min(self.free_list.len()))
    }

    /// Keeps or frees a chunk.
    ///
    /// # Safety
    ///
    /// No thread may be able to reach the chunk.
    pub(super) unsafe fn give(&self, chunk: *mut Chunk<T>) {
        let (full, free) = self.kept_and_free();
        for place in free.iter().chain(full.iter().rev()).take(PROBES) {
            if !place.load(Ordering::Relaxed).is_null() {
                continue;
            }
            // Counted first, so that the count is never too low.
            self.kept.fetch_add(1, Ordering::Relaxed);
            let null = std::ptr::null_mut();
            // Release: the receiver has read the chunk before the next sender overwrites it.
            if place
                .compare_exchange(
                    null,
                    chunk,
                    mutate!(give_spare_chunk, Release),
                    Ordering::Relaxed,
                )
                .is_ok()
            {
                return;
            }
            self.kept.fetch_sub(1, Ordering::Relaxed);
        }
        // SAFETY: the caller's promise.
        unsafe { self.free(chunk) };
    }

    /// Frees a chunk without dropping messages in it.
    ///
    /// # Safety
    ///
    /// No thread may be able to reach the chunk.
    pub(super) unsafe fn free(&self, chunk: *mut Chunk<T>) {
        self.allocated.fetch_sub(1, Ordering::Relaxed);
        #[cfg(any(threadtoll_loom, threadtoll_shuttle))]
        // SAFETY: not freed yet.
        unsafe { &*chunk }.touch();
        // SAFETY: made by `boxed`, and the caller gives it up.
        unsafe { free_boxed(chunk) };
    }
}

/// Sets the cutoff of a chunk to the current tail: every sender that can still reach the chunk has
/// a ticket below it. `latest` must already have moved past the chunk.
fn note_cutoff<T>(chunk: &Chunk<T>, tail: &AtomicU64) -> u64 {
    // A read-modify-write, so that it is ordered relative to the draws: a sender that draws later
    // sees that `latest` has moved.
    let cutoff = super::tail::ticket(tail.fetch_add(0, mutate!(note_cutoff, AcqRel)));
    chunk.cutoff.store(cutoff, Ordering::Relaxed);
    cutoff
}

/// The receiver's position, and the chunks that it has read but cannot reuse yet.
pub(super) struct Reader<T> {
    /// The ticket of the next message.
    pub(super) head: u64,
    chunk: *mut Chunk<T>,
    retired: std::collections::VecDeque<*mut Chunk<T>>,
}

impl<T> Reader<T> {
    pub(super) fn new(chunks: &Chunks<T>) -> Self {
        Reader { head: 0, chunk: chunks.first(), retired: std::collections::VecDeque::new() }
    }

    /// Continues at this ticket, in a chunk that has no messages.
    #[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
    pub(super) fn begin_at(&mut self, ticket: u64) {
        self.head = ticket;
        // SAFETY: the receiver's chunk.
        unsafe { &*self.chunk }.reuse_as(Chunk::<T>::number_of(ticket), std::ptr::null_mut());
    }

    /// A placeholder for a reader that was moved out.
    pub(super) fn detached() -> Self {
        Reader { head: 0, chunk: std::ptr::null_mut(), retired: std::collections::VecDeque::new() }
    }

    /// Returns `true` if the next message is ready. Skips tickets that have no message.
    #[inline(always)]
    pub(super) fn poll(&mut self, chunks: &Chunks<T>, tail: &AtomicU64) -> bool {
        loop {
            // SAFETY: the receiver gives a chunk back only after leaving it.
            let chunk = unsafe { &*self.chunk };
            if chunk.number.load(Ordering::Relaxed) != Chunk::<T>::number_of(self.head) {
                if !self.next_chunk(chunks, tail) {
                    return false;
                }
                continue;
            }
            match chunk.slot(self.head).state(self.head) {
                SlotState::Message => return true,
                SlotState::Empty => return false,
                SlotState::Void => self.head += 1,
            }
        }
    }

    /// Moves out the message that `poll` has found.
    #[inline(always)]
    pub(super) fn take(&mut self) -> T {
        // SAFETY: the receiver gives a chunk back only after leaving it.
        let chunk = unsafe { &*self.chunk };
        // SAFETY: `poll` has found the message, and `head` advances past it.
        let message = unsafe { chunk.slot(self.head).take() };
        self.head += 1;
        message
    }

    /// Prefetches a later slot, if it is in the same chunk.
    #[inline(always)]
    pub(super) fn prefetch(&self, ahead: u64) {
        let ticket = self.head + ahead;
        // SAFETY: the receiver gives a chunk back only after leaving it.
        let chunk = unsafe { &*self.chunk };
        if chunk.number.load(Ordering::Relaxed) == Chunk::<T>::number_of(ticket) {
            prefetch(chunk.slot(ticket));
        }
    }

    /// Address of the message that `poll` has found.
    pub(super) fn message_ptr(&self) -> *const T {
        // SAFETY: the receiver gives a chunk back only after leaving it.
        unsafe { &*self.chunk }.slot(self.head).message_ptr()
    }

    /// Claims and moves out every message from the next ticket up to `end`, skipping tickets that
    /// have none. After this call, nothing may be received, and no chunk may be given back.
    pub(super) fn claim_all(&self, end: u64, mut body: impl FnMut(T)) {
        let mut at = self.chunk;
        for ticket in self.head..end {
            // SAFETY: the receiver's chunk or a later one, which only the receiver gives back.
            let mut chunk = unsafe { &*at };
            if chunk.number.load(Ordering::Relaxed) != Chunk::<T>::number_of(ticket) {
                at = chunk.next.load(Ordering::Acquire);
                if at.is_null() {
                    // No sender has got any further, because each sender links the chunks up to its
                    // own.
                    return;
                }
                // SAFETY: the receiver's chunk or a later one, which only the receiver gives back.
                chunk = unsafe { &*at };
            }
            let slot = chunk.slot(ticket);
            if slot.claim(ticket) {
                // SAFETY: claimed.
                body(unsafe { slot.take() });
            }
        }
    }

    /// Moves to the next chunk, if there is one, and gives back those chunks that no sender can
    /// reach.
    #[cold]
    fn next_chunk(&mut self, chunks: &Chunks<T>, tail: &AtomicU64) -> bool {
        // SAFETY: the receiver gives a chunk back only after leaving it.
        let chunk = unsafe { &*self.chunk };
        let next = chunk.next.load(Ordering::Acquire);
        if next.is_null() {
            return false;
        }
        self.retired.push_back(self.chunk);
        self.chunk = next;
        while let Some(oldest) = self.retired.front().copied() {
            // SAFETY: not given back yet.
            let old = unsafe { &*oldest };
            let mut cutoff = old.cutoff.load(Ordering::Relaxed);
            if cutoff == 0 {
                // The sender that moved `latest` is stopped, or no sender has moved it yet. The
                // receiver has received every message in this chunk, so it may move `latest` and
                // set the cutoff itself. The stopped sender may overwrite the cutoff later, but
                // only before it stores its message, whose ticket is below the receiver's cutoff.
                let latest = chunks.latest.load(Ordering::Acquire);
                if latest == oldest {
                    chunks.move_latest(oldest, old.next.load(Ordering::Acquire), tail);
                    cutoff = old.cutoff.load(Ordering::Relaxed);
                }
                if cutoff == 0 {
                    cutoff = note_cutoff(old, tail);
                }
            }
            if mutate!(wait_for_cutoff, self.head < cutoff => false) {
                break;
            }
            self.retired.pop_front();
            // SAFETY: every sender that could reach the chunk has a ticket below the cutoff, and we
            // have received those messages.
            unsafe { chunks.give(oldest) };
        }
        true
    }

    /// Bytes in chunks that have been read and cannot be reused yet.
    pub(super) fn pinned_bytes(&self) -> usize {
        self.retired.len() * Chunk::<T>::bytes()
    }

    /// Frees all chunks. Both sides must be gone.
    pub(super) fn free(self, chunks: &Chunks<T>) {
        for chunk in self.retired {
            // SAFETY: both sides are gone.
            unsafe { chunks.free(chunk) };
        }
        let mut at = self.chunk;
        while !at.is_null() {
            // SAFETY: linked, so alive.
            let next = unsafe { &*at }.next.load(Ordering::Relaxed);
            // SAFETY: both sides are gone.
            unsafe { chunks.free(at) };
            at = next;
        }
        for place in &chunks.free_list {
            // Acquire: as in `take`.
            let spare = place.swap(std::ptr::null_mut(), Ordering::Acquire);
            if !spare.is_null() {
                // SAFETY: both sides are gone.
                unsafe { chunks.free(spare) };
            }
        }
    }
}
