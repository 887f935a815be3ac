use std::hint::cold_path;
use std::mem::MaybeUninit;

use super::{NoRoom, Sender, Until, send_many_slow, with_writer};
use crate::error::{SendError, TrySendError};
use crate::pipe::memory::Geometry;
use crate::pipe::shared::{ALIVE, RECEIVER_GONE, Shared};
use crate::pipe::writer::WriteCursor;
use crate::sync::Ordering;

/// Free slots of a pipe, to be filled in place; see [`Sender::claim`].
///
/// If the claim is dropped without [`Claim::send`], nothing is sent.
#[derive(Debug)]
pub struct Claim<'a, T> {
    sender: &'a mut Sender<T>,
    slots: usize,
}

impl<T> Claim<'_, T> {
    /// The slots: at least one, and no more than requested.
    #[inline(always)]
    pub fn room(&mut self) -> &mut [MaybeUninit<T>] {
        let cursor = &self.sender.cursor;
        let first = if self.slots <= cursor.free_slots() {
            cursor.next_slot()
        } else {
            // SAFETY: a run of this length fits there.
            unsafe { cursor.frame.first_of_run(self.slots) }
        };
        // SAFETY: the slots are free and contiguous, and `MaybeUninit` may hold anything.
        unsafe { std::slice::from_raw_parts_mut(first.as_ptr().cast(), self.slots) }
    }

    /// Sends the messages in the first `count` slots.
    ///
    /// # Errors
    ///
    /// If the receiver is gone, returns how many of these messages it received or dropped. The
    /// others are dropped.
    ///
    /// # Panics
    ///
    /// If the claim has fewer than `count` slots.
    ///
    /// # Safety
    ///
    /// The first `count` slots must have been written.
    #[inline(always)]
    pub unsafe fn send(self, count: usize) -> Result<(), SendError<usize>> {
        let Claim { sender, slots } = self;
        assert!(count <= slots, "the claim has {slots} slots, not {count}");
        if count == 0 {
            return Ok(());
        }
        let quiet = if count <= sender.cursor.free_slots() {
            let sent = sender.cursor.publish(count);
            let quiet = sender.is_quiet();
            // Done last, as in `Sender::push`.
            sender.cursor.advance_to(sent);
            quiet
        } else {
            // The claim covers a long run, so `claim_many` has left the cursor without free slots.
            sender.cursor = publish_long(&**sender.shared, sender.cursor, slots, count);
            sender.is_quiet()
        };
        if quiet {
            return Ok(());
        }
        cold_path();
        match send_many_slow(&**sender.shared, sender.cursor.sent()) {
            0 => Ok(()),
            lost => Err(SendError(count.saturating_sub(lost as usize))),
        }
    }
}

impl<T> Sender<T> {
    /// Claims up to `most` contiguous slots, to be filled in place, waiting for room as
    /// [`Sender::send`] does.
    ///
    /// The claim has at least one slot but may have fewer than `most`: only those that are left in
    /// the current cache line or, at the start of a line, up to a page of slots.
    ///
    /// ```
    /// let (mut sender, mut receiver) = threadtoll::pipe::bounded(64);
    /// let mut claim = sender.claim(4).unwrap();
    /// claim.room()[0].write(7);
    /// // SAFETY: the first slot was written.
    /// unsafe { claim.send(1) }.unwrap();
    /// assert_eq!(receiver.recv(), Ok(7));
    /// ```
    ///
    /// # Errors
    ///
    /// If the receiver is gone.
    ///
    /// # Panics
    ///
    /// If `most` is 0.
    pub fn claim(&mut self, most: usize) -> Result<Claim<'_, T>, SendError<()>> {
        self.claim_until(most, Until::Deadline(None)).map_err(|_| SendError(()))
    }

    /// Like [`Sender::claim`], but does not wait.
    ///
    /// # Errors
    ///
    /// If the pipe is bounded and full, or if the receiver is gone.
    ///
    /// # Panics
    ///
    /// If `most` is 0.
    pub fn try_claim(&mut self, most: usize) -> Result<Claim<'_, T>, TrySendError<()>> {
        self.claim_until(most, Until::Now).map_err(|no_room| match no_room {
            NoRoom::Full => TrySendError::Full(()),
            NoRoom::Disconnected => TrySendError::Disconnected(()),
        })
    }

    #[inline(always)]
    fn claim_until(&mut self, most: usize, until: Until) -> Result<Claim<'_, T>, NoRoom> {
        assert!(most > 0, "a claim needs at least one slot");
        // SAFETY: part of `shared`, which is alive.
        // Relaxed: a stale value does no harm, because `send` finds out what was received.
        let state = unsafe { self.state.as_ref() }.load(Ordering::Relaxed);
        if state & (ALIVE | RECEIVER_GONE) != ALIVE {
            return Err(NoRoom::Disconnected);
        }
        if let Some(no_room) = self.find_room(|| until) {
            return Err(no_room);
        }
        let free = self.cursor.free_slots();
        if most <= free {
            return Ok(Claim { slots: most, sender: self });
        }
        let (cursor, slots) = claim_many(&**self.shared, self.cursor, most);
        self.cursor = cursor;
        Ok(Claim { slots, sender: self })
    }
}

/// Claims a long run, or else the free slots of the open frame. Returns the number of slots.
#[inline(never)]
fn claim_many<T>(
    shared: &Shared<T>,
    mut cursor: WriteCursor<T>,
    most: usize,
) -> (WriteCursor<T>, usize) {
    let fewest = Geometry::<T>::messages_in(2);
    let slots = with_writer(shared, |writer| match writer.fit_run(&cursor, most, fewest) {
        Some((count, _)) if count > Geometry::<T>::PER_FRAME => {
            writer.begin_claim();
            count
        }
        _ => cursor.free_slots(),
    });
    if slots > cursor.free_slots() {
        // The claim covers the next header. Even if the claim is leaked, the next send must go
        // through `make_room`, which restores that header.
        cursor.withhold_slots();
    }
    (cursor, slots)
}

/// Publishes the first `count` messages of a claim that covers a long run of `slots` slots.
#[inline(never)]
fn publish_long<T>(
    shared: &Shared<T>,
    mut cursor: WriteCursor<T>,
    slots: usize,
    count: usize,
) -> WriteCursor<T> {
    // SAFETY: the claim is a run of this length.
    let written = unsafe { cursor.frame.first_of_run(slots) };
    // SAFETY: a run no longer than the claim fits there.
    let first = unsafe { cursor.frame.first_of_run(count) };
    if written.as_ptr() != first.as_ptr() {
        // SAFETY: both are inside the claim and may overlap; the messages were written.
        unsafe { std::ptr::copy(written.as_ptr(), first.as_ptr(), count) };
    }
    with_writer(shared, |writer| {
        if count <= Geometry::<T>::PER_FRAME {
            writer.undo_claim(cursor);
            writer.grant_slots(&mut cursor);
            return cursor.advance_to(cursor.publish(count));
        }
        writer.commit_claim();
        let units = Geometry::<T>::units_for(count);
        if units * Geometry::<T>::PER_FRAME <= count {
            return writer.publish_run(shared, &mut cursor, count, units);
        }
        // Fewer messages were sent than claimed. As one run, they would take more units than in
        // full frames, and the ring may not have that much room (see `fit_run`). So the messages of
        // the last unit are moved to a frame of their own.
        let full = Geometry::<T>::messages_in(units - 1);
        let rest = count - full;
        // SAFETY: inside the claim.
        let from = unsafe { first.add(full) };
        writer.move_to_frame(&cursor, from, units - 1, rest);
        writer.publish_run(shared, &mut cursor, full, units - 1);
        cursor.advance_to(cursor.publish(rest));
    });
    cursor
}
