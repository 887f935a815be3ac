//! Room that is lent, to be written in place.

use std::mem::MaybeUninit;

use super::{NoRoom, Sender, Until, attend_to_many, outgoing};
use crate::error::{SendError, TrySendError};
use crate::pipe::memory::Geometry;
use crate::wait::{Adaptive, Wait};

/// Room for messages that are written in place; see [`Sender::claim`]. Dropped without
/// [`Claim::send`], nothing is sent.
#[derive(Debug)]
pub struct Claim<'a, T, W: Wait = Adaptive> {
    sender: &'a mut Sender<T, W>,
    places: usize,
}

impl<T, W: Wait> Claim<'_, T, W> {
    /// The room: at least one place, at most as many as were asked for.
    pub fn room(&mut self) -> &mut [MaybeUninit<T>] {
        let place = self.sender.writing.at().as_ptr();
        // SAFETY: free places of the record that is open, side by side; `MaybeUninit` may hold
        // anything.
        unsafe { std::slice::from_raw_parts_mut(place.cast(), self.places) }
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
        let Claim { sender, places } = self;
        assert!(count <= places, "the claim has {places} places, not {count}");
        if count == 0 {
            return Ok(());
        }
        sender.publish_claimed(count);
        if !sender.is_undisturbed() {
            let lost = attend_to_many(&**sender.shared, sender.writing.sent());
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
        let writing = self.writing;
        let places = outgoing(&self.shared, |own| {
            own.reclaim(writing);
            match own.long_record(&writing, most) {
                Some((count, _)) if count > Geometry::<T>::PER_FRAME => {
                    own.lend();
                    count
                }
                _ => most.min(writing.left()),
            }
        });
        if places > writing.left() {
            // Until the header behind is good again nothing may be sent past `make_room`, also if
            // the claim is forgotten.
            self.writing.withhold();
        }
        Ok(Claim { places, sender: self })
    }

    /// Publishes messages that were written to a claim.
    fn publish_claimed(&mut self, count: usize) {
        let shared = &**self.shared;
        let mut writing = self.writing;
        outgoing(shared, |own| {
            if count <= Geometry::<T>::PER_FRAME {
                own.reclaim(writing);
                own.allow(&mut writing);
                return writing.go_to(writing.publish(count));
            }
            own.accept();
            let units = Geometry::<T>::units(count);
            if units * Geometry::<T>::PER_FRAME <= count {
                return own.publish_long_record(shared, &mut writing, count, units);
            }
            // Fewer were sent than claimed, and the last line would be too empty (see
            // `long_record`): what is in it becomes the beginning of a frame of its own.
            let full = Geometry::<T>::fits(units - 1);
            let rest = count - full;
            // SAFETY: inside the room that was claimed.
            let from = unsafe { writing.at().add(full) };
            own.move_to_frame(&writing, from, units - 1, rest);
            own.publish_long_record(shared, &mut writing, full, units - 1);
            writing.go_to(writing.publish(rest));
        });
        self.writing = writing;
    }
}
