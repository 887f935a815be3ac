use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::shared::{Channel, is_over};
use crate::error::{RecvError, RecvTimeoutError, TryRecvError};
use crate::sync::Instant;
use crate::wait::{Needs, Watch};

/// The receiving end of a [one-shot](crate::oneshot).
///
/// It is a [`Future`] of what [`recv`](Self::recv) returns. The methods that wait and the future
/// may follow each other in any order: a wait that times out, or a future that is dropped, loses no
/// message.
///
/// ```
#[doc = include_str!("../../docs/block_on.txt")]
/// use threadtoll::oneshot;
///
/// async fn answer(receiver: oneshot::Receiver<u64>) -> Option<u64> {
///     receiver.await.ok()
/// }
///
/// let (sender, receiver) = oneshot::channel();
/// std::thread::spawn(move || sender.send(42));
/// assert_eq!(block_on(answer(receiver)), Some(42));
/// ```
///
/// Dropping the receiver drops a message that was not received, and disconnects the sender.
pub struct Receiver<T> {
    /// `None` once the message was received, or the receiver has learned that there is none.
    channel: Option<Channel<T>>,
}

// SAFETY: the message moves from the sender's thread and is never shared; the state is atomic.
unsafe impl<T: Send> Send for Receiver<T> {}
// SAFETY: a shared receiver only reads the state.
unsafe impl<T: Send> Sync for Receiver<T> {}
impl<T> UnwindSafe for Receiver<T> {}
impl<T> RefUnwindSafe for Receiver<T> {}

impl<T> Receiver<T> {
    pub(super) fn new(channel: Channel<T>) -> Self {
        Receiver { channel: Some(channel) }
    }

    /// Receives the message, waiting for it if it has not been sent.
    ///
    /// ```
    /// use threadtoll::error::RecvError;
    /// use threadtoll::oneshot;
    ///
    /// let (sender, mut receiver) = oneshot::channel();
    /// let sending = std::thread::spawn(move || sender.send(1));
    /// assert_eq!(receiver.recv(), Ok(1));
    /// assert_eq!(receiver.recv(), Err(RecvError), "there is only one message");
    /// # sending.join().unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// If the sender was dropped without sending, or if the message has been received.
    #[inline]
    pub fn recv(&mut self) -> Result<T, RecvError> {
        // Without a deadline, nothing can time out.
        self.recv_until(|| None).map_err(|_| RecvError)
    }

    /// Receives the message if it has been sent. Never waits.
    ///
    /// ```
    /// use threadtoll::error::TryRecvError;
    /// use threadtoll::oneshot;
    ///
    /// let (sender, mut receiver) = oneshot::channel();
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.try_recv(), Ok(1));
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    /// ```
    ///
    /// # Errors
    ///
    /// If the message has not been sent yet; or if it never will be, because the sender was dropped
    /// or the message has been received.
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let Some(channel) = self.channel else { return Err(TryRecvError::Disconnected) };
        let state = channel.look();
        if is_over(state) {
            return Ok(self.finish(channel, state)?);
        }
        let inherited = channel.is_inherited();
        Err(if inherited { TryRecvError::Disconnected } else { TryRecvError::Empty })
    }

    /// Receives the message, waiting for at most `timeout`.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use threadtoll::oneshot;
    ///
    /// let (sender, mut receiver) = oneshot::channel();
    /// let soon = Duration::from_millis(1);
    /// assert!(receiver.recv_timeout(soon).unwrap_err().is_timeout());
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.recv_timeout(soon), Ok(1));
    /// ```
    ///
    /// # Errors
    ///
    /// If the message was not sent in time, or for the reasons of [`Receiver::recv`].
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        // If the clock cannot represent the deadline, there is no limit.
        self.recv_until(|| Instant::now().checked_add(timeout))
    }

    /// Receives the message, waiting until `deadline`; see [`Receiver::recv_timeout`].
    ///
    /// # Errors
    ///
    /// As for [`Receiver::recv_timeout`].
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub fn recv_deadline(&mut self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.recv_until(|| Some(deadline))
    }

    /// Receives the message if it has been sent. Otherwise the task of this context is woken when
    /// it is sent or when the sender is dropped.
    ///
    /// Only the waker of the last call is woken. It is dropped when it is woken, replaced or no
    /// longer needed.
    ///
    /// # Errors
    ///
    /// As for [`Receiver::recv`].
    ///
    /// # Panics
    ///
    /// If the waker panics while it is cloned or dropped. The message is then still in the channel.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Result<T, RecvError>> {
        let Some(channel) = self.channel else { return Poll::Ready(Err(RecvError)) };
        let mut state = channel.look();
        if !is_over(state) {
            match channel.watch(context.waker()) {
                Ok(now) => state = now,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        if is_over(state) { Poll::Ready(self.finish(channel, state)) } else { Poll::Pending }
    }

    /// Returns `true` if the sender is gone, because it has sent or was dropped. Receiving then
    /// does not wait.
    ///
    /// ```
    /// let (sender, receiver) = threadtoll::oneshot::channel();
    /// assert!(!receiver.is_disconnected());
    /// sender.send(1).unwrap();
    /// assert!(receiver.is_disconnected());
    /// ```
    pub fn is_disconnected(&self) -> bool {
        self.channel.is_none_or(|channel| is_over(channel.look()))
    }

    #[inline]
    fn recv_until(
        &mut self,
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> Result<T, RecvTimeoutError> {
        let Some(channel) = self.channel else { return Err(RecvTimeoutError::Disconnected) };
        let mut state = channel.look();
        if !is_over(state) {
            state = channel.wait(deadline())?;
        }
        Ok(self.finish(channel, state)?)
    }

    /// Leaves the channel, and returns the message that the sender may have sent.
    #[inline]
    fn finish(&mut self, channel: Channel<T>, state: u32) -> Result<T, RecvError> {
        self.channel = None;
        channel.leave_behind_sender(state).ok_or(RecvError)
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    /// See [`Receiver::poll_recv`]. May be called again after it was ready.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().poll_recv(context)
    }
}

/// Waiting by a `Select`.
impl<T> Watch for Receiver<T> {
    fn is_ready(&mut self) -> bool {
        self.is_disconnected()
    }

    fn settle(&mut self) -> bool {
        self.channel.is_none_or(|channel| is_over(channel.look()) || channel.is_inherited())
    }

    fn watch(&mut self, waker: &Waker) -> Needs {
        // The next poll finds the state that it returns. No barrier is needed, because both ends
        // update the same word.
        let _ = self.channel.map(|channel| channel.watch(waker));
        Needs::Nothing
    }

    fn unwatch(&mut self, _: bool) {
        drop(self.channel.and_then(Channel::unwatch));
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if let Some(channel) = self.channel.take() {
            drop(channel.leave());
        }
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}
