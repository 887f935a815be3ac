//! The memory of a funnel: numbered chunks of slots, linked in both directions.
//!
//! The high part of a ticket is the number of its chunk, the low part the index of its slot in the
//! chunk. A slot holds a message and a *stamp*, which is derived from the ticket, so that a chunk
//! can be reused without being cleared.

use std::mem::MaybeUninit;

use crate::sync::{AtomicPtr, AtomicU64, Ordering, UnsafeCell, boxed, mutate, prefetch_to_write};

/// Number of slots in a chunk: a power of two.
pub(super) const fn slots<T>() -> usize {
    if cfg!(any(threadtoll_loom, threadtoll_shuttle)) {
        return 2;
    }
    let fit = CHUNK_BYTES / size_of::<Slot<T>>();
    if fit < 32 { 32 } else { 1 << fit.ilog2() }
}

/// Total size in bytes of a chunk's slots, if messages are small. Steady traffic uses two or three
/// chunks, which fit into the first-level cache.
const CHUNK_BYTES: usize = 16 << 10;

/// Distance, in cache lines, between two lines that are used one after the other. It is odd, so
/// that all lines are used, and more than 2 KiB, too far for hardware prefetchers. If the
/// receiver's CPU prefetched a line, it would take the line from the sender that is about to write
/// to it. The sender would then wait for the line, because drawing a ticket waits for all earlier
/// stores.
const STRIDE: usize = 37;
/// Distance, in bytes of slots, from a sender's own slot to the later slot whose cache lines it
/// prefetches. Slots larger than this are not prefetched, because the CPU's own prefetcher follows
/// their lines.
const AHEAD_BYTES: usize = 1 << 10;

/// Set in the stamp of a ticket that has no message.
const VOID: u64 = 1;

/// Room for a message, and the stamp that says that the message is there.
pub(super) struct Slot<T> {
    stamp: AtomicU64,
    message: UnsafeCell<MaybeUninit<T>>,
}

/// Contents of a slot, for a given ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
    Empty,
    Message,
    Void,
}

impl<T> Slot<T> {
    /// Slots that have never been used. They are not created on the stack, because a slot may be
    /// too large for it.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    fn unused(count: usize) -> Box<[Self]> {
        let slots = Box::new_zeroed_slice(count);
        // SAFETY: zeros are the stamp of no ticket, and an uninitialised message.
        unsafe { slots.assume_init() }
    }

    /// Creates the slots one by one, because the model checker's types cannot be zeroed.
    #[cfg(any(threadtoll_loom, threadtoll_shuttle))]
    fn unused(count: usize) -> Box<[Self]> {
        let slot =
            |_| Slot { stamp: AtomicU64::new(0), message: UnsafeCell::new(MaybeUninit::uninit()) };
        (0..count).map(slot).collect()
    }

    fn stamp(ticket: u64) -> u64 {
        (ticket + 1) << 1
    }

    /// Stores a message.
    ///
    /// # Safety
    ///
    /// The caller must have drawn this slot's ticket, and not have used it.
    #[inline(always)]
    pub(super) unsafe fn put(&self, ticket: u64, message: T) {
        self.message.with_mut(|place| {
            // SAFETY: the ticket is the caller's alone, and the receiver has taken the message of
            // the slot's older ticket.
            let place = unsafe { &mut *place };
            place.write(message);
        });
        // Release: pairs with the acquire in `state`, so that the receiver sees the message.
        self.stamp.store(Self::stamp(ticket), mutate!(stamp, Release));
    }

    /// Marks the ticket as one without a message.
    pub(super) fn void(&self, ticket: u64) {
        self.stamp.store(Self::stamp(ticket) | VOID, Ordering::Release);
    }

    #[inline(always)]
    pub(super) fn state(&self, ticket: u64) -> SlotState {
        let stamp = self.stamp.load(mutate!(see_stamp, Acquire));
        if stamp == Self::stamp(ticket) {
            SlotState::Message
        } else if stamp == Self::stamp(ticket) | VOID {
            SlotState::Void
        } else {
            SlotState::Empty
        }
    }

    /// Voids the ticket if its message is in this slot. Returns `true` in that case; the message
    /// then belongs to the caller.
    pub(super) fn claim(&self, ticket: u64) -> bool {
        let stamp = Self::stamp(ticket);
        // Acquire: pairs with the release in `put`.
        let order = mutate!(see_stamp_in_claim, Acquire);
        let claimed = self.stamp.compare_exchange(stamp, stamp | VOID, order, Ordering::Relaxed);
        mutate!(claim_once, claimed.is_ok() => self.state(ticket) != SlotState::Empty)
    }

    /// Moves the message out.
    ///
    /// # Safety
    /// The caller must be the receiver and have seen the message, or have claimed it, and must move
    /// it out only once.
    #[inline(always)]
    pub(super) unsafe fn take(&self) -> T {
        self.message.with_mut(|place| {
            // SAFETY: the next sender writes here only after we have taken the message.
            let place = unsafe { &*place };
            // SAFETY: the stamp said that the message was written.
            unsafe { place.assume_init_read() }
        })
    }

    pub(super) fn message_ptr(&self) -> *const T {
        self.message.with_mut(|place| place.cast_const().cast())
    }
}

pub(super) struct Chunk<T> {
    /// The number of the chunk, which is the high part of its tickets.
    pub(super) number: AtomicU64,
    /// The previous chunk. May dangle: that chunk is alive only as long as some of its messages
    /// have not been received.
    pub(super) prev: AtomicPtr<Chunk<T>>,
    /// The next chunk; null until it is linked.
    pub(super) next: AtomicPtr<Chunk<T>>,
    /// If not 0: every sender that can still reach this chunk has a ticket below this number.
    pub(super) cutoff: AtomicU64,
    /// Index of the first slot that starts a cache line.
    first_slot: usize,
    slots: Box<[Slot<T>]>,
}

impl<T> Chunk<T> {
    pub(super) const SLOTS: usize = slots::<T>();
    const SHIFT: u32 = Self::SLOTS.ilog2();

    pub(super) fn boxed(number: u64) -> *mut Self {
        // A few slots are spare, so that the first one in use can start a cache line.
        let slots = Slot::<T>::unused(Self::SLOTS + Self::PER_LINE - 1);
        boxed(Chunk {
            number: AtomicU64::new(number),
            prev: AtomicPtr::new(std::ptr::null_mut()),
            next: AtomicPtr::new(std::ptr::null_mut()),
            cutoff: AtomicU64::new(0),
            first_slot: slots.as_ptr().align_offset(64).checked_rem(Self::PER_LINE).unwrap_or(0),
            slots,
        })
    }

    /// Accesses each slot, so that a model checker detects a thread that still uses one.
    #[cfg(any(threadtoll_loom, threadtoll_shuttle))]
    pub(super) fn touch(&self) {
        self.slots.iter().for_each(|slot| slot.message.with_mut(drop));
    }

    /// Turns an unused chunk into the one with this number.
    pub(super) fn reuse_as(&self, number: u64, prev: *mut Self) {
        // Relaxed: linking the chunk publishes this with release.
        self.number.store(number, Ordering::Relaxed);
        self.prev.store(prev, Ordering::Relaxed);
        self.next.store(std::ptr::null_mut(), Ordering::Relaxed);
        self.cutoff.store(0, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(super) fn number_of(ticket: u64) -> u64 {
        ticket >> Self::SHIFT
    }

    #[inline(always)]
    pub(super) fn index_of(ticket: u64) -> usize {
        (ticket & (Self::SLOTS as u64 - 1)) as usize
    }

    /// Number of slots in a cache line.
    const PER_LINE: usize = if size_of::<Slot<T>>() <= 32 && size_of::<Slot<T>>().is_power_of_two()
    {
        64 / size_of::<Slot<T>>()
    } else {
        1
    };

    /// Returns `true` if a ticket's slot is the first one in its cache line.
    #[inline(always)]
    pub(super) fn begins_line(ticket: u64) -> bool {
        ticket.is_multiple_of(Self::PER_LINE as u64)
    }

    /// The position in memory of the slot with this index.
    #[inline(always)]
    const fn position_of(index: usize) -> usize {
        let lines = Self::SLOTS / Self::PER_LINE;
        let (line, within) = (index / Self::PER_LINE, index % Self::PER_LINE);
        line * STRIDE % lines * Self::PER_LINE + within
    }

    #[inline(always)]
    pub(super) fn slot(&self, ticket: u64) -> &Slot<T> {
        debug_assert_eq!(self.number.load(Ordering::Relaxed), Self::number_of(ticket));
        let place = self.first_slot + Self::position_of(Self::index_of(ticket));
        // SAFETY: there are `SLOTS` slots from `first_slot` on; `index_of` is below `SLOTS`, and
        // `position_of` permutes the indices.
        unsafe { self.slots.get_unchecked(place) }
    }

    /// Distance in slots from a sender's own slot to the one that it prefetches.
    const AHEAD: usize = {
        let slots = AHEAD_BYTES.div_ceil(size_of::<Slot<T>>());
        if slots < Self::SLOTS { slots } else { Self::SLOTS }
    };
    /// Number of cache lines that a sender prefetches: those of one slot, or 0 if slots are too
    /// large.
    const AHEAD_LINES: usize =
        if size_of::<Slot<T>>() > AHEAD_BYTES { 0 } else { size_of::<Slot<T>>().div_ceil(64) };

    /// Prefetches the slot that is `AHEAD` slots after the ticket's, in this chunk or the next one.
    ///
    /// # Safety
    ///
    /// The caller must have drawn the ticket, which must belong to this chunk, and not have used
    /// it. The next chunk is then alive.
    #[inline(always)]
    pub(super) unsafe fn prefetch_ahead(&self, ticket: u64) {
        if cfg!(any(threadtoll_loom, threadtoll_shuttle)) {
            // A model has nothing to prefetch, and loading `next` could hide a missing ordering
            // from it.
            return;
        }
        let mut chunk = self;
        let mut index = Self::index_of(ticket) + Self::AHEAD;
        if index >= Self::SLOTS {
            // Acquire: everything written to the chunk before it was linked is visible.
            let next = self.next.load(Ordering::Acquire);
            if next.is_null() {
                return;
            }
            // SAFETY: the caller's promise.
            chunk = unsafe { &*next };
            index -= Self::SLOTS;
        }
        let slot = &raw const chunk.slots[chunk.first_slot + Self::position_of(index)];
        for line in 0..Self::AHEAD_LINES {
            prefetch_to_write(slot.cast::<[u8; 64]>().wrapping_add(line));
        }
    }

    pub(super) fn bytes() -> usize {
        size_of::<Self>() + Self::SLOTS * size_of::<Slot<T>>()
    }
}
