use std::fmt;
use std::mem::ManuallyDrop;
use std::panic::{RefUnwindSafe, UnwindSafe};

use super::shared::{CLOSED, Channel, SENT};
use crate::error::SendError;

/// The sending end of a [one-shot](crate::oneshot).
///
/// Dropping it without sending disconnects the receiver.
pub struct Sender<T> {
    channel: Channel<T>,
}

// SAFETY: the message moves to the receiver's thread and is never shared; the state is atomic.
unsafe impl<T: Send> Send for Sender<T> {}
// SAFETY: a shared sender only reads the state.
unsafe impl<T: Send> Sync for Sender<T> {}
impl<T> UnwindSafe for Sender<T> {}
impl<T> RefUnwindSafe for Sender<T> {}

impl<T> Sender<T> {
    pub(super) fn new(channel: Channel<T>) -> Self {
        Sender { channel }
    }

    /// Sends the message, and wakes the receiver if it waits. Never waits.
    ///
    /// ```
    /// use threadtoll::error::SendError;
    /// use threadtoll::oneshot;
    ///
    /// let (sender, mut receiver) = oneshot::channel();
    /// assert_eq!(sender.send(1), Ok(()));
    /// assert_eq!(receiver.recv(), Ok(1));
    ///
    /// let (sender, receiver) = oneshot::channel();
    /// drop(receiver);
    /// assert_eq!(sender.send(2), Err(SendError(2)));
    /// ```
    ///
    /// # Errors
    ///
    /// If the receiver is gone. The error contains the message.
    ///
    /// # Panics
    ///
    /// If the waker of the receiver's task panics. The message has then been sent.
    #[inline]
    pub fn send(self, message: T) -> Result<(), SendError<T>> {
        let channel = ManuallyDrop::new(self).channel;
        // SAFETY: this is the sender, which sends only here.
        unsafe { channel.put_message(message) };
        if channel.finish(SENT) {
            return Ok(());
        }
        // SAFETY: the receiver left before the message was sent, so this end has the channel to
        // itself.
        let message = unsafe { channel.take_message() };
        channel.free();
        Err(SendError(message))
    }

    /// Returns `true` if the receiver has been dropped, so that nobody wants the message.
    ///
    /// ```
    /// let (sender, receiver) = threadtoll::oneshot::channel::<u64>();
    /// assert!(!sender.is_disconnected());
    /// drop(receiver);
    /// assert!(sender.is_disconnected());
    /// ```
    pub fn is_disconnected(&self) -> bool {
        self.channel.has_left()
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if !self.channel.finish(CLOSED) {
            self.channel.free();
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}
