//! Sending in a task.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::pipe::shared::SENDER;
use crate::wait::Waiter;

impl<T> Sender<T> {
    /// Sends a message, waiting for room in a task of any executor if the pipe is bounded and full.
    ///
    /// If the future is dropped before it is ready, the message has not been sent and is dropped
    /// with it. To keep the message in that case, use [`try_send`](Self::try_send). The future may
    /// be polled by another task, thread or executor than before.
    ///
    /// ```
    #[doc = include_str!("../../../docs/block_on.txt")]
    /// let (mut sender, receiver) = threadtoll::pipe::bounded(1);
    /// let receiving = std::thread::spawn(move || receiver.into_iter().sum::<u64>());
    /// block_on(async {
    ///     for number in 1..=100 {
    ///         sender.send_async(number).await.unwrap();
    ///     }
    /// });
    /// drop(sender);
    /// assert_eq!(receiving.join().unwrap(), 5050);
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the message if the receiver is gone.
    pub fn send_async(&mut self, message: T) -> SendFuture<'_, T> {
        SendFuture { sender: self, message: Some(message), waits: false }
    }

    /// Makes the receiver wake this task. Returns `true` if there is room by now, or the receiver
    /// has left.
    #[cold]
    fn watch(&mut self, waker: &Waker) -> bool {
        let (shared, cursor) = (&**self.shared, self.cursor);
        let waited = with_writer(shared, |writer| {
            writer.wait_for_room(shared, &cursor, Waiter::Task(waker))
        });
        !matches!(waited, Err(NoRoom::Full))
    }
}

/// The future of [`Sender::send_async`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct SendFuture<'a, T> {
    sender: &'a mut Sender<T>,
    /// `None` once the future was ready.
    message: Option<T>,
    /// True if the last poll was pending.
    waits: bool,
}

// The message is never pinned.
impl<T> Unpin for SendFuture<'_, T> {}

impl<T> Future for SendFuture<'_, T> {
    type Output = Result<(), SendError<T>>;

    /// # Panics
    ///
    /// If it is called again after it was ready, or if the waker panics while it is cloned or
    /// dropped.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(self.message.is_some(), "this message has been sent");
        let no_room = loop {
            match self.sender.find_room(|| Until::Now) {
                Some(NoRoom::Full) if self.sender.watch(context.waker()) => {}
                no_room => break no_room,
            }
        };
        self.waits = matches!(no_room, Some(NoRoom::Full));
        if self.waits {
            return Poll::Pending;
        }
        let Some(message) = self.message.take() else { unreachable!("looked at above") };
        Poll::Ready(match no_room {
            None => self.sender.push(message),
            Some(_) => Err(SendError(message)),
        })
    }
}

impl<T> Drop for SendFuture<'_, T> {
    fn drop(&mut self) {
        if self.waits {
            drop(self.sender.shared.stop_watching(SENDER));
        }
    }
}

impl<T> fmt::Debug for SendFuture<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendFuture").finish_non_exhaustive()
    }
}
