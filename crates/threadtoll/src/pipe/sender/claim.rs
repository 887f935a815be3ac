//! Room that is lent, to be written in place.

use super::Sender;
use super::room::{NoRoom, Until};
use crate::error::SendError;
use crate::pipe::memory::Geometry;
use crate::pipe::shared::{ALIVE, RECEIVER_GONE};
use crate::sync::Ordering;
use crate::wait::{Adaptive, Wait};

/// Room for messages that are written in place; see [`Sender::claim`]. Dropped without [`Claim::send`], nothing is sent.
#[derive(Debug)]
pub struct Claim<'a, T, W: Wait = Adaptive> {
    sender: &'a mut Sender<T, W>,
    places: usize,
}

impl<T, W: Wait> Claim<'_, T, W> {
    /// The room: at least one place, at most as many as were asked for.
    pub fn room(&mut self) -> &mut [std::mem::MaybeUninit<T>] {
        let place = self.sender.frame.place(self.sender.filled);
        // SAFETY: free places of the record that is open, side by side; `MaybeUninit` may hold anything.
        unsafe { std::slice::from_raw_parts_mut(place.as_ptr().cast(), self.places) }
    }

    /// Sends the first `count` places.
    ///
    /// # Panics
    ///
    /// If there are not so many.
    ///
    /// # Safety
    ///
    /// They must have been written.
    pub unsafe fn send(self, count: usize) {
        assert!(count <= self.places, "the claim has {} places, not {count}", self.places);
        if count == 0 {
            return;
        }
        let Claim { sender, places } = self;
        sender.filled += count;
        if sender.filled > Geometry::<T>::PER_FRAME {
            sender.close_claimed();
        } else {
            if places > Geometry::<T>::PER_FRAME {
                sender.restore();
            }
            sender.publish();
        }
        sender.flush();
    }
}

impl<T, W: Wait> Sender<T, W> {
    /// Lends room for up to `most` messages that are to be written in place, side by side; waits for room like [`Sender::send`].
    ///
    /// The room that is lent may be for fewer messages, never for none: what is left of a line, or up to a page where a line
    /// begins.
    ///
    /// ```
    /// let (mut sender, mut receiver) = threadtoll::pipe::bounded(64);
    /// let mut claim = sender.claim(4).unwrap();
    /// claim.room()[0].write(7);
    /// // SAFETY: the first place was written.
    /// unsafe { claim.send(1) };
    /// assert_eq!(receiver.recv(), Ok(7));
    /// ```
    ///
    /// # Errors
    ///
    /// If the receiver is gone; in a forked child.
    ///
    /// # Panics
    ///
    /// If `most` is 0.
    pub fn claim(&mut self, most: usize) -> Result<Claim<'_, T, W>, SendError<()>> {
        assert!(most > 0, "a claim of no messages");
        self.flush();
        let state = self.shared.state.load(Ordering::Relaxed);
        if state & ALIVE == 0 {
            return Err(SendError::Forked(()));
        }
        if state & RECEIVER_GONE != 0 {
            return Err(SendError::Disconnected(()));
        }
        if self.filled == self.allowed {
            self.make_room(Until::Deadline(None)).map_err(|no_room| match no_room {
                NoRoom::Forked => SendError::Forked(()),
                NoRoom::Full | NoRoom::Disconnected => SendError::Disconnected(()),
            })?;
        }
        let wanted = most.min(self.room());
        let places = match self.long_record(wanted) {
            Some((count, _)) => count,
            None => wanted.min(Geometry::<T>::PER_FRAME - self.filled),
        };
        if places > Geometry::<T>::PER_FRAME {
            // The room reaches over the header behind the frame. Until that is zero again nothing may be sent past `make_room`,
            // also if the claim is forgotten.
            self.allowed = self.filled;
        }
        Ok(Claim { places, sender: self })
    }

    /// Publishes a claimed record of more messages than a frame holds.
    fn close_claimed(&mut self) {
        let units = Geometry::<T>::units(self.filled);
        if units * Geometry::<T>::PER_FRAME <= self.filled {
            return self.close_long_record(units);
        }
        // Fewer were sent than claimed, and the last line would be too empty (see `long_record`): what is in it becomes the
        // beginning of a frame of its own.
        let full = Geometry::<T>::fits(units - 1);
        let rest = self.filled - full;
        let frame = self.unit + units - 1;
        let (from, to) = (self.frame.place(full), self.memory.frame(frame).place(0));
        // SAFETY: both inside the room that was claimed, which may overlap itself; the messages were written.
        unsafe { std::ptr::copy(from.as_ptr(), to.as_ptr(), rest) };
        self.filled = full;
        self.prepare(frame);
        self.close_long_record(units - 1);
        self.filled = rest;
        self.publish();
    }
}
