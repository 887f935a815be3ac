use super::{NoRoom, Sender, Until, send_many_slow, with_writer};
use crate::error::SendError;
use crate::pipe::memory::Geometry;
use crate::pipe::shared::Shared;
use crate::pipe::writer::WriteCursor;

impl<T: Copy> Sender<T> {
    /// Sends copies of all messages in a slice, waiting for room. This is faster than sending them
    /// one by one, and the receiver can also take them [as
    /// slices](crate::pipe::Receiver::recv_batch).
    ///
    /// ```
    /// let (mut sender, mut receiver) = threadtoll::pipe::unbounded();
    /// sender.send_slice(&[1, 2, 3]).unwrap();
    /// assert_eq!(receiver.recv(), Ok(1));
    /// ```
    ///
    /// # Errors
    ///
    /// If the receiver is gone, returns how many of these messages it received or dropped.
    pub fn send_slice(&mut self, messages: &[T]) -> Result<(), SendError<usize>> {
        self.send_slice_until(messages, Until::Deadline(None)).map(drop)
    }

    /// Sends copies of as many messages as there is room for. Returns their number.
    ///
    /// # Errors
    ///
    /// If the receiver is gone, returns how many of these messages it received or dropped.
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
            let rest = &messages[sent..];
            let free = self.cursor.free_slots();
            let can_run = Geometry::<T>::PACKS_RUNS && free == Geometry::<T>::PER_FRAME;
            sent += if can_run && rest.len() >= Geometry::<T>::MIN_RUN {
                put_run(&**self.shared, &mut self.cursor, rest)
            } else if Geometry::<T>::PACKS_RUNS && rest.len() > free + Geometry::<T>::PER_FRAME {
                put_frames(&**self.shared, &mut self.cursor, rest, free)
            } else {
                put(&mut self.cursor, rest, free)
            };
            if !self.is_quiet() {
                let lost = send_many_slow(&**self.shared, self.cursor.sent());
                if lost > 0 {
                    return Err(SendError(sent.saturating_sub(lost as usize)));
                }
            }
        }
        Ok(sent)
    }

    /// Returns the number of messages, out of the last `sent`, that the receiver took before it
    /// left. If messages have no destructor, a receiver leaves without a barrier, so it may have
    /// missed some messages that were sent before the sender saw it leave.
    #[cold]
    fn delivered(&self, sent: usize) -> usize {
        sent.saturating_sub(send_many_slow(&**self.shared, self.cursor.sent()) as usize)
    }
}

/// Copies as many messages as fit into the `free` slots of the open frame, and publishes them.
/// Returns their number.
#[inline(always)]
fn put<T: Copy>(cursor: &mut WriteCursor<T>, messages: &[T], free: usize) -> usize {
    let count = messages.len().min(free);
    // SAFETY: free slots of the open frame; the slice is not in the pipe.
    unsafe { cursor.next_slot().copy(messages.as_ptr(), count) };
    cursor.advance_to(cursor.publish(count));
    count
}

/// Like [`put`], but continues in the frames after the open one, as long as the remaining messages
/// are too few for a long run. The open frame is published last, so that a receiver that waits for
/// it finds all messages at once.
#[inline(never)]
fn put_frames<T: Copy>(
    shared: &Shared<T>,
    cursor: &mut WriteCursor<T>,
    messages: &[T],
    free: usize,
) -> usize {
    let first = *cursor;
    let mut ahead = first;
    // SAFETY: free slots of the open frame; the slice is not in the pipe.
    unsafe { ahead.next_slot().copy(messages.as_ptr(), free) };
    ahead.advance_to(ahead.sent() + free as u64);
    let mut sent = free;
    while sent < messages.len() && messages.len() - sent < Geometry::<T>::MIN_RUN {
        // SAFETY: we are the sender.
        let stepped = shared.writer.with_mut(|writer| unsafe { &*writer }.step(ahead));
        let Some(next) = stepped else { break };
        ahead = next;
        let free = ahead.free_slots();
        sent += put(&mut ahead, &messages[sent..], free);
    }
    let _ = first.publish(free);
    *cursor = ahead;
    sent
}

/// Like [`put`], but as a long run if one fits.
///
/// Updates the cursor in place. If the cursor were copied just after its fields were stored one by
/// one, the CPU would wait for all earlier stores, including those of the messages.
#[inline(never)]
fn put_run<T: Copy>(shared: &Shared<T>, cursor: &mut WriteCursor<T>, messages: &[T]) -> usize {
    with_writer(shared, |writer| {
        let Some((count, units)) = writer.fit_run(cursor, messages.len(), Geometry::<T>::MIN_RUN)
        else {
            return put(cursor, messages, cursor.free_slots());
        };
        // SAFETY: a run of `count` messages fits here.
        let first = unsafe { cursor.frame.first_of_run(count) };
        // SAFETY: the run's slots are free, and the slice is not in the pipe.
        unsafe { first.copy(messages.as_ptr(), count) };
        writer.publish_run(shared, cursor, count, units);
        count
    })
}
