//! Where a funnel's messages lie: numbered chunks of slots, linked in both directions.
//!
//! A ticket tells everything: its high part is the number of a chunk, its low part the slot in it.
//! A slot holds a message and a *stamp*, which is derived from the ticket, so that a chunk can be
//! used again without being cleared.

use std::mem::MaybeUninit;

use crate::sync::{AtomicPtr, AtomicU64, Ordering, UnsafeCell, boxed, mutate, prefetch_to_write};

/// Slots of a chunk: a power of two.
pub(super) const fn slots<T>() -> usize {
    if cfg!(any(threadtoll_loom, threadtoll_shuttle)) {
        return 2;
    }
    let fit = CHUNK_BYTES / size_of::<Slot<T>>();
    if fit < 32 { 32 } else { 1 << fit.ilog2() }
}

/// Bytes of the slots of a chunk of small messages: two or three of them, which is what steady
/// traffic goes through, fit into the first-level cache.
const CHUNK_BYTES: usize = 16 << 10;

/// Lines from one to the next in time: odd, so that all are visited, and more than 2 KiB, so that
/// no prefetcher foresees it. A line that the receiver's CPU fetches before its time is taken from
/// the sender that is about to write it, and a sender waits for its lines: drawing a ticket waits
/// until everything before it is written.
const STRIDE: usize = 37;

/// Set in a stamp where the sender gave up its ticket.
const VOID: u64 = 1;

/// A message and the word that says it is there.
pub(super) struct Slot<T> {
    stamp: AtomicU64,
    message: UnsafeCell<MaybeUninit<T>>,
}

/// What a slot holds for a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
    Empty,
    Message,
    Void,
}

impl<T> Slot<T> {
    fn new() -> Self {
        Slot { stamp: AtomicU64::new(0), message: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    fn stamp(ticket: u64) -> u64 {
        (ticket + 1) << 1
    }

    /// Moves a message in.
    ///
    /// # Safety
    ///
    /// The caller drew this slot's ticket and has put nothing there yet.
    #[inline(always)]
    pub(super) unsafe fn put(&self, ticket: u64, message: T) {
        self.message.with_mut(|place| {
            // SAFETY: the ticket is the caller's alone, and the receiver has taken what was here
            // under an older one.
            let place = unsafe { &mut *place };
            place.write(message);
        });
        // Release: the partner of the acquire in `state`. Without it the receiver might read before
        // we have written.
        self.stamp.store(Self::stamp(ticket), mutate!(stamp, Release));
    }

    /// Gives a ticket up.
    pub(super) fn void(&self, ticket: u64) {
        self.stamp.store(Self::stamp(ticket) | VOID, Ordering::Release);
    }

    /// What is here for this ticket.
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

    /// Voids the ticket of a message, and tells if it was here: then it is the caller's alone.
    pub(super) fn claim(&self, ticket: u64) -> bool {
        let stamp = Self::stamp(ticket);
        // Acquire: the partner of the release in `put`.
        let order = mutate!(see_stamp_in_claim, Acquire);
        let claimed = self.stamp.compare_exchange(stamp, stamp | VOID, order, Ordering::Relaxed);
        mutate!(claim_once, claimed.is_ok() => self.state(ticket) != SlotState::Empty)
    }

    /// Moves the message out.
    ///
    /// # Safety
    ///
    /// The caller is the receiver and has seen that it is here, or has claimed it, and moves it out
    /// once.
    #[inline(always)]
    pub(super) unsafe fn take(&self) -> T {
        self.message.with_mut(|place| {
            // SAFETY: it was put here, and the next sender comes only after we have taken it.
            let place = unsafe { &*place };
            // SAFETY: the stamp said that it was written.
            unsafe { place.assume_init_read() }
        })
    }

    /// The message itself.
    pub(super) fn message_ptr(&self) -> *const T {
        self.message.with_mut(|place| place.cast_const().cast())
    }
}

/// A chunk.
pub(super) struct Chunk<T> {
    /// Which chunk it is: the high part of its tickets.
    pub(super) number: AtomicU64,
    /// The chunk before; alive only as long as somebody's ticket there is.
    pub(super) prev: AtomicPtr<Chunk<T>>,
    /// The chunk behind; null until somebody links it.
    pub(super) next: AtomicPtr<Chunk<T>>,
    /// Everybody who may still come across this chunk has a ticket below this, once it is not 0.
    pub(super) cutoff: AtomicU64,
    /// The first slot that begins a line.
    first_slot: usize,
    slots: Box<[Slot<T>]>,
}

impl<T> Chunk<T> {
    pub(super) const SLOTS: usize = slots::<T>();
    const SHIFT: u32 = Self::SLOTS.ilog2();

    pub(super) fn boxed(number: u64) -> *mut Self {
        // As many more as it takes to begin at a line.
        let slots: Box<[Slot<T>]> =
            (0..Self::SLOTS + Self::PER_LINE - 1).map(|_| Slot::new()).collect();
        boxed(Chunk {
            number: AtomicU64::new(number),
            prev: AtomicPtr::new(std::ptr::null_mut()),
            next: AtomicPtr::new(std::ptr::null_mut()),
            cutoff: AtomicU64::new(0),
            first_slot: slots.as_ptr().align_offset(64).checked_rem(Self::PER_LINE).unwrap_or(0),
            slots,
        })
    }

    /// Writes to each place, so that a checker sees who might still be there when the chunk is
    /// freed.
    #[cfg(any(threadtoll_loom, threadtoll_shuttle))]
    pub(super) fn touch(&self) {
        self.slots.iter().for_each(|slot| slot.message.with_mut(drop));
    }

    /// Makes a chunk that nobody knows another one.
    pub(super) fn reuse_as(&self, number: u64, prev: *mut Self) {
        // Relaxed: whoever links it publishes this with release.
        self.number.store(number, Ordering::Relaxed);
        self.prev.store(prev, Ordering::Relaxed);
        self.next.store(std::ptr::null_mut(), Ordering::Relaxed);
        self.cutoff.store(0, Ordering::Relaxed);
    }

    /// The number of the chunk in which a ticket's slot is.
    #[inline(always)]
    pub(super) fn number_of(ticket: u64) -> u64 {
        ticket >> Self::SHIFT
    }

    /// Where in its chunk a ticket is.
    #[inline(always)]
    pub(super) fn index_of(ticket: u64) -> usize {
        (ticket & (Self::SLOTS as u64 - 1)) as usize
    }

    /// Slots in a line.
    const PER_LINE: usize = if size_of::<Slot<T>>() <= 32 && size_of::<Slot<T>>().is_power_of_two()
    {
        64 / size_of::<Slot<T>>()
    } else {
        1
    };

    /// Whether a ticket's slot is the first in its line.
    #[inline(always)]
    pub(super) fn begins_line(ticket: u64) -> bool {
        ticket.is_multiple_of(Self::PER_LINE as u64)
    }

    /// Where in the chunk's memory the slot of an index is.
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
        // SAFETY: there are `SLOTS` slots from `first` on; `index_of` gives what is left of a
        // division by that, and `position_of` permutes.
        unsafe { self.slots.get_unchecked(place) }
    }

    /// Asks for the line of the slot that comes so many behind a ticket's, at most a chunk's, in
    /// this chunk or the one behind it if there is one.
    ///
    /// # Safety
    ///
    /// The caller has drawn the ticket, which is one of this chunk, and put nothing there yet: so
    /// the chunk behind is alive.
    #[inline(always)]
    pub(super) unsafe fn prefetch_ahead(&self, ticket: u64, ahead: usize) {
        if cfg!(any(threadtoll_loom, threadtoll_shuttle)) {
            // Nothing is fetched there, and the look at the next chunk must not order what else is
            // not.
            return;
        }
        let mut chunk = self;
        let mut index = Self::index_of(ticket) + ahead;
        if index >= Self::SLOTS {
            // Acquire: what was written into the chunk before it was linked is seen.
            let next = self.next.load(Ordering::Acquire);
            if next.is_null() {
                return;
            }
            // SAFETY: the caller's promise.
            chunk = unsafe { &*next };
            index -= Self::SLOTS;
        }
        prefetch_to_write(&raw const chunk.slots[chunk.first_slot + Self::position_of(index)]);
    }

    pub(super) fn bytes() -> usize {
        size_of::<Self>() + Self::SLOTS * size_of::<Slot<T>>()
    }
}
