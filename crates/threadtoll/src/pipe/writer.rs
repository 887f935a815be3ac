//! Where the sender is in a pipe's memory, what room it has there, and where it goes for more.
//!
//! Every send needs a [`WriteCursor`], which is copied in and out of slow paths and never lent, so
//! that a loop around `send` keeps it in registers. The rest is in [`Writer`].

use super::memory::{BasePtr, FramePtr, Geometry, JUMP, Memory, MessagePtr, ONE, RETIRED};
use super::segment::{NO_LIMIT, RingLayout, Segment};
use super::shared::{
    ALIVE, FIRST_FILL, MAX_BEHIND, NEVER_SENT, RECEIVER_GONE, SENDER, SENDER_SLEEPS, Shared,
    is_legal,
};
use crate::sync::{Instant, Ordering, mutate};
use crate::wait::{Probe, Until, Wait, WaitOutcome, wait};

/// Looks at `room`, no more than one for each message that the pipe holds, of a sender that finds
/// none, before it looks at `taken`: the receiver writes that with each message, and is slowed down
/// by being looked at.
const POLLS_OF_ACKED: u64 = 64;

/// Why there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRoom {
    Full,
    Disconnected,
}

/// Where the sender is.
pub(super) struct WriteCursor<T> {
    /// Where messages lie, by number.
    base: BasePtr<T>,
    /// Number of messages sent in all, and so that of the next one. All that changes with each
    /// message: what else there is to know follows from it.
    sent: u64,
    /// Number of the message before which the room ends that lies side by side.
    slots_end: u64,
    /// Messages for which the open frame has room behind those, but the pipe has not.
    blocked_slots: usize,
    /// The frame that is open.
    pub(super) frame: FramePtr<T>,
}

impl<T> Clone for WriteCursor<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for WriteCursor<T> {}

impl<T> WriteCursor<T> {
    /// In an empty frame, without room.
    pub(super) fn new(frame: FramePtr<T>, sent: u64) -> Self {
        let base = frame.first_message().base(sent);
        WriteCursor { base, sent, slots_end: sent, blocked_slots: Geometry::<T>::PER_FRAME, frame }
    }

    /// Messages that were sent in all.
    #[inline(always)]
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Messages that may be written side by side.
    #[inline(always)]
    pub(super) fn free_slots(&self) -> usize {
        (self.slots_end - self.sent) as usize
    }

    /// The header that publishes all messages written so far.
    #[inline(always)]
    pub(super) fn stamp(&self) -> u64 {
        self.sent * ONE
    }

    /// Where the next message goes.
    #[inline(always)]
    pub(super) fn next_slot(&self) -> MessagePtr<T> {
        self.base.message(self.sent)
    }

    /// Sets how many messages may be written.
    fn set_free_slots(&mut self, left: usize) {
        let frame_slots = self.frame_slots();
        debug_assert!(left <= frame_slots);
        self.slots_end = self.sent + left as u64;
        self.blocked_slots = frame_slots - left;
    }

    /// Messages for which the open frame has room.
    fn frame_slots(&self) -> usize {
        self.free_slots() + self.blocked_slots
    }

    /// Returns `true` if the open frame is empty.
    pub(super) fn is_frame_empty(&self) -> bool {
        self.frame_slots() == Geometry::<T>::PER_FRAME
    }

    /// Makes written messages visible to the receiver. Returns the number of messages sent in all,
    /// to which the caller advances.
    #[inline(always)]
    #[must_use]
    pub(super) fn publish(&self, messages: usize) -> u64 {
        debug_assert!(messages <= self.free_slots());
        let sent = self.sent + messages as u64;
        // Release: the partner of the acquire in the receiver's look. Without it the receiver might
        // read before we have written.
        // SAFETY: the open frame begins here.
        unsafe { self.frame.store(sent * ONE, mutate!(publish, Release)) };
        sent
    }

    /// Counts what was published.
    #[inline(always)]
    pub(super) fn advance_to(&mut self, sent: u64) {
        self.sent = sent;
    }

    /// Lets nothing be sent past `make_room`.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub(super) fn withhold_slots(&mut self) {
        self.set_free_slots(0);
    }

    /// Undoes the last send. The receiver reads no more.
    pub(super) fn take_back(&mut self) -> T {
        self.sent -= 1;
        // SAFETY: the open frame begins here.
        unsafe { self.frame.store(self.stamp(), Ordering::Relaxed) };
        // SAFETY: written by us, in this frame, and the header no longer counts it.
        unsafe { self.next_slot().read() }
    }
}

/// State of the sender that only slow paths need, in addition to its [`WriteCursor`].
pub(super) struct Writer<T> {
    segment: *mut Segment<T>,
    memory: Memory<T>,
    /// The frame to which no ordinary step leads: a ring begins anew there, and a chunk ends.
    end: FramePtr<T>,
    /// Messages up to which a step needs no further look. 0 while memory must be cleared, or the
    /// open frame has room that the pipe has not.
    step_limit: u64,
    /// Messages up to which the receiver finds the open frame without being told again.
    announced_until: u64,
    /// Messages that may be sent in all.
    send_limit: u64,
    /// Messages that the receiver is known to have taken.
    known_taken: u64,
    /// Units ahead of the open frame, those of the frame behind it not counted, in which something
    /// may lie that looks like a header.
    dirty_units: usize,
    /// True if a claim has lent room that covers the header of the frame behind.
    claim_open: bool,
    /// Number of times that room was asked for; counted up to two.
    first_sends: u8,
    /// The ring that is in use, or will be again.
    ring: *mut Segment<T>,
    ring_layout: RingLayout,
    /// Where sending goes on in the ring, if it goes on elsewhere…
    ring_resume: usize,
    /// …and what was sent when it was left.
    ring_left_at: u64,
    /// Chunks taken from the spares.
    free_chunks: *mut Segment<T>,
}

impl<T> Writer<T> {
    /// At the beginning of a ring. The headers of its first two frames are cleared.
    pub(super) fn new(
        segment: *mut Segment<T>,
        memory: Memory<T>,
        ring_layout: RingLayout,
        capacity: u64,
    ) -> Self {
        let first = memory.frame(0);
        // SAFETY: a ring has more than two frames, and nobody else knows of this one.
        mutate!(clear_first, unsafe { first.store(0, Ordering::Relaxed) } => ());
        // SAFETY: as above.
        let second = unsafe { first.next() };
        // SAFETY: as above.
        mutate!(clear_second, unsafe { second.store(0, Ordering::Relaxed) } => ());
        let mut writer = Writer {
            segment,
            memory,
            end: memory.frame(ring_layout.units),
            step_limit: 0,
            announced_until: 0,
            send_limit: ring_layout.slots.min(capacity),
            known_taken: 0,
            dirty_units: 0,
            claim_open: false,
            first_sends: 0,
            ring: segment,
            ring_layout,
            ring_resume: 0,
            ring_left_at: 0,
            free_chunks: std::ptr::null_mut(),
        };
        writer.mark_dirty(ring_layout.units.saturating_sub(2 * Geometry::<T>::FRAME_UNITS));
        writer
    }

    /// Opens the next frame if that is not out of the ordinary: what nearly every send that has
    /// filled a line needs. Otherwise [`Writer::make_room`] finds out.
    ///
    /// Stores nothing that is shared: a CPU's stores become visible in order, so a store to any
    /// line waits for earlier ones to lines that the other CPU still owns.
    #[inline(always)]
    pub(super) fn step(&self, cursor: WriteCursor<T>) -> Option<WriteCursor<T>> {
        debug_assert_eq!(cursor.free_slots(), 0);
        let full = cursor.slots_end + Geometry::<T>::PER_FRAME as u64;
        (full <= self.step_limit).then(|| {
            debug_assert_eq!(cursor.blocked_slots, 0);
            // SAFETY: there is another frame before the end of the memory, says the limit.
            let frame = unsafe { cursor.frame.next() };
            WriteCursor {
                slots_end: full,
                blocked_slots: 0,
                ..WriteCursor::new(frame, cursor.slots_end)
            }
        })
    }

    /// Finds room for a message, waits for it, or goes where there is some.
    pub(super) fn make_room<W: Wait>(
        &mut self,
        shared: &Shared<T>,
        cursor: &mut WriteCursor<T>,
        until: Until,
    ) -> Result<(), NoRoom> {
        let state = self.note_first_sends(shared);
        if state & ALIVE == 0 || state & RECEIVER_GONE != 0 {
            return Err(NoRoom::Disconnected);
        }
        self.undo_claim(*cursor);
        let unbounded = !shared.layout.is_bounded();
        loop {
            if self.has_room(cursor) {
                if cursor.frame_slots() > 0
                    || self.open_frame_after(shared, cursor, Geometry::<T>::FRAME_UNITS)
                {
                    self.grant_slots(cursor);
                    return Ok(());
                }
                // The end of a chunk.
                self.refresh_taken(shared, true);
                self.leave_chunk(shared, cursor);
                continue;
            }
            self.refresh_taken(shared, false);
            let may_grow = self.ring_layout != shared.layout.largest
                && self.in_flight(cursor) < shared.layout.capacity;
            if !self.has_room(cursor) && (unbounded || may_grow || matches!(until, Until::Now)) {
                self.refresh_taken(shared, true);
            }
            if self.has_room(cursor) {
                continue;
            }
            if may_grow {
                self.grow(shared, cursor);
            } else if unbounded {
                self.leave_ring_for_chunk(shared, cursor);
            } else if let Until::Deadline(deadline) = until {
                self.wait_for_room::<W>(shared, cursor, deadline)?;
            } else {
                return Err(NoRoom::Full);
            }
        }
    }

    fn wait_for_room<W: Wait>(
        &mut self,
        shared: &Shared<T>,
        cursor: &WriteCursor<T>,
        deadline: Option<Instant>,
    ) -> Result<(), NoRoom> {
        let mut polls = 0u64;
        let patient = shared.layout.capacity.min(POLLS_OF_ACKED);
        let announce = |state| {
            debug_assert!(is_legal(state | SENDER_SLEEPS));
            shared.announce(state)
        };
        let waited = wait::<W, _>(shared.parker(SENDER, 0), deadline, announce, |probe| {
            polls = polls.saturating_add(1);
            self.refresh_taken(shared, probe == Probe::Fenced || polls > patient);
            let state = shared.state.load(Ordering::Acquire);
            if mutate!(see_receiver_gone, state & RECEIVER_GONE != 0 => false) {
                return Some(Err(NoRoom::Disconnected));
            }
            self.has_room(cursor).then_some(Ok(()))
        });
        match waited {
            WaitOutcome::Found(found) => found,
            WaitOutcome::TimedOut => Err(NoRoom::Full),
            WaitOutcome::Forked => Err(NoRoom::Disconnected),
        }
    }

    /// Announces that something may be sent, so that a receiver that leaves or sleeps before the
    /// first send needs no barrier: see `Shared::no_send_in_flight`. Returns the state.
    fn note_first_sends(&mut self, shared: &Shared<T>) -> u32 {
        let bit = match self.first_sends {
            0 => NEVER_SENT,
            1 => FIRST_FILL,
            _ => return shared.state.load(Ordering::Relaxed),
        };
        self.first_sends += 1;
        // AcqRel: a receiver that left or announced its sleep before this is seen by this; one that
        // does so later sees that there may be messages.
        mutate!(first_sends, shared.state.fetch_and(!bit, Ordering::AcqRel) => shared.state.load(Ordering::Relaxed))
    }

    /// Messages that were sent and are not known to have been taken.
    fn in_flight(&self, cursor: &WriteCursor<T>) -> u64 {
        cursor.sent() - self.known_taken
    }

    #[inline(always)]
    fn has_room(&self, cursor: &WriteCursor<T>) -> bool {
        cursor.sent() < self.send_limit
    }

    /// Finds out what the receiver has taken. Where that may be a little old, nothing more is taken
    /// from its cache.
    fn refresh_taken(&mut self, shared: &Shared<T>, certain: bool) {
        // Acquire: what the receiver has read may be written.
        let taken = if certain {
            shared.taken.load(mutate!(see_taken, Acquire))
        } else {
            shared.acked.load(Ordering::Acquire)
        };
        self.known_taken = self.known_taken.max(taken);
        self.set_send_limit(shared);
    }

    fn set_send_limit(&mut self, shared: &Shared<T>) {
        // SAFETY: the segment that we are in is alive: the receiver has not been told to leave it.
        let is_ring = unsafe { &*self.segment }.is_ring;
        let holds =
            if is_ring { self.ring_layout.slots.min(shared.layout.capacity) } else { NO_LIMIT };
        self.send_limit = self.known_taken + holds;
    }

    /// Sets up to where frames are opened by [`Writer::step`].
    fn set_step_limit(&mut self, cursor: &WriteCursor<T>) {
        let is_ordinary = self.dirty_units == 0 && !self.claim_open && cursor.blocked_slots == 0;
        self.step_limit = if is_ordinary { self.announced_until.min(self.send_limit) } else { 0 };
    }

    /// Something that looks like a header may lie in this many units.
    fn mark_dirty(&mut self, units: usize) {
        self.dirty_units = self.dirty_units.max(units);
        self.step_limit = 0;
    }

    /// As [`Writer::mark_dirty`], for a whole round of the ring, or all of a chunk.
    fn mark_all_dirty(&mut self) {
        // SAFETY: as in `set_send_limit`.
        let units = unsafe { &*self.segment }.units;
        self.mark_dirty(units);
    }

    /// Lends room that reaches over the header of the frame behind the open one.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub(super) fn begin_claim(&mut self) {
        self.claim_open = true;
        self.mark_all_dirty();
    }

    /// The room that was lent has become a long run.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub(super) fn commit_claim(&mut self) {
        self.claim_open = false;
    }

    /// Moves messages that lie in the open run to the beginning of the frame that many units
    /// behind it.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub(super) fn move_to_frame(
        &self,
        cursor: &WriteCursor<T>,
        from: MessagePtr<T>,
        units: usize,
        count: usize,
    ) {
        let to = self.memory.frame(self.memory.unit(cursor.frame) + units).first_message();
        // SAFETY: both lie inside the room that was claimed, and may overlap; the messages were
        // written.
        unsafe { std::ptr::copy(from.as_ptr(), to.as_ptr(), count) };
    }

    /// Makes good what a claim may have written over.
    pub(super) fn undo_claim(&mut self, cursor: WriteCursor<T>) {
        if std::mem::take(&mut self.claim_open) {
            self.clear_header_after(cursor.frame, Geometry::<T>::FRAME_UNITS);
        }
    }

    /// Sets how many messages may be written in the open frame.
    pub(super) fn grant_slots(&mut self, cursor: &mut WriteCursor<T>) {
        let room = usize::try_from(self.room(cursor)).unwrap_or(usize::MAX);
        cursor.set_free_slots(cursor.frame_slots().min(room));
        self.set_step_limit(cursor);
    }

    /// Messages that may be sent.
    #[inline(always)]
    pub(super) fn room(&self, cursor: &WriteCursor<T>) -> u64 {
        self.send_limit - cursor.sent()
    }

    /// Clears the header of the frame that comes so many units behind this one, unless that is the
    /// end of a chunk.
    fn clear_header_after(&self, frame: FramePtr<T>, units: usize) {
        if let Some(behind) = self.frame_after(frame, units) {
            // SAFETY: free memory in which a run will begin; the receiver looks there only when
            // the run before it is complete.
            unsafe { behind.store(0, Ordering::Relaxed) };
        }
    }

    /// The frame that comes so many units behind this one; `None` at the end of a chunk.
    fn frame_after(&self, frame: FramePtr<T>, units: usize) -> Option<FramePtr<T>> {
        // SAFETY: as in `set_send_limit`.
        let Segment { units: all, is_ring, .. } = unsafe { &*self.segment };
        let unit = self.memory.unit(frame) + units;
        if unit > *all {
            return None;
        }
        Some(self.memory.frame(if unit == *all && *is_ring { 0 } else { unit }))
    }

    /// Opens the frame that comes so many units behind the open one. False if a chunk ends there.
    fn open_frame_after(
        &mut self,
        shared: &Shared<T>,
        cursor: &mut WriteCursor<T>,
        units: usize,
    ) -> bool {
        let Some(next) = self.frame_after(cursor.frame, units) else { return false };
        self.open_frame(shared, cursor, next);
        // SAFETY: as in `set_send_limit`.
        let is_end = !unsafe { &*self.segment }.is_ring && next == self.end;
        if is_end {
            // Nothing but a jump may lie here.
            cursor.blocked_slots = 0;
        }
        !is_end
    }

    /// Goes on with an empty frame, whose header is no news.
    fn open_frame(&mut self, shared: &Shared<T>, cursor: &mut WriteCursor<T>, frame: FramePtr<T>) {
        if self.dirty_units > 0 {
            mutate!(clear_behind, self.clear_header_after(frame, Geometry::<T>::FRAME_UNITS) => ());
            self.dirty_units = self.dirty_units.saturating_sub(Geometry::<T>::FRAME_UNITS);
        }
        let behind = self.memory.unit(self.end) - self.memory.unit(frame);
        // None at the end of a chunk, where no messages lie either.
        let frames = (behind / Geometry::<T>::FRAME_UNITS).min(1 + MAX_BEHIND);
        shared.announce_frame(frame, cursor.stamp(), frames.saturating_sub(1));
        self.announced_until = cursor.sent + (frames * Geometry::<T>::PER_FRAME) as u64;
        *cursor = WriteCursor::new(frame, cursor.sent);
    }

    /// Messages of a long run for so many at most, and its units; `None` if they go into frames.
    ///
    /// A long run begins where a frame does, and never takes more units than its messages would
    /// in full frames: that is what the ring has room for.
    pub(super) fn fit_run(
        &self,
        cursor: &WriteCursor<T>,
        messages: usize,
    ) -> Option<(usize, usize)> {
        let room = usize::try_from(self.room(cursor)).unwrap_or(usize::MAX);
        let messages = messages.min(room);
        if !Geometry::<T>::PACKS_RUNS
            || messages < Geometry::<T>::messages_in(2)
            || !cursor.is_frame_empty()
        {
            return None;
        }
        // SAFETY: as in `set_send_limit`.
        let all = unsafe { &*self.segment }.units;
        let most = self.ring_layout.max_run_units.min(all - self.memory.unit(cursor.frame));
        let count = messages.min(Geometry::<T>::messages_in(most));
        let units = Geometry::<T>::units_for(count);
        if units * Geometry::<T>::PER_FRAME <= count {
            return Some((count, units));
        }
        // The last line would be too empty: one less, filled to its end.
        (units > 2).then(|| (Geometry::<T>::messages_in(units - 1), units - 1))
    }

    /// Publishes a run of so many messages and units that were written at the open frame, and
    /// opens the frame behind it.
    pub(super) fn publish_run(
        &mut self,
        shared: &Shared<T>,
        cursor: &mut WriteCursor<T>,
        messages: usize,
        units: usize,
    ) {
        let record = cursor.frame;
        mutate!(clear_behind_run, self.clear_header_after(record, units) => ());
        cursor.sent += messages as u64;
        cursor.slots_end = cursor.sent;
        // Release: as in `publish`; and the header behind it, cleared before, is seen so.
        // SAFETY: the open frame begins here.
        unsafe { record.store(cursor.stamp(), mutate!(publish_run, Release)) };
        self.mark_all_dirty();
        if self.open_frame_after(shared, cursor, units) && self.has_room(cursor) {
            self.grant_slots(cursor);
        }
    }

    /// The frame in which a jump, or the end of the pipe, can be told: the open one, unless it is
    /// full.
    pub(super) fn open_for_flags(&mut self, shared: &Shared<T>, cursor: &mut WriteCursor<T>) {
        self.undo_claim(*cursor);
        if cursor.frame_slots() == 0 {
            // Nothing is behind the end of a chunk, where flags may lie.
            self.open_frame_after(shared, cursor, Geometry::<T>::FRAME_UNITS);
        }
    }

    /// Goes on in a larger ring; the receiver gives this one back.
    #[cold]
    fn grow(&mut self, shared: &Shared<T>, cursor: &mut WriteCursor<T>) {
        let ring_layout = shared.layout.next::<T>(self.ring_layout.units);
        // First: this panics where so much memory cannot be addressed.
        self.ring = Segment::ring(ring_layout.units);
        self.ring_layout = ring_layout;
        shared.ring_units.store(self.ring_layout.units, Ordering::Relaxed);
        self.switch_to(shared, cursor, self.ring, 0, JUMP | RETIRED);
    }

    /// Goes on in a chunk. The ring will be used again.
    #[cold]
    fn leave_ring_for_chunk(&mut self, shared: &Shared<T>, cursor: &mut WriteCursor<T>) {
        self.open_for_flags(shared, cursor);
        self.ring_left_at = cursor.sent();
        let behind = self.frame_after(cursor.frame, Geometry::<T>::FRAME_UNITS);
        self.ring_resume = behind.map_or(0, |frame| self.memory.unit(frame));
        let chunk = shared.free_list.take(&mut self.free_chunks);
        self.switch_to(shared, cursor, chunk, 0, JUMP);
    }

    /// A chunk is full: goes on in the ring if the receiver has left it and is near, in another
    /// chunk otherwise.
    #[cold]
    fn leave_chunk(&mut self, shared: &Shared<T>, cursor: &mut WriteCursor<T>) {
        // The receiver has taken a message from behind the ring, so it has read the jump out of it.
        let ring_is_free = self.known_taken > self.ring_left_at;
        let is_near = self.in_flight(cursor) <= self.ring_layout.slots / 2;
        if mutate!(back_to_ring, ring_is_free && is_near => true) {
            self.switch_to(shared, cursor, self.ring, self.ring_resume, JUMP);
        } else {
            let chunk = shared.free_list.take(&mut self.free_chunks);
            self.switch_to(shared, cursor, chunk, 0, JUMP);
        }
    }

    /// Goes on at a unit of another segment.
    fn switch_to(
        &mut self,
        shared: &Shared<T>,
        cursor: &mut WriteCursor<T>,
        next: *mut Segment<T>,
        unit: usize,
        flags: u64,
    ) {
        self.open_for_flags(shared, cursor);
        let left = cursor.frame;
        // SAFETY: as in `set_send_limit`.
        let leaving = unsafe { &*self.segment };
        leaving.next.store(next, Ordering::Relaxed);
        leaving.dirty_units.store(self.dirty_units, Ordering::Relaxed);
        // SAFETY: a segment that was just made or taken, or the ring, which is ours again.
        let Segment { memory, units, dirty_units, .. } = unsafe { &*next };
        self.segment = next;
        self.memory = *memory;
        self.end = memory.frame(*units);
        self.dirty_units = 0;
        if mutate!(is_dirty, dirty_units.load(Ordering::Relaxed) > 0 => false) {
            self.mark_all_dirty();
        }
        let frame = memory.frame(unit);
        mutate!(clear_in_segment, self.open_frame(shared, cursor, frame) => {
            self.open_frame(shared, cursor, frame);
            // SAFETY: the open frame begins here.
            unsafe { frame.store(1 << 40, Ordering::Relaxed) };
        });
        self.set_send_limit(shared);
        // Last: once the receiver has seen this it may give the segment back.
        // Release: the next segment is ready.
        // SAFETY: alive until the receiver sees the jump.
        unsafe { left.store(cursor.stamp() | flags, mutate!(publish_jump, Release)) };
    }

    /// Frees the ring and the chunks that were not used. Both ends are gone.
    pub(super) fn free(&mut self, shared: &Shared<T>) {
        shared.free_list.free_all(std::mem::replace(&mut self.free_chunks, std::ptr::null_mut()));
        // SAFETY: both ends are gone, and the receiver frees no ring that the sender has not
        // retired.
        unsafe { Segment::free(self.ring) };
    }
}

#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
impl<T> Writer<T> {
    /// Goes on as if so many messages had been sent and received.
    pub(super) fn begin_at(&mut self, shared: &Shared<T>, cursor: &mut WriteCursor<T>, count: u64) {
        let (at, left) = (cursor.next_slot(), cursor.free_slots() as u64);
        *cursor =
            WriteCursor { base: at.base(count), sent: count, slots_end: count + left, ..*cursor };
        self.known_taken = count;
        shared.acked.store(count, Ordering::Relaxed);
        shared.announce_frame(cursor.frame, cursor.stamp(), 0);
        self.set_send_limit(shared);
        self.step_limit = 0;
    }
}
