//! Room that is lent, to be written in place.

use std::mem::MaybeUninit;

use super::{NoRoom, Sender, Until, send_many_slow, with_writer};
use crate::error::{SendError, TrySendError};
use crate::pipe::memory::Geometry;
use crate::wait::{Adaptive, Wait};

/// Room for messages that are written in place; see [`Sender::claim`]. Dropped without
/// [`Claim::send`], nothing is sent.
#[derive(Debug)]
pub struct Claim<'a, T, W: Wait = Adaptive> {
    sender: &'a mut Sender<T, W>,
    slots: usize,
}

impl<T, W: Wait> Claim<'_, T, W> {
    /// The room: at least one place, at most as many as were asked for.
    pub fn room(&mut self) -> &mut [MaybeUninit<T>] {
        let place = self.sender.cursor.next_slot().as_ptr();
        // SAFETY: free places of the run that is open, side by side; `MaybeUninit` may hold
        // anything.
        unsafe { std::slice::from_raw_parts_mut(place.cast(), self.slots) }
    }

    /// Sends the first `count` places.
    ///
    /// # Errors
    ///
    /// If the receiver is gone, with the number of messages that it received or dropped before
    /// that. The others are dropped.
    ///
    /// # Panics
    ///
    /// If there are not so many.
    ///
    /// # Safety
    ///
    /// They must have been written.
    pub unsafe fn send(self, count: usize) -> Result<(), SendError<usize>> {
        let Claim { sender, slots } = self;
        assert!(count <= slots, "the claim has {slots} slots, not {count}");
        if count == 0 {
            return Ok(());
        }
        sender.publish_claimed(count);
        if !sender.is_quiet() {
            let lost = send_many_slow(&**sender.shared, sender.cursor.sent());
            if lost > 0 {
                return Err(SendError(count.saturating_sub(lost as usize)));
            }
        }
        Ok(())
    }
}

impl<T, W: Wait> Sender<T, W> {
    /// Lends room for up to `most` messages, to be written in place, side by side; waits for room
    /// like [`Sender::send`].
    ///
    /// The room may be for fewer messages, but never for none: the rest of a line, or up to a page
    /// where a line begins.
    ///
    /// ```
    /// let (mut sender, mut receiver) = threadtoll::pipe::bounded(64);
    /// let mut claim = sender.claim(4).unwrap();
    /// claim.room()[0].write(7);
    /// // SAFETY: the first place was written.
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
    pub fn claim(&mut self, most: usize) -> Result<Claim<'_, T, W>, SendError<()>> {
        self.claim_until(most, Until::Deadline(None)).map_err(|_| SendError(()))
    }

    /// As [`Sender::claim`], but does not wait.
    ///
    /// # Errors
    ///
    /// If the pipe is bounded and full; if the receiver is gone.
    ///
    /// # Panics
    ///
    /// If `most` is 0.
    pub fn try_claim(&mut self, most: usize) -> Result<Claim<'_, T, W>, TrySendError<()>> {
        self.claim_until(most, Until::Now).map_err(|no_room| match no_room {
            NoRoom::Full => TrySendError::Full(()),
            NoRoom::Disconnected => TrySendError::Disconnected(()),
        })
    }

    fn claim_until(&mut self, most: usize, until: Until) -> Result<Claim<'_, T, W>, NoRoom> {
        assert!(most > 0, "a claim of no messages");
        if self.is_disconnected() {
            return Err(NoRoom::Disconnected);
        }
        if let Some(no_room) = self.find_room(|| until) {
            return Err(no_room);
        }
        let cursor = self.cursor;
        let slots = with_writer(&self.shared, |writer| {
            writer.undo_claim(cursor);
            match writer.fit_run(&cursor, most) {
                Some((count, _)) if count > Geometry::<T>::PER_FRAME => {
                    writer.begin_claim();
                    count
                }
                _ => most.min(cursor.free_slots()),
            }
        });
        if slots > cursor.free_slots() {
            // Until the header behind is good again nothing may be sent past `make_room`, also if
            // the claim is forgotten.
            self.cursor.withhold_slots();
        }
        Ok(Claim { slots, sender: self })
    }

    /// Publishes messages that were written to a claim.
    fn publish_claimed(&mut self, count: usize) {
        let shared = &**self.shared;
        let mut cursor = self.cursor;
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
            // Fewer were sent than claimed, and the last line would be too empty (see
            // `fit_run`): what is in it becomes the beginning of a frame of its own.
            let full = Geometry::<T>::messages_in(units - 1);
            let rest = count - full;
            // SAFETY: inside the room that was claimed.
            let from = unsafe { cursor.next_slot().add(full) };
            writer.move_to_frame(&cursor, from, units - 1, rest);
            writer.publish_run(shared, &mut cursor, full, units - 1);
            cursor.advance_to(cursor.publish(rest));
        });
        self.cursor = cursor;
    }
}
