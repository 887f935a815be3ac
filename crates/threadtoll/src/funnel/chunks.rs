//! The chunks of a funnel: how senders find theirs, and when one may be used again.
//!
//! A sender first draws its ticket and then looks for the ticket's chunk, starting from `latest`.
//! That pointer may be behind the ticket: then the sender walks forward and links chunks that are
//! missing. It may be ahead, if the sender was held up in between: then it walks back. Every chunk
//! from the ticket's on is alive, because the receiver does not go past a ticket whose message is
//! not there.
//!
//! The chunk that `latest` pointed to when the sender loaded it may even be *behind* the sender's
//! ticket. Whoever moves `latest` past a chunk then notes the tail as that chunk's `cutoff`. A
//! sender that loaded the old pointer drew its ticket below the cutoff: had it drawn later, it
//! would have seen the new pointer, because drawing and noting are both read-modify-writes of the
//! tail. So when the receiver has come to the cutoff, every such sender has finished, and nobody
//! can come across the chunk any more. This is how tokio's `mpsc` reclaims its blocks
//! (`observed_tail_position`), with the way back added, so that a sender that is held up never
//! makes others walk.
//!
//! A sender touches chunks only between drawing its ticket and storing its stamp; on that the
//! argument rests. There is one exception: a sender that finds that the receiver has left may take
//! its message back, if the receiver has not come as far. Nobody gives back that chunk, or one
//! behind it, before the end of the funnel.

use super::chunk::{Chunk, SlotState};
use crate::sync::{AtomicPtr, AtomicU64, AtomicUsize, CachePadded, Ordering, free_boxed, mutate};

/// Chunks that can be kept for the next burst, whatever is asked for: of small messages, 1 GiB.
const MAX_KEPT: usize = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 1 } else { 1 << 16 };
/// Places that are tried to find a chunk, or room for one.
const PROBES: usize = 64;

/// For a chunk; null where there is none.
type FreeListEntry<T> = AtomicPtr<Chunk<T>>;

pub(super) struct Chunks<T> {
    /// The chunk of the latest tickets, or one not far behind. Read with each send, written once a
    /// chunk.
    latest: CachePadded<AtomicPtr<Chunk<T>>>,
    /// Chunks for the next burst: as many from the beginning on as `kept` says, or nearly so, where
    /// several take and give at once.
    free_list: Box<[FreeListEntry<T>]>,
    /// Chunks that exist, and of those the ones in `free_list`.
    allocated: AtomicUsize,
    kept: AtomicUsize,
}

impl<T> Chunks<T> {
    pub(super) fn new(retain_bytes: usize) -> Self {
        let first = Chunk::boxed(0);
        // Two at least, so that steady traffic of large messages allocates nothing either.
        let least = if retain_bytes > 0 { 2 } else { 0 };
        let places = (retain_bytes / Chunk::<T>::bytes()).max(least).min(MAX_KEPT);
        Chunks {
            latest: CachePadded(AtomicPtr::new(first)),
            free_list: (0..places).map(|_| AtomicPtr::new(std::ptr::null_mut())).collect(),
            allocated: AtomicUsize::new(1),
            kept: AtomicUsize::new(0),
        }
    }

    /// The first chunk, for the receiver of a new funnel.
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

    /// The chunk of a ticket.
    ///
    /// # Safety
    ///
    /// The caller has drawn the ticket, put nothing there yet, and uses the chunk only until it
    /// does.
    #[inline(always)]
    pub(super) unsafe fn find(&self, ticket: u64, tail: &AtomicU64) -> &Chunk<T> {
        // Acquire: what was written into the chunk before it was linked is seen.
        let latest = self.latest.load(mutate!(see_latest, Acquire));
        // SAFETY: not used again before this ticket's message was received: see the head of this
        // file.
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
            // SAFETY: where we started, or between there and the ticket's chunk: see the head of
            // this file.
            let chunk = unsafe { &*at };
            match chunk.number.load(Ordering::Relaxed).cmp(&number) {
                std::cmp::Ordering::Equal => break,
                std::cmp::Ordering::Less => at = self.next(at),
                std::cmp::Ordering::Greater => at = chunk.prev.load(Ordering::Acquire),
            }
        }
        // SAFETY: the chunk where we started is protected until our message is there.
        let behind = unsafe { &*latest }.number.load(Ordering::Relaxed) < number;
        if behind {
            self.move_latest(latest, at, tail);
        }
        // SAFETY: the ticket's chunk.
        unsafe { &*at }
    }

    /// Moves `latest` from one chunk to a later one, if nobody else has, and notes the cutoff of
    /// all that it passes.
    fn move_latest(&self, from: *mut Chunk<T>, to: *mut Chunk<T>, tail: &AtomicU64) {
        // There is no ABA: `from` is not used again while we may be here. AcqRel: whoever loads the
        // pointer sees the chunk; and the cutoff below is taken after the pointer has moved.
        // Acquire on failure: the receiver that finds it moved takes a cutoff too, which must come
        // after the draw of whoever moved it.
        if self
            .latest
            .compare_exchange(from, to, mutate!(move_latest, AcqRel), Ordering::Acquire)
            .is_err()
        {
            return;
        }
        let mut at = from;
        while at != to {
            // SAFETY: between where we started and the ticket's chunk.
            let chunk = unsafe { &*at };
            note_cutoff(chunk, tail);
            at = chunk.next.load(Ordering::Acquire);
        }
    }

    /// The chunk behind another one, linked if need be.
    pub(super) fn next(&self, at: *mut Chunk<T>) -> *mut Chunk<T> {
        // SAFETY: the caller's chunk.
        let chunk = unsafe { &*at };
        let next = chunk.next.load(Ordering::Acquire);
        if !next.is_null() {
            return next;
        }
        let fresh = self.take(chunk.number.load(Ordering::Relaxed) + 1, at);
        // Release: whoever finds it sees its number. Acquire: if another one was linked, we see
        // that one's.
        match chunk.next.compare_exchange(
            std::ptr::null_mut(),
            fresh,
            mutate!(link, AcqRel),
            Ordering::Acquire,
        ) {
            Ok(_) => fresh,
            Err(other) => {
                // SAFETY: nobody but us knows it.
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
            // Acquire: the receiver has read the last message in it.
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

    /// The places in which chunks should be, and those in which none should.
    fn kept_and_free(&self) -> (&[FreeListEntry<T>], &[FreeListEntry<T>]) {
        self.free_list.split_at(self.kept.load(Ordering::Relaxed).min(self.free_list.len()))
    }

    /// A chunk that nobody uses any more.
    ///
    /// # Safety
    ///
    /// Nobody can come across it.
    pub(super) unsafe fn give(&self, chunk: *mut Chunk<T>) {
        let (full, free) = self.kept_and_free();
        for place in free.iter().chain(full.iter().rev()).take(PROBES) {
            if !place.load(Ordering::Relaxed).is_null() {
                continue;
            }
            // Counted first, so that the count is never below what is there.
            self.kept.fetch_add(1, Ordering::Relaxed);
            let null = std::ptr::null_mut();
            // Release: the next sender writes where we have read.
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

    /// Frees a chunk. Messages in it are forgotten.
    ///
    /// # Safety
    ///
    /// Nobody can come across it.
    pub(super) unsafe fn free(&self, chunk: *mut Chunk<T>) {
        self.allocated.fetch_sub(1, Ordering::Relaxed);
        #[cfg(any(threadtoll_loom, threadtoll_shuttle))]
        // SAFETY: not freed yet.
        unsafe { &*chunk }.touch();
        // SAFETY: made by `boxed`, and the caller gives it up.
        unsafe { free_boxed(chunk) };
    }
}

/// Notes that everybody who may still come across this chunk has a ticket below the tail as it is
/// now. `latest` must have moved past it.
fn note_cutoff<T>(chunk: &Chunk<T>, tail: &AtomicU64) -> u64 {
    // A read-modify-write, so that it has a place among the draws: a sender that draws after it
    // sees the pointer that we saw moved.
    let cutoff = super::shared::ticket(tail.fetch_add(0, mutate!(note_cutoff, AcqRel)));
    chunk.cutoff.store(cutoff, Ordering::Relaxed);
    cutoff
}

/// Where the receiver is, and the chunks that it has read but not given back.
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

    /// Goes on at this ticket, in a chunk in which nothing lies yet.
    #[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
    pub(super) fn begin_at(&mut self, ticket: u64) {
        self.head = ticket;
        // SAFETY: the receiver's chunk.
        unsafe { &*self.chunk }.reuse_as(Chunk::<T>::number_of(ticket), std::ptr::null_mut());
    }

    /// A reader that has been taken away.
    pub(super) fn detached() -> Self {
        Reader { head: 0, chunk: std::ptr::null_mut(), retired: std::collections::VecDeque::new() }
    }

    /// What is there for the next ticket. Slots that were given up are passed over.
    #[inline(always)]
    pub(super) fn poll(&mut self, chunks: &Chunks<T>, tail: &AtomicU64) -> bool {
        loop {
            // SAFETY: the receiver gives a chunk back only when it has left it.
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

    /// Moves the message out that a look has found.
    #[inline(always)]
    pub(super) fn take(&mut self) -> T {
        // SAFETY: as in `poll`.
        let chunk = unsafe { &*self.chunk };
        // SAFETY: a look has found it, and `head` moves on.
        let message = unsafe { chunk.slot(self.head).take() };
        self.head += 1;
        message
    }

    /// Where the message is that a look has found.
    pub(super) fn message_ptr(&self) -> *const T {
        // SAFETY: as in `poll`.
        unsafe { &*self.chunk }.slot(self.head).message_ptr()
    }

    /// Moves every message out that is there from the next ticket on, up to `end`, also behind
    /// tickets without one, unless its sender has taken it back. Nothing else may be received after
    /// this, and no chunk is given back.
    pub(super) fn claim_all(&self, end: u64, mut body: impl FnMut(T)) {
        let mut at = self.chunk;
        for ticket in self.head..end {
            // SAFETY: the receiver's chunk or one behind it, which it alone gives back.
            let mut chunk = unsafe { &*at };
            if chunk.number.load(Ordering::Relaxed) != Chunk::<T>::number_of(ticket) {
                at = chunk.next.load(Ordering::Acquire);
                if at.is_null() {
                    // No sender has come further, since each links the chunks up to its own.
                    return;
                }
                // SAFETY: as above.
                chunk = unsafe { &*at };
            }
            let slot = chunk.slot(ticket);
            if slot.claim(ticket) {
                // SAFETY: claimed.
                body(unsafe { slot.take() });
            }
        }
    }

    /// Goes to the next chunk, if there is one; gives back those that nobody can come across any
    /// more.
    #[cold]
    fn next_chunk(&mut self, chunks: &Chunks<T>, tail: &AtomicU64) -> bool {
        // SAFETY: as in `poll`.
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
                // Whoever moved `latest` is held up, or nobody has moved it yet. We have seen every
                // message of this chunk, so we may do both; what that sender writes here afterwards
                // it writes before its message is there, below our cutoff.
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
            // SAFETY: everybody who could come across it has a ticket below the cutoff, and we have
            // received those messages.
            unsafe { chunks.give(oldest) };
        }
        true
    }

    /// Bytes of chunks that were read and cannot be given back yet.
    pub(super) fn pinned_bytes(&self) -> usize {
        self.retired.len() * Chunk::<T>::bytes()
    }

    /// Frees every chunk. Both sides are gone.
    pub(super) fn free(self, chunks: &Chunks<T>) {
        for chunk in self.retired {
            // SAFETY: nobody is left.
            unsafe { chunks.free(chunk) };
        }
        let mut at = self.chunk;
        while !at.is_null() {
            // SAFETY: linked, so alive.
            let next = unsafe { &*at }.next.load(Ordering::Relaxed);
            // SAFETY: nobody is left.
            unsafe { chunks.free(at) };
            at = next;
        }
        for place in &chunks.free_list {
            // Acquire: as in `take`.
            let spare = place.swap(std::ptr::null_mut(), Ordering::Acquire);
            if !spare.is_null() {
                // SAFETY: nobody is left.
                unsafe { chunks.free(spare) };
            }
        }
    }
}
