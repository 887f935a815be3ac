//! Receiving in a task.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::*;

impl<T> Receiver<T> {
    /// Receives the next message, in a task of any executor.
    ///
    /// The future is cancel-safe: a message leaves the funnel only when the future returns it, so
    /// dropping the future loses nothing. It may be polled by another task, thread or executor than
    /// before. A future and the methods that wait may follow each other in any order.
    ///
    /// The future does not spin: [`Wait`](crate::wait::Wait) is for threads. When it begins to
    /// wait, it may disturb other threads, [as a sleep
    /// does](crate::wait#what-a-sleep-costs-others).
    ///
    /// ```
    #[doc = include_str!("../../../docs/block_on.txt")]
    /// let (sender, mut receiver) = threadtoll::funnel::unbounded();
    /// let sending = std::thread::spawn(move || sender.send(1).unwrap());
    /// block_on(async {
    ///     assert_eq!(receiver.recv_async().await, Ok(1));
    ///     assert!(receiver.recv_async().await.is_err(), "all senders are gone");
    /// });
    /// # sending.join().unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// If all senders are gone and everything has been received.
    pub fn recv_async(&mut self) -> RecvFuture<'_, T> {
        RecvFuture { receiver: self, waits: false }
    }

    /// Receives the next message if it is ready. Otherwise the task of this context is woken when
    /// it is, or when the last sender is dropped.
    ///
    /// Only the waker of the last call is woken. It is dropped when it is woken or replaced, and at
    /// the latest with the receiver. If it panics when it is woken, the senders are not affected.
    ///
    /// If the task then receives by [`try_recv`](Self::try_recv) instead, each send looks for the
    /// waker, and so takes longer, until the next call of this method or of one that waits.
    ///
    /// ```
    /// use std::task::{Context, Poll, Waker};
    ///
    /// let (sender, mut receiver) = threadtoll::funnel::unbounded();
    /// let mut context = Context::from_waker(Waker::noop());
    /// assert_eq!(receiver.poll_recv(&mut context), Poll::Pending);
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.poll_recv(&mut context), Poll::Ready(Ok(1)));
    /// ```
    ///
    /// # Errors
    ///
    /// If all senders are gone and everything has been received.
    ///
    /// # Panics
    ///
    /// If the waker panics while it is cloned or dropped. No message is then lost.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Result<T, RecvError>> {
        match self.find_or_watch(context.waker()) {
            WaitOutcome::Found(Polled::Message) => Poll::Ready(self.take()),
            WaitOutcome::Found(Polled::Closed) | WaitOutcome::Forked => Poll::Ready(Err(RecvError)),
            WaitOutcome::TimedOut => Poll::Pending,
        }
    }

    /// Looks for a message. If there is none, has this task woken once there is.
    #[inline]
    fn find_or_watch(&mut self, waker: &Waker) -> WaitOutcome<Polled> {
        if self.poll() {
            if self.announced.is_any() {
                drop(self.stop_watching());
            }
            return WaitOutcome::Found(Polled::Message);
        }
        self.watch(waker)
    }

    #[cold]
    #[inline(never)]
    fn watch(&mut self, waker: &Waker) -> WaitOutcome<Polled> {
        self.find_by(Waiter::Task(waker))
    }
}

/// The messages that come until all senders are gone. With the feature `stream`.
#[cfg(feature = "stream")]
impl<T> futures_core::Stream for Receiver<T> {
    type Item = T;

    /// See [`Receiver::poll_recv`].
    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().poll_recv(context).map(Result::ok)
    }
}

/// The future of [`Receiver::recv_async`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct RecvFuture<'a, T> {
    receiver: &'a mut Receiver<T>,
    /// True if the last poll was pending.
    waits: bool,
}

impl<T> Future for RecvFuture<'_, T> {
    type Output = Result<T, RecvError>;

    /// See [`Receiver::poll_recv`]. May be called again after it was ready, for the next message.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.receiver.poll_recv(context);
        self.waits = polled.is_pending();
        polled
    }
}

impl<T> Drop for RecvFuture<'_, T> {
    fn drop(&mut self) {
        if self.waits {
            drop(self.receiver.stop_watching());
        }
    }
}

impl<T> fmt::Debug for RecvFuture<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvFuture").finish_non_exhaustive()
    }
}
