//! The sender's position in a pipe, and where it finds more room.
//!
//! Every send needs the [`WriteCursor`]. It is copied into slow paths and back, never borrowed, so
//! that a loop around `send` keeps it in registers. The [`Writer`] holds everything else.

use super::memory::{BasePtr, FramePtr, Geometry, JUMP, Memory, MessagePtr, ONE, RETIRED};
use super::segment::{NO_LIMIT, RingLayout, Segment};
use super::shared::{
    ALIVE, MAX_BEHIND, NEVER_SENT, RECEIVER_GONE, SENDER, SENDER_SLEEPS, Shared, is_legal,
};
use crate::sync::{Ordering, mutate};
use crate::wait::{Probe, Until, WaitOutcome, Waiter, wait_by};

/// Number of times that a waiting sender polls `acked` before it polls `taken`; at most the pipe's
/// capacity. The receiver writes `taken` with each message, and each read of `taken` by the sender
/// slows the receiver down.
const POLLS_OF_ACKED: u64 = 64;

/// Maximum number of headers that the sender clears at a time. If the sender cleared one header
/// whenever it opens a frame, a receiver close behind would fetch each cache line twice: after the
/// header is cleared, and again after messages are stored.
const MAX_CLEARED: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRoom {
    Full,
    Disconnected,
}

/// The part of the position that every send needs.
pub(super) struct WriteCursor<T> {
    /// Gives the address of a message by its number.
    base: BasePtr<T>,
    /// Number of messages sent, which is also the number of the next message. The only field that
    /// changes with each message.
    sent: u64,
    /// Number of the first message without a slot. The slots from `sent` up to this number are
    /// contiguous and free.
    slots_end: u64,
    /// Number of further slots in the open frame for which the pipe has no room yet.
    blocked_slots: usize,
    /// The frame that is being filled: the *open frame*.
    pub(super) frame: FramePtr<T>,
}

impl<T> Clone for WriteCursor<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for WriteCursor<T> {}

impl<T> WriteCursor<T> {
    /// A cursor at an empty frame, without free slots.
    pub(super) fn new(frame: FramePtr<T>, sent: u64) -> Self {
        let base = frame.first_message().base(sent);
        WriteCursor { base, sent, slots_end: sent, blocked_slots: Geometry::<T>::PER_FRAME, frame }
    }

    #[inline(always)]
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Number of contiguous free slots.
    #[inline(always)]
    pub(super) fn free_slots(&self) -> usize {
        (self.slots_end - self.sent) as usize
    }

    /// The header that counts all messages sent so far.
    #[inline(always)]
    pub(super) fn stamp(&self) -> u64 {
        self.sent * ONE
    }

    #[inline(always)]
    pub(super) fn next_slot(&self) -> MessagePtr<T> {
        self.base.message(self.sent)
    }

    fn set_free_slots(&mut self, left: usize) {
        let frame_slots = self.frame_slots();
        debug_assert!(left <= frame_slots);
        self.slots_end = self.sent + left as u64;
        self.blocked_slots = frame_slots - left;
    }

    /// Number of slots left in the open frame.
    fn frame_slots(&self) -> usize {
        self.free_slots() + self.blocked_slots
    }

    pub(super) fn is_frame_empty(&self) -> bool {
        self.frame_slots() == Geometry::<T>::PER_FRAME
    }

    /// Makes written messages visible to the receiver. Returns the count to which the caller must
    /// advance.
    #[inline(always)]
    #[must_use]
    pub(super) fn publish(&self, messages: usize) -> u64 {
        debug_assert!(messages <= self.free_slots());
        let sent = self.sent + messages as u64;
        // Release: pairs with the acquire in `Reader::step` and `Reader::poll`, so that the
        // receiver sees the messages.
        // SAFETY: the open frame begins here.
        unsafe { self.frame.store(sent * ONE, mutate!(publish, Release)) };
        sent
    }

    /// Counts messages as sent, up to the total `sent`.
    #[inline(always)]
    pub(super) fn advance_to(&mut self, sent: u64) {
        self.sent = sent;
    }

    /// Continues at another position with the same count. The count is not stored again, so that a
    /// loop around `send` keeps it in a register.
    #[inline(always)]
    pub(super) fn move_to(&mut self, other: Self) {
        debug_assert_eq!(self.sent, other.sent);
        let WriteCursor { base, sent: _, slots_end, blocked_slots, frame } = other;
        self.base = base;
        self.slots_end = slots_end;
        self.blocked_slots = blocked_slots;
        self.frame = frame;
    }

    /// Makes the next send go through [`Writer::make_room`].
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub(super) fn withhold_slots(&mut self) {
        self.set_free_slots(0);
    }

    /// Undoes the last send. The receiver must be gone.
    pub(super) fn take_back(&mut self) -> T {
        self.sent -= 1;
        // SAFETY: the open frame begins here.
        unsafe { self.frame.store(self.stamp(), Ordering::Relaxed) };
        // SAFETY: we wrote the message in this frame, and the header no longer counts it.
        unsafe { self.next_slot().read() }
    }
}

/// The part of the sender's state that only slow paths need.
pub(super) struct Writer<T> {
    segment: *mut Segment<T>,
    memory: Memory<T>,
    /// The frame at which a ring wraps around or a chunk ends.
    end: FramePtr<T>,
    /// Number of the message up to which [`Writer::step`] opens frames. 0 during a claim, or while
    /// slots of the open frame are blocked.
    step_limit: u64,
    /// Frames up to the message with this number need no further announcement. While there are
    /// dirty units, the headers of these frames and of the next one have been cleared.
    announced_until: u64,
    /// Total number of messages that the sender may have sent before the receiver makes more room.
    send_limit: u64,
    /// Number of messages that the receiver is known to have taken.
    known_taken: u64,
    /// Number of units after the last cleared header whose headers have yet to be cleared, because
    /// old messages in them may look like headers.
    dirty_units: usize,
    /// True while a claim covers the header of the next frame.
    claim_open: bool,
    /// True once [`Writer::make_room`] was called.
    has_sent: bool,
    /// The ring in use or, while the sender uses chunks, the ring to which it will return.
    ring: *mut Segment<T>,
    ring_layout: RingLayout,
    /// While the sender uses chunks: the unit at which it will resume in the ring.
    ring_resume: usize,
    /// While the sender uses chunks: the number of messages sent when the sender left the ring.
    ring_left_at: u64,
    /// Chunks that were taken from the free list.
    free_chunks: *mut Segment<T>,
}

impl<T> Writer<T> {
    /// The state at the start of a fresh ring.
    pub(super) fn new(
        segment: *mut Segment<T>,
        memory: Memory<T>,
        ring_layout: RingLayout,
        capacity: u64,
    ) -> Self {
        Writer {
            segment,
            memory,
            end: memory.frame(ring_layout.units),
            step_limit: 0,
            announced_until: 0,
            send_limit: ring_layout.slots.min(capacity),
            known_taken: 0,
            dirty_units: 0,
            claim_open: false,
            has_sent: false,
            ring: segment,
            ring_layout,
            ring_resume: 0,
            ring_left_at: 0,
            free_chunks: std::ptr::null_mut(),
        }
    }

    /// Opens the next frame in the common case. Returns `None` in all other cases, which
    /// [`Writer::make_room`] handles.
    ///
    /// Stores nothing that is shared. A CPU's stores become visible in order, so a shared store
    /// would wait for earlier stores to lines that the other CPU still owns.
    #[inline(always)]
    pub(super) fn step(&self, cursor: WriteCursor<T>) -> Option<WriteCursor<T>> {
        debug_assert_eq!(cursor.free_slots(), 0);
        let full = cursor.slots_end + Geometry::<T>::PER_FRAME as u64;
        (full <= self.step_limit).then(|| {
            debug_assert_eq!(cursor.blocked_slots, 0);
            // SAFETY: the limit says that there is another frame before the end of the memory.
            let frame = unsafe { cursor.frame.next() };
            WriteCursor {
                slots_end: full,
                blocked_slots: 0,
                ..WriteCursor::new(frame, cursor.slots_end)
            }
        })
    }

    /// Finds room for a message: in this segment, in another one, or by waiting.
    pub(super) fn make_room(
        &mut self,
        shared: &Shared<T>,
        cursor: &mut WriteCursor<T>,
        until: Until,
    ) -> Result<(), NoRoom> {
        let state = self.note_first_send(shared);
        if state & ALIVE == 0 || state & RECEIVER_GONE != 0 {
            return Err(NoRoom::Disconnected);
        }
        self.undo_claim(*cursor);
        let unbounded = !shared.layout.is_bounded();
        loop {
            if self.has_room(cursor) {
                if cursor.frame_slots() > 0
                    || self.open_frame_after(
                        shared,
                        cursor,
                        Geometry::<T>::FRAME_UNITS,
                        MAX_CLEARED,
                    )
                {
                    self.grant_slots(cursor);
                    return Ok(());
                }
                // This is the end of a chunk.
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
                self.wait_for_room(shared, cursor, Waiter::Thread(deadline))?;
            } else {
                return Err(NoRoom::Full);
            }
        }
    }

    /// Waits for room, or until the receiver leaves. A task that has to wait finds `Full`.
    #[inline(always)]
    pub(super) fn wait_for_room(
        &mut self,
        shared: &Shared<T>,
        cursor: &WriteCursor<T>,
        waiter: Waiter<'_>,
    ) -> Result<(), NoRoom> {
        let mut polls = 0u64;
        let patient = shared.layout.capacity.min(POLLS_OF_ACKED);
        let announce = |state| {
            debug_assert!(is_legal(state | SENDER_SLEEPS));
            shared.announce(state)
        };
        let parker = shared.parker(SENDER, 0);
        let poll = |probe| {
            polls = polls.saturating_add(1);
            self.refresh_taken(shared, probe == Probe::Fenced || polls > patient);
            let state = shared.state.load(Ordering::Acquire);
            if mutate!(see_receiver_gone, state & RECEIVER_GONE != 0 => false) {
                return Some(Err(NoRoom::Disconnected));
            }
            self.has_room(cursor).then_some(Ok(()))
        };
        match wait_by(waiter, parker, announce, poll) {
            WaitOutcome::Found(found) => found,
            WaitOutcome::TimedOut => Err(NoRoom::Full),
            WaitOutcome::Forked => Err(NoRoom::Disconnected),
        }
    }

    /// Clears `NEVER_SENT` in its first call. A receiver that leaves or sleeps before that needs no
    /// barrier (`Shared::no_send_in_flight`). Returns the state.
    fn note_first_send(&mut self, shared: &Shared<T>) -> u32 {
        if std::mem::replace(&mut self.has_sent, true) {
            return shared.state.load(Ordering::Relaxed);
        }
        // AcqRel: either this finds the bit of a receiver that leaves or sleeps, or that receiver
        // finds that there may be messages.
        mutate!(first_send, shared.state.fetch_and(!NEVER_SENT, Ordering::AcqRel) => shared.state.load(Ordering::Relaxed))
    }

    /// Number of messages that were sent and are not known to have been taken.
    fn in_flight(&self, cursor: &WriteCursor<T>) -> u64 {
        cursor.sent() - self.known_taken
    }

    #[inline(always)]
    fn has_room(&self, cursor: &WriteCursor<T>) -> bool {
        cursor.sent() < self.send_limit
    }

    /// Updates `known_taken`: from `taken` if `certain`, otherwise from `acked`, which is older,
    /// but reading it slows the receiver down less.
    fn refresh_taken(&mut self, shared: &Shared<T>, certain: bool) {
        // Acquire: the receiver has finished reading what is overwritten next.
        let taken = if certain {
            shared.taken.load(mutate!(see_taken, Acquire))
        } else {
            shared.acked.load(Ordering::Acquire)
        };
        self.known_taken = self.known_taken.max(taken);
        self.set_send_limit(shared);
    }

    fn set_send_limit(&mut self, shared: &Shared<T>) {
        // SAFETY: the segment that we are in is alive, since no jump out of it is published.
        let is_ring = unsafe { &*self.segment }.is_ring;
        let holds =
            if is_ring { self.ring_layout.slots.min(shared.layout.capacity) } else { NO_LIMIT };
        self.send_limit = self.known_taken + holds;
    }

    fn set_step_limit(&mut self, cursor: &WriteCursor<T>) {
        let is_ordinary = !self.claim_open && cursor.blocked_slots == 0;
        self.step_limit = if is_ordinary { self.announced_until.min(self.send_limit) } else { 0 };
    }

    /// Notes that old messages anywhere in the segment may look like headers.
    fn mark_dirty(&mut self) {
        // SAFETY: the segment that we are in is alive, since no jump out of it is published.
        self.dirty_units = unsafe { &*self.segment }.units;
        self.announced_until = 0;
        self.step_limit = 0;
    }

    /// Begins a claim that covers the header of the next frame.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub(super) fn begin_claim(&mut self) {
        self.claim_open = true;
        self.mark_dirty();
    }

    /// Ends a claim that becomes a long run.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub(super) fn commit_claim(&mut self) {
        self.claim_open = false;
    }

    /// Moves `count` messages of a run in the open frame to the frame `units` units after the open
    /// one.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub(super) fn move_to_frame(
        &self,
        cursor: &WriteCursor<T>,
        from: MessagePtr<T>,
        units: usize,
        count: usize,
    ) {
        let to = self.memory.frame(self.memory.unit(cursor.frame) + units).first_message();
        // SAFETY: both are inside the claim and may overlap; the messages were written.
        unsafe { std::ptr::copy(from.as_ptr(), to.as_ptr(), count) };
    }

    /// Restores the header that an abandoned claim may have overwritten.
    pub(super) fn undo_claim(&mut self, cursor: WriteCursor<T>) {
        if std::mem::take(&mut self.claim_open) {
            self.clear_header_after(cursor.frame, Geometry::<T>::FRAME_UNITS);
        }
    }

    /// Makes available those slots of the open frame for which the pipe has room.
    pub(super) fn grant_slots(&mut self, cursor: &mut WriteCursor<T>) {
        let room = usize::try_from(self.room(cursor)).unwrap_or(usize::MAX);
        cursor.set_free_slots(cursor.frame_slots().min(room));
        self.set_step_limit(cursor);
    }

    /// Number of messages that may be sent now.
    #[inline(always)]
    pub(super) fn room(&self, cursor: &WriteCursor<T>) -> u64 {
        self.send_limit - cursor.sent()
    }

    /// Clears the header `units` units after `frame`, unless that is the end of a chunk.
    fn clear_header_after(&self, frame: FramePtr<T>, units: usize) {
        if let Some(behind) = self.frame_after(frame, units) {
            // SAFETY: free memory, which belongs to a frame for which there is room, or to the
            // frame after that (`RingLayout::overhead_frames`). If a frame begins here, the
            // receiver reads its header only once the frame before it is full.
            unsafe { behind.store(0, Ordering::Relaxed) };
        }
    }

    /// The frame `units` units after `frame`; `None` past the end of a chunk.
    fn frame_after(&self, frame: FramePtr<T>, units: usize) -> Option<FramePtr<T>> {
        // SAFETY: the segment that we are in is alive, since no jump out of it is published.
        let Segment { units: all, is_ring, .. } = unsafe { &*self.segment };
        let unit = self.memory.unit(frame) + units;
        if unit > *all {
            return None;
        }
        Some(self.memory.frame(if unit == *all && *is_ring { 0 } else { unit }))
    }

    /// Opens the frame `units` units after the open one, and clears up to `most_cleared` headers
    /// after it if necessary. Returns `false` if that position is the end of a chunk.
    #[inline(always)]
    fn open_frame_after(
        &mut self,
        shared: &Shared<T>,
        cursor: &mut WriteCursor<T>,
        units: usize,
        most_cleared: usize,
    ) -> bool {
        let Some(next) = self.frame_after(cursor.frame, units) else { return false };
        self.open_frame(shared, cursor, next, most_cleared);
        // SAFETY: the segment that we are in is alive, since no jump out of it is published.
        let is_end = !unsafe { &*self.segment }.is_ring && next == self.end;
        if is_end {
            // The last frame of a chunk holds flags only.
            cursor.blocked_slots = 0;
        }
        !is_end
    }

    /// Clears headers after `frame`, the frame that is opened next. Clears one header for each
    /// frame that can be filled now, `frame` included, but at least one and at most `most`. Returns
    /// their number.
    #[inline(always)]
    fn clear(&mut self, cursor: &WriteCursor<T>, frame: FramePtr<T>, most: usize) -> usize {
        let mut frames = most;
        // In a segment that was just entered, `most` is 1, because the room is not known yet.
        if most > 1 {
            let free = usize::try_from(self.room(cursor)).unwrap_or(usize::MAX);
            frames = most.min((free / Geometry::<T>::PER_FRAME).max(1));
        }
        for ahead in 1..=frames {
            let units = ahead * Geometry::<T>::FRAME_UNITS;
            mutate!(clear_behind, self.clear_header_after(frame, units) => ());
        }
        self.dirty_units = self.dirty_units.saturating_sub(frames * Geometry::<T>::FRAME_UNITS);
        frames
    }

    /// Continues in an empty frame; see [`Writer::open_frame_after`]. Inlined, so that a run, which
    /// clears only one header, needs no loop.
    #[inline(always)]
    fn open_frame(
        &mut self,
        shared: &Shared<T>,
        cursor: &mut WriteCursor<T>,
        frame: FramePtr<T>,
        most_cleared: usize,
    ) {
        let behind = self.memory.unit(self.end) - self.memory.unit(frame);
        // `frames` is 0 at the end of a chunk.
        let mut frames = (behind / Geometry::<T>::FRAME_UNITS).min(1 + MAX_BEHIND);
        if self.dirty_units > 0 && frames > 0 {
            // Headers up to here and beyond may have been cleared when an earlier frame was opened.
            let cleared = self.announced_until.saturating_sub(cursor.sent);
            let cleared = cleared as usize / Geometry::<T>::PER_FRAME;
            frames = if cleared > 0 {
                cleared
            } else {
                self.clear(cursor, frame, most_cleared.min(frames))
            };
        }
        shared.announce_frame(frame, cursor.stamp(), frames.saturating_sub(1));
        self.announced_until = cursor.sent + (frames * Geometry::<T>::PER_FRAME) as u64;
        *cursor = WriteCursor::new(frame, cursor.sent);
    }

    /// Returns the number of messages and the number of units of the longest run that is possible
    /// now, for up to `messages` messages. Returns `None` if the run would have fewer than `fewest`
    /// messages, which are then stored in frames. `fewest` is at least the number of messages in a
    /// frame.
    ///
    /// A long run takes no more units than its messages would take in full frames, because the ring
    /// has only that much room.
    pub(super) fn fit_run(
        &self,
        cursor: &WriteCursor<T>,
        messages: usize,
        fewest: usize,
    ) -> Option<(usize, usize)> {
        let room = usize::try_from(self.room(cursor)).unwrap_or(usize::MAX);
        let messages = messages.min(room);
        if !Geometry::<T>::PACKS_RUNS || messages < fewest || !cursor.is_frame_empty() {
            return None;
        }
        // SAFETY: the segment that we are in is alive, since no jump out of it is published.
        let all = unsafe { &*self.segment }.units;
        let most = self.ring_layout.max_run_units.min(all - self.memory.unit(cursor.frame));
        let mut count = messages.min(Geometry::<T>::messages_in(most));
        let mut units = Geometry::<T>::units_for(count);
        if units * Geometry::<T>::PER_FRAME > count {
            // The last unit would be too empty, so it is left out.
            units -= 1;
            count = Geometry::<T>::messages_in(units);
        }
        (count >= fewest).then_some((count, units))
    }

    /// Publishes a long run that was written at the open frame, and opens the frame after it.
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
        // Release: as in `publish`. The receiver also sees that the next header was cleared.
        // SAFETY: the open frame begins here.
        unsafe { record.store(cursor.stamp(), mutate!(publish_run, Release)) };
        self.mark_dirty();
        if self.open_frame_after(shared, cursor, units, 1) && self.has_room(cursor) {
            self.grant_slots(cursor);
        }
    }

    /// Ensures that the open frame is not full, so that its header can carry flags.
    pub(super) fn open_for_flags(&mut self, shared: &Shared<T>, cursor: &mut WriteCursor<T>) {
        self.undo_claim(*cursor);
        if cursor.frame_slots() == 0 {
            // At the end of a chunk, this opens its last frame, which is for flags only.
            self.open_frame_after(shared, cursor, Geometry::<T>::FRAME_UNITS, 1);
        }
    }

    /// Continues in a larger ring. The receiver frees the current one.
    #[cold]
    fn grow(&mut self, shared: &Shared<T>, cursor: &mut WriteCursor<T>) {
        let ring_layout = shared.layout.next::<T>(self.ring_layout.units);
        // Created before anything else changes, because `Segment::ring` panics if the ring exceeds
        // the address space.
        self.ring = Segment::ring(ring_layout.units);
        self.ring_layout = ring_layout;
        shared.ring_units.store(self.ring_layout.units, Ordering::Relaxed);
        self.switch_to(shared, cursor, self.ring, 0, JUMP | RETIRED);
    }

    /// Continues in a chunk; sending returns to the ring later.
    #[cold]
    fn leave_ring_for_chunk(&mut self, shared: &Shared<T>, cursor: &mut WriteCursor<T>) {
        self.open_for_flags(shared, cursor);
        self.ring_left_at = cursor.sent();
        let behind = self.frame_after(cursor.frame, Geometry::<T>::FRAME_UNITS);
        self.ring_resume = behind.map_or(0, |frame| self.memory.unit(frame));
        let chunk = shared.free_list.take(&mut self.free_chunks);
        self.switch_to(shared, cursor, chunk, 0, JUMP);
    }

    /// Continues after a full chunk: in the ring if the receiver has left it and is close behind,
    /// otherwise in another chunk.
    #[cold]
    fn leave_chunk(&mut self, shared: &Shared<T>, cursor: &mut WriteCursor<T>) {
        // If the receiver has taken a message that was sent after the sender left the ring, the
        // receiver has left the ring, too.
        let ring_is_free = self.known_taken > self.ring_left_at;
        let is_near = self.in_flight(cursor) <= self.ring_layout.slots / 2;
        if mutate!(back_to_ring, ring_is_free && is_near => true) {
            self.switch_to(shared, cursor, self.ring, self.ring_resume, JUMP);
        } else {
            let chunk = shared.free_list.take(&mut self.free_chunks);
            self.switch_to(shared, cursor, chunk, 0, JUMP);
        }
    }

    /// Continues at a unit of another segment.
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
        // SAFETY: the segment that we are in is alive, since no jump out of it is published.
        let leaving = unsafe { &*self.segment };
        leaving.next.store(next, Ordering::Relaxed);
        leaving.dirty_units.store(self.dirty_units, Ordering::Relaxed);
        // SAFETY: just made, or taken from the free list, or the ring, which is free again.
        let Segment { memory, units, dirty_units, .. } = unsafe { &*next };
        self.segment = next;
        self.memory = *memory;
        self.end = memory.frame(*units);
        self.dirty_units = 0;
        if mutate!(is_dirty, dirty_units.load(Ordering::Relaxed) > 0 => false) {
            self.mark_dirty();
        }
        let frame = memory.frame(unit);
        mutate!(clear_in_segment, self.open_frame(shared, cursor, frame, 1) => {
            self.open_frame(shared, cursor, frame, 1);
            // SAFETY: the open frame begins here.
            unsafe { frame.store(1 << 40, Ordering::Relaxed) };
        });
        self.set_send_limit(shared);
        // Stored last, because a receiver that sees this may free the segment. Release: the next
        // segment is ready.
        // SAFETY: alive until the receiver sees the jump.
        unsafe { left.store(cursor.stamp() | flags, mutate!(publish_jump, Release)) };
    }

    /// Frees the ring and the kept chunks. Both ends must be gone.
    pub(super) fn free(&mut self, shared: &Shared<T>) {
        shared.free_list.free_all(std::mem::replace(&mut self.free_chunks, std::ptr::null_mut()));
        // SAFETY: both ends are gone, and the receiver frees only rings that the sender has
        // retired.
        unsafe { Segment::free(self.ring) };
    }
}

#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
impl<T> Writer<T> {
    /// Continues as if `count` messages had been sent and received.
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
