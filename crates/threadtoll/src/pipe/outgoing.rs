//! Where the sender is in a pipe's memory, what room it has there, and where it goes for more.
//!
//! Every send needs a [`Writing`], which is copied in and out of slow paths and never lent, so that
//! a loop around `send` keeps it in registers. The rest is in [`Outgoing`].

use super::memory::{Base, Frame, Geometry, JUMP, Memory, ONE, Place, RETIRED};
use super::segment::{NO_LIMIT, Ring, Segment};
use super::shared::{ALIVE, MAX_BEHIND, ONE_LEASE, RECEIVER_GONE, SENDER, Shared, UNSENT};
use crate::sync::{Instant, Ordering, mutate};
use crate::wait::{Certainty, Until, Wait, Waited, wait};

/// Looks at `room`, no more than one for each message that the pipe holds, of a sender that finds
/// none, before it looks at `taken`: the receiver writes that with each message, and is slowed down
/// by being looked at.
const PATIENT_LOOKS: u64 = 64;

/// Why there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRoom {
    Full,
    Disconnected,
}

/// Where the sender is.
pub(super) struct Writing<T> {
    /// Where messages lie, by number.
    base: Base<T>,
    /// Number of messages sent in all, and so that of the next one. All that changes with each
    /// message: what else there is to know follows from it.
    sent: u64,
    /// Number of the message before which the room ends that lies side by side.
    until: u64,
    /// Messages for which the open frame has room behind those, but the pipe has not.
    beyond: usize,
    /// The frame that is open.
    pub(super) frame: Frame<T>,
}

impl<T> Clone for Writing<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Writing<T> {}

impl<T> Writing<T> {
    /// In an empty frame, without room.
    pub(super) fn new(frame: Frame<T>, sent: u64) -> Self {
        let base = frame.place().base(sent);
        Writing { base, sent, until: sent, beyond: Geometry::<T>::PER_FRAME, frame }
    }

    /// Messages that were sent in all.
    #[inline(always)]
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Messages that may be written side by side.
    #[inline(always)]
    pub(super) fn left(&self) -> usize {
        (self.until - self.sent) as usize
    }

    /// The header that publishes all messages written so far.
    #[inline(always)]
    pub(super) fn stamp(&self) -> u64 {
        self.sent * ONE
    }

    /// Where the next message goes.
    #[inline(always)]
    pub(super) fn at(&self) -> Place<T> {
        self.base.at(self.sent)
    }

    /// Sets how many messages may be written.
    fn set_left(&mut self, left: usize) {
        let rest = self.rest();
        debug_assert!(left <= rest);
        self.until = self.sent + left as u64;
        self.beyond = rest - left;
    }

    /// Messages for which the open frame has room.
    fn rest(&self) -> usize {
        self.left() + self.beyond
    }

    /// Returns `true` if the open frame is empty.
    pub(super) fn at_start(&self) -> bool {
        self.rest() == Geometry::<T>::PER_FRAME
    }

    /// Makes written messages visible to the receiver. Returns the number of messages sent in all,
    /// to which the caller advances.
    #[inline(always)]
    #[must_use]
    pub(super) fn publish(&self, messages: usize) -> u64 {
        debug_assert!(messages <= self.left());
        let sent = self.sent + messages as u64;
        // Release: the partner of the acquire in the receiver's look. Without it the receiver might
        // read before we have written.
        // SAFETY: the open frame begins here.
        unsafe { self.frame.store(sent * ONE, mutate!(publish, Release)) };
        sent
    }

    /// Counts what was published.
    #[inline(always)]
    pub(super) fn go_to(&mut self, sent: u64) {
        self.sent = sent;
    }

    /// Lets nothing be sent past `make_room`.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub(super) fn withhold(&mut self) {
        self.set_left(0);
    }

    /// Undoes the last send. The receiver reads no more.
    pub(super) fn take_back(&mut self) -> T {
        self.sent -= 1;
        // SAFETY: the open frame begins here.
        unsafe { self.frame.store(self.stamp(), Ordering::Relaxed) };
        // SAFETY: written by us, in this frame, and the header no longer counts it.
        unsafe { self.at().read() }
    }
}

/// State of the sender that only slow paths need, in addition to its [`Writing`].
pub(super) struct Outgoing<T> {
    segment: *mut Segment<T>,
    memory: Memory<T>,
    /// The frame to which no ordinary step leads: a ring begins anew there, and a chunk ends.
    end: Frame<T>,
    /// Messages up to which a step needs no further look. 0 while memory must be cleared, or the
    /// open frame has room that the pipe has not.
    fast_limit: u64,
    /// Messages up to which the receiver finds the open frame without being told again.
    told: u64,
    /// Messages that may be sent in all.
    limit: u64,
    /// Messages that the receiver is known to have taken.
    seen: u64,
    /// Units ahead of the open frame, those of the frame behind it not counted, in which something
    /// may lie that looks like a header.
    dirty: usize,
    /// True if a claim has lent room that covers the header of the frame behind.
    lent: bool,
    /// Number of times that room was asked for; counted up to two.
    leases: u8,
    /// The ring that is in use, or will be again.
    ring: *mut Segment<T>,
    size: Ring,
    /// Where sending goes on in the ring, if it goes on elsewhere…
    ring_unit: usize,
    /// …and what was sent when it was left.
    ring_left: u64,
    /// Chunks taken from the spares.
    spares: *mut Segment<T>,
}

impl<T> Outgoing<T> {
    /// At the beginning of a ring. The headers of its first two frames are cleared.
    pub(super) fn new(
        segment: *mut Segment<T>,
        memory: Memory<T>,
        size: Ring,
        capacity: u64,
    ) -> Self {
        let first = memory.frame(0);
        // SAFETY: a ring has more than two frames, and nobody else knows of this one.
        mutate!(clear_first, unsafe { first.store(0, Ordering::Relaxed) } => ());
        // SAFETY: as above.
        let second = unsafe { first.next() };
        // SAFETY: as above.
        mutate!(clear_second, unsafe { second.store(0, Ordering::Relaxed) } => ());
        let mut outgoing = Outgoing {
            segment,
            memory,
            end: memory.frame(size.units),
            fast_limit: 0,
            told: 0,
            limit: size.holds.min(capacity),
            seen: 0,
            dirty: 0,
            lent: false,
            leases: 0,
            ring: segment,
            size,
            ring_unit: 0,
            ring_left: 0,
            spares: std::ptr::null_mut(),
        };
        outgoing.soil(size.units.saturating_sub(2 * Geometry::<T>::FRAME));
        outgoing
    }

    /// Opens the next frame if that is not out of the ordinary: what nearly every send that has
    /// filled a line needs. Otherwise [`Outgoing::make_room`] finds out.
    ///
    /// Stores nothing that is shared: a CPU's stores become visible in order, so a store to any
    /// line waits for earlier ones to lines that the other CPU still owns.
    #[inline(always)]
    pub(super) fn step(&self, writing: Writing<T>) -> Option<Writing<T>> {
        debug_assert_eq!(writing.left(), 0);
        let full = writing.until + Geometry::<T>::PER_FRAME as u64;
        (full <= self.fast_limit).then(|| {
            debug_assert_eq!(writing.beyond, 0);
            // SAFETY: there is another frame before the end of the memory, says the limit.
            let frame = unsafe { writing.frame.next() };
            Writing { until: full, beyond: 0, ..Writing::new(frame, writing.until) }
        })
    }

    /// Finds room for a message, waits for it, or goes where there is some.
    pub(super) fn make_room<W: Wait>(
        &mut self,
        shared: &Shared<T>,
        writing: &mut Writing<T>,
        until: Until,
    ) -> Result<(), NoRoom> {
        let state = self.lease(shared);
        if state & ALIVE == 0 || state & RECEIVER_GONE != 0 {
            return Err(NoRoom::Disconnected);
        }
        self.reclaim(*writing);
        let unbounded = !shared.measures.is_bounded();
        loop {
            if self.has_room(writing) {
                if writing.rest() > 0 || self.open_behind(shared, writing, Geometry::<T>::FRAME) {
                    self.allow(writing);
                    return Ok(());
                }
                // The end of a chunk.
                self.refresh(shared, true);
                self.leave_chunk(shared, writing);
                continue;
            }
            self.refresh(shared, false);
            let may_grow = self.size != shared.measures.largest
                && self.under_way(writing) < shared.measures.capacity;
            if !self.has_room(writing) && (unbounded || may_grow || matches!(until, Until::Now)) {
                self.refresh(shared, true);
            }
            if self.has_room(writing) {
                continue;
            }
            if may_grow {
                self.grow(shared, writing);
            } else if unbounded {
                self.leave_ring_for_chunk(shared, writing);
            } else if let Until::Deadline(deadline) = until {
                self.wait_for_room::<W>(shared, writing, deadline)?;
            } else {
                return Err(NoRoom::Full);
            }
        }
    }

    fn wait_for_room<W: Wait>(
        &mut self,
        shared: &Shared<T>,
        writing: &Writing<T>,
        deadline: Option<Instant>,
    ) -> Result<(), NoRoom> {
        let mut looks = 0u64;
        let patient = shared.measures.capacity.min(PATIENT_LOOKS);
        let announce = |state| shared.announce(state);
        let waited = wait::<W, _>(shared.sleeper(SENDER, 0), deadline, announce, |certainty| {
            looks = looks.saturating_add(1);
            self.refresh(shared, certainty == Certainty::Certain || looks > patient);
            let state = shared.state.load(Ordering::Acquire);
            if mutate!(see_receiver_gone, state & RECEIVER_GONE != 0 => false) {
                return Some(Err(NoRoom::Disconnected));
            }
            self.has_room(writing).then_some(Ok(()))
        });
        match waited {
            Waited::Found(found) => found,
            Waited::Late => Err(NoRoom::Full),
            Waited::Forked => Err(NoRoom::Disconnected),
        }
    }

    /// Announces that something may be sent, so that a receiver that leaves or sleeps before the
    /// first send needs no barrier: see `Shared::is_idle`. Returns the state.
    fn lease(&mut self, shared: &Shared<T>) -> u32 {
        let bit = match self.leases {
            0 => UNSENT,
            1 => ONE_LEASE,
            _ => return shared.state.load(Ordering::Relaxed),
        };
        self.leases += 1;
        // AcqRel: a receiver that left or announced its sleep before this is seen by this; one that
        // does so later sees that there may be messages.
        mutate!(lease, shared.state.fetch_and(!bit, Ordering::AcqRel) => shared.state.load(Ordering::Relaxed))
    }

    /// Messages that were sent and are not known to have been taken.
    fn under_way(&self, writing: &Writing<T>) -> u64 {
        writing.sent() - self.seen
    }

    #[inline(always)]
    fn has_room(&self, writing: &Writing<T>) -> bool {
        writing.sent() < self.limit
    }

    /// Finds out what the receiver has taken. Where that may be a little old, nothing more is taken
    /// from its cache.
    fn refresh(&mut self, shared: &Shared<T>, certain: bool) {
        // Acquire: what the receiver has read may be written.
        let taken = if certain {
            shared.taken.load(mutate!(see_taken, Acquire))
        } else {
            shared.room.load(Ordering::Acquire)
        };
        self.seen = self.seen.max(taken);
        self.set_limit(shared);
    }

    fn set_limit(&mut self, shared: &Shared<T>) {
        // SAFETY: the segment that we are in is alive: the receiver has not been told to leave it.
        let is_ring = unsafe { &*self.segment }.is_ring;
        let holds = if is_ring { self.size.holds.min(shared.measures.capacity) } else { NO_LIMIT };
        self.limit = self.seen + holds;
    }

    /// Sets up to where frames are opened by [`Outgoing::step`].
    fn set_fast_limit(&mut self, writing: &Writing<T>) {
        let is_ordinary = self.dirty == 0 && !self.lent && writing.beyond == 0;
        self.fast_limit = if is_ordinary { self.told.min(self.limit) } else { 0 };
    }

    /// Something that looks like a header may lie in this many units.
    fn soil(&mut self, units: usize) {
        self.dirty = self.dirty.max(units);
        self.fast_limit = 0;
    }

    /// As [`Outgoing::soil`], for a whole round of the ring, or all of a chunk.
    fn soil_lap(&mut self) {
        // SAFETY: as in `set_limit`.
        let units = unsafe { &*self.segment }.units;
        self.soil(units);
    }

    /// Lends room that reaches over the header of the frame behind the open one.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub(super) fn lend(&mut self) {
        self.lent = true;
        self.soil_lap();
    }

    /// The room that was lent has become a long record.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub(super) fn accept(&mut self) {
        self.lent = false;
    }

    /// Moves messages that lie in the open record to the beginning of the frame that many units
    /// behind it.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub(super) fn move_to_frame(
        &self,
        writing: &Writing<T>,
        from: Place<T>,
        units: usize,
        count: usize,
    ) {
        let to = self.memory.frame(self.memory.unit(writing.frame) + units).place();
        // SAFETY: both lie inside the room that was claimed, and may overlap; the messages were
        // written.
        unsafe { std::ptr::copy(from.as_ptr(), to.as_ptr(), count) };
    }

    /// Makes good what a claim may have written over.
    pub(super) fn reclaim(&mut self, writing: Writing<T>) {
        if std::mem::take(&mut self.lent) {
            self.clear_behind(writing.frame, Geometry::<T>::FRAME);
        }
    }

    /// Sets how many messages may be written in the open frame.
    pub(super) fn allow(&mut self, writing: &mut Writing<T>) {
        let room = usize::try_from(self.room(writing)).unwrap_or(usize::MAX);
        writing.set_left(writing.rest().min(room));
        self.set_fast_limit(writing);
    }

    /// Messages that may be sent.
    #[inline(always)]
    pub(super) fn room(&self, writing: &Writing<T>) -> u64 {
        self.limit - writing.sent()
    }

    /// Clears the header of the frame that comes so many units behind this one, unless that is the
    /// end of a chunk.
    fn clear_behind(&self, frame: Frame<T>, units: usize) {
        if let Some(behind) = self.behind(frame, units) {
            // SAFETY: free memory in which a record will begin; the receiver looks there only when
            // the record before it is complete.
            unsafe { behind.store(0, Ordering::Relaxed) };
        }
    }

    /// The frame that comes so many units behind this one; `None` at the end of a chunk.
    fn behind(&self, frame: Frame<T>, units: usize) -> Option<Frame<T>> {
        // SAFETY: as in `set_limit`.
        let Segment { units: all, is_ring, .. } = unsafe { &*self.segment };
        let unit = self.memory.unit(frame) + units;
        if unit > *all {
            return None;
        }
        Some(self.memory.frame(if unit == *all && *is_ring { 0 } else { unit }))
    }

    /// Opens the frame that comes so many units behind the open one. False if a chunk ends there.
    fn open_behind(&mut self, shared: &Shared<T>, writing: &mut Writing<T>, units: usize) -> bool {
        let Some(next) = self.behind(writing.frame, units) else { return false };
        self.open(shared, writing, next);
        // SAFETY: as in `set_limit`.
        let is_end = !unsafe { &*self.segment }.is_ring && next == self.end;
        if is_end {
            // Nothing but a jump may lie here.
            writing.beyond = 0;
        }
        !is_end
    }

    /// Goes on with an empty frame, whose header is no news.
    fn open(&mut self, shared: &Shared<T>, writing: &mut Writing<T>, frame: Frame<T>) {
        if self.dirty > 0 {
            mutate!(clear_behind, self.clear_behind(frame, Geometry::<T>::FRAME) => ());
            self.dirty = self.dirty.saturating_sub(Geometry::<T>::FRAME);
        }
        let behind = self.memory.unit(self.end) - self.memory.unit(frame);
        // None at the end of a chunk, where no messages lie either.
        let frames = (behind / Geometry::<T>::FRAME).min(1 + MAX_BEHIND);
        shared.open(frame, writing.stamp(), frames.saturating_sub(1));
        self.told = writing.sent + (frames * Geometry::<T>::PER_FRAME) as u64;
        *writing = Writing::new(frame, writing.sent);
    }

    /// Messages of a long record for so many at most, and its units; `None` if they go into frames.
    ///
    /// A long record begins where a frame does, and never takes more units than its messages would
    /// in full frames: that is what the ring has room for.
    pub(super) fn long_record(
        &self,
        writing: &Writing<T>,
        messages: usize,
    ) -> Option<(usize, usize)> {
        let room = usize::try_from(self.room(writing)).unwrap_or(usize::MAX);
        let messages = messages.min(room);
        if !Geometry::<T>::DENSE || messages < Geometry::<T>::fits(2) || !writing.at_start() {
            return None;
        }
        // SAFETY: as in `set_limit`.
        let all = unsafe { &*self.segment }.units;
        let most = self.size.longest.min(all - self.memory.unit(writing.frame));
        let count = messages.min(Geometry::<T>::fits(most));
        let units = Geometry::<T>::units(count);
        if units * Geometry::<T>::PER_FRAME <= count {
            return Some((count, units));
        }
        // The last line would be too empty: one less, filled to its end.
        (units > 2).then(|| (Geometry::<T>::fits(units - 1), units - 1))
    }

    /// Publishes a record of so many messages and units that were written at the open frame, and
    /// opens the frame behind it.
    pub(super) fn publish_long_record(
        &mut self,
        shared: &Shared<T>,
        writing: &mut Writing<T>,
        messages: usize,
        units: usize,
    ) {
        let record = writing.frame;
        mutate!(clear_behind_long_record, self.clear_behind(record, units) => ());
        writing.sent += messages as u64;
        writing.until = writing.sent;
        // Release: as in `publish`; and the header behind it, cleared before, is seen so.
        // SAFETY: the open frame begins here.
        unsafe { record.store(writing.stamp(), mutate!(publish_record, Release)) };
        self.soil_lap();
        if self.open_behind(shared, writing, units) && self.has_room(writing) {
            self.allow(writing);
        }
    }

    /// The frame in which a jump, or the end of the pipe, can be told: the open one, unless it is
    /// full.
    pub(super) fn open_for_flags(&mut self, shared: &Shared<T>, writing: &mut Writing<T>) {
        self.reclaim(*writing);
        if writing.rest() == 0 {
            // Nothing is behind the end of a chunk, where flags may lie.
            self.open_behind(shared, writing, Geometry::<T>::FRAME);
        }
    }

    /// Goes on in a larger ring; the receiver gives this one back.
    #[cold]
    fn grow(&mut self, shared: &Shared<T>, writing: &mut Writing<T>) {
        let size = shared.measures.next::<T>(self.size.units);
        // First: this panics where so much memory cannot be addressed.
        self.ring = Segment::ring(size.units);
        self.size = size;
        shared.ring_units.store(self.size.units, Ordering::Relaxed);
        self.go(shared, writing, self.ring, 0, JUMP | RETIRED);
    }

    /// Goes on in a chunk. The ring will be used again.
    #[cold]
    fn leave_ring_for_chunk(&mut self, shared: &Shared<T>, writing: &mut Writing<T>) {
        self.open_for_flags(shared, writing);
        self.ring_left = writing.sent();
        let behind = self.behind(writing.frame, Geometry::<T>::FRAME);
        self.ring_unit = behind.map_or(0, |frame| self.memory.unit(frame));
        let chunk = shared.spares.take(&mut self.spares);
        self.go(shared, writing, chunk, 0, JUMP);
    }

    /// A chunk is full: goes on in the ring if the receiver has left it and is near, in another
    /// chunk otherwise.
    #[cold]
    fn leave_chunk(&mut self, shared: &Shared<T>, writing: &mut Writing<T>) {
        // The receiver has taken a message from behind the ring, so it has read the jump out of it.
        let ring_is_free = self.seen > self.ring_left;
        let is_near = self.under_way(writing) <= self.size.holds / 2;
        if mutate!(go_home, ring_is_free && is_near => true) {
            self.go(shared, writing, self.ring, self.ring_unit, JUMP);
        } else {
            let chunk = shared.spares.take(&mut self.spares);
            self.go(shared, writing, chunk, 0, JUMP);
        }
    }

    /// Goes on at a unit of another segment.
    fn go(
        &mut self,
        shared: &Shared<T>,
        writing: &mut Writing<T>,
        next: *mut Segment<T>,
        unit: usize,
        flags: u64,
    ) {
        self.open_for_flags(shared, writing);
        let left = writing.frame;
        // SAFETY: as in `set_limit`.
        let leaving = unsafe { &*self.segment };
        leaving.next.store(next, Ordering::Relaxed);
        leaving.dirty.store(self.dirty, Ordering::Relaxed);
        // SAFETY: a segment that was just made or taken, or the ring, which is ours again.
        let Segment { memory, units, dirty, .. } = unsafe { &*next };
        self.segment = next;
        self.memory = *memory;
        self.end = memory.frame(*units);
        self.dirty = 0;
        if mutate!(is_dirty, dirty.load(Ordering::Relaxed) > 0 => false) {
            self.soil_lap();
        }
        let frame = memory.frame(unit);
        mutate!(clear_in_segment, self.open(shared, writing, frame) => {
            self.open(shared, writing, frame);
            // SAFETY: the open frame begins here.
            unsafe { frame.store(1 << 40, Ordering::Relaxed) };
        });
        self.set_limit(shared);
        // Last: once the receiver has seen this it may give the segment back.
        // Release: the next segment is ready.
        // SAFETY: alive until the receiver sees the jump.
        unsafe { left.store(writing.stamp() | flags, mutate!(publish_jump, Release)) };
    }

    /// Frees the ring and the chunks that were not used. Both ends are gone.
    pub(super) fn free(&mut self, shared: &Shared<T>) {
        shared.spares.free_all(std::mem::replace(&mut self.spares, std::ptr::null_mut()));
        // SAFETY: both ends are gone, and the receiver frees no ring that the sender has not
        // retired.
        unsafe { Segment::free(self.ring) };
    }
}

#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
impl<T> Outgoing<T> {
    /// Goes on as if so many messages had been sent and received.
    pub(super) fn begin_at(&mut self, shared: &Shared<T>, writing: &mut Writing<T>, count: u64) {
        let (at, left) = (writing.at(), writing.left() as u64);
        *writing = Writing { base: at.base(count), sent: count, until: count + left, ..*writing };
        self.seen = count;
        shared.room.store(count, Ordering::Relaxed);
        shared.open(writing.frame, writing.stamp(), 0);
        self.set_limit(shared);
        self.fast_limit = 0;
    }
}
