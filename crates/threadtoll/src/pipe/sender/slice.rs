//! Sending many messages at once, by copying them.

use super::{NoRoom, Sender, Until, send_many_slow, with_writer};
use crate::error::SendError;
use crate::pipe::shared::Shared;
use crate::pipe::writer::WriteCursor;
use crate::wait::Wait;

impl<T: Copy, W: Wait> Sender<T, W> {
    /// Sends copies of all of them, waiting for room where there is none. The receiver can take
    /// them as slices.
    ///
    /// # Errors
    ///
    /// If the receiver is gone, with the number of messages that it received or dropped before
    /// that.
    pub fn send_slice(&mut self, messages: &[T]) -> Result<(), SendError<usize>> {
        self.send_slice_until(messages, Until::Deadline(None)).map(drop)
    }

    /// Sends copies of as many of them as there is room for. Returns their number.
    ///
    /// # Errors
    ///
    /// If the receiver is gone, with the number of messages that it received or dropped before
    /// that.
    pub fn try_send_slice(&mut self, messages: &[T]) -> Result<usize, SendError<usize>> {
        self.send_slice_until(messages, Until::Now)
    }

    fn send_slice_until(
        &mut self,
        messages: &[T],
        until: Until,
    ) -> Result<usize, SendError<usize>> {
        let mut sent = 0;
        while sent < messages.len() {
            match self.find_room(|| until) {
                None => {}
                Some(NoRoom::Full) => return Ok(sent),
                Some(NoRoom::Disconnected) => return Err(SendError(self.delivered(sent))),
            }
            sent += put(&**self.shared, &mut self.cursor, &messages[sent..]);
            if !self.is_quiet() {
                let lost = send_many_slow(&**self.shared, self.cursor.sent());
                if lost > 0 {
                    return Err(SendError(sent.saturating_sub(lost as usize)));
                }
            }
        }
        Ok(sent)
    }

    /// Of the last `sent` messages, the number of those that the receiver, which is gone, received
    /// or dropped. It may have missed some that were sent before we saw it go: a receiver of
    /// messages that need no drop leaves without a barrier.
    #[cold]
    fn delivered(&self, sent: usize) -> usize {
        sent.saturating_sub(send_many_slow(&**self.shared, self.cursor.sent()) as usize)
    }
}

/// Copies as many messages as fit into one run, and publishes them. There must be room for at
/// least one. Returns their number.
///
/// In place: to copy what was just stored in smaller pieces, a CPU waits until all stores before
/// are done, those of the messages too.
#[inline(never)]
fn put<T: Copy>(shared: &Shared<T>, cursor: &mut WriteCursor<T>, messages: &[T]) -> usize {
    with_writer(shared, |writer| {
        if let Some((count, units)) = writer.fit_run(cursor, messages.len()) {
            // SAFETY: so many messages fit into a run here, all of it free, and the slice is not
            // in the pipe.
            unsafe { cursor.next_slot().copy(messages.as_ptr(), count) };
            writer.publish_run(shared, cursor, count, units);
            return count;
        }
        let count = messages.len().min(cursor.free_slots());
        // SAFETY: as above.
        unsafe { cursor.next_slot().copy(messages.as_ptr(), count) };
        cursor.advance_to(cursor.publish(count));
        count
    })
}
