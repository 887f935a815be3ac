#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
mod claim;
mod future;
mod slice;

use std::fmt;
use std::hint::cold_path;
use std::mem::ManuallyDrop;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::time::Duration;

#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
pub use claim::Claim;
pub use future::SendFuture;

use super::shared::{ALIVE, RECEIVER_GONE, RECEIVER_SLEEPS, Shared};
use super::writer::{NoRoom, WriteCursor, Writer};
use crate::error::{SendError, SendTimeoutError, TrySendError};
use crate::first_panic::FirstPanic;
use crate::sync::{Arc, AtomicU32, Instant, Ordering, light_barrier, mutate};
use crate::wait::Until;

/// The sending end of a pipe.
///
/// When the sender is dropped, the receiver still gets everything that has been sent, followed by
/// an error.
#[repr(align(128))]
pub struct Sender<T> {
    /// Borrowed only by inlined code, except when a slice is sent, so that a loop around `send`
    /// keeps the cursor in registers.
    cursor: WriteCursor<T>,
    /// Pointer to `shared.state`, to save an indirection.
    state: NonNull<AtomicU32>,
    shared: ManuallyDrop<Arc<Shared<T>>>,
}

// SAFETY: this is the only sender, its messages may be sent to other threads, and its pointers lead
// to memory that `shared` keeps alive or to chunks that the sender owns.
unsafe impl<T: Send> Send for Sender<T> {}
impl<T> UnwindSafe for Sender<T> {}
impl<T> RefUnwindSafe for Sender<T> {}

impl<T> Sender<T> {
    pub(super) fn new(shared: Arc<Shared<T>>, cursor: WriteCursor<T>) -> Self {
        let state = NonNull::from(&*shared.state);
        Sender { cursor, state, shared: ManuallyDrop::new(shared) }
    }

    /// Sends a message, waiting for room if the pipe is bounded and full.
    ///
    /// In a destructor, use [`send_timeout`](Self::send_timeout): if the receiver's thread waits
    /// for that destructor, there will never be room.
    ///
    /// ```
    /// let (mut sender, receiver) = threadtoll::pipe::bounded(8);
    /// sender.send(1).unwrap();
    /// drop(receiver);
    /// assert_eq!(sender.send(2).unwrap_err().into_inner(), 2);
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the message if the receiver is gone.
    #[inline(always)]
    pub fn send(&mut self, message: T) -> Result<(), SendError<T>> {
        match self.find_room(|| Until::Deadline(None)) {
            None => self.push(message),
            Some(_) => Err(SendError(message)),
        }
    }

    /// Sends a message if there is room for it.
    ///
    /// ```
    /// use threadtoll::error::TrySendError;
    ///
    /// let (mut sender, _receiver) = threadtoll::pipe::bounded(1);
    /// assert_eq!(sender.try_send(1), Ok(()));
    /// assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the message if the pipe is bounded and full, or if the receiver is gone.
    #[inline]
    pub fn try_send(&mut self, message: T) -> Result<(), TrySendError<T>> {
        match self.find_room(|| Until::Now) {
            None => Ok(self.push(message)?),
            Some(NoRoom::Full) => Err(TrySendError::Full(message)),
            Some(NoRoom::Disconnected) => Err(TrySendError::Disconnected(message)),
        }
    }

    /// Sends a message, waiting for room for at most `timeout`.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let (mut sender, _receiver) = threadtoll::pipe::bounded(1);
    /// sender.send(1).unwrap();
    /// assert!(sender.send_timeout(2, Duration::from_millis(1)).unwrap_err().is_timeout());
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the message if there was no room in time, or if the receiver is gone.
    pub fn send_timeout(
        &mut self,
        message: T,
        timeout: Duration,
    ) -> Result<(), SendTimeoutError<T>> {
        // If the clock cannot represent the deadline, there is no limit.
        self.send_until(message, || Instant::now().checked_add(timeout))
    }

    /// Sends a message, waiting for room until `deadline`; see [`Sender::send_timeout`].
    ///
    /// # Errors
    ///
    /// Returns the message if there was no room in time, or if the receiver is gone.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub fn send_deadline(
        &mut self,
        message: T,
        deadline: Instant,
    ) -> Result<(), SendTimeoutError<T>> {
        self.send_until(message, || Some(deadline))
    }

    #[inline(always)]
    fn send_until(
        &mut self,
        message: T,
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> Result<(), SendTimeoutError<T>> {
        match self.find_room(|| Until::Deadline(deadline())) {
            None => Ok(self.push(message)?),
            Some(NoRoom::Full) => Err(SendTimeoutError::Timeout(message)),
            Some(NoRoom::Disconnected) => Err(SendTimeoutError::Disconnected(message)),
        }
    }

    /// Sends the items of an iterator one by one, waiting for room. Returns their number.
    ///
    /// If the iterator panics, the items before the panic have been sent.
    ///
    /// ```
    /// let (mut sender, mut receiver) = threadtoll::pipe::unbounded();
    /// assert_eq!(sender.send_all(1..=3), Ok(3));
    /// assert!(receiver.try_iter().eq([1, 2, 3]));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the item that could not be sent if the receiver is gone. Further items stay in the
    /// iterator, so pass it by `&mut` to keep them.
    pub fn send_all(
        &mut self,
        messages: impl IntoIterator<Item = T>,
    ) -> Result<usize, SendError<T>> {
        let mut sent = 0;
        for message in messages {
            self.send(message)?;
            sent += 1;
        }
        Ok(sent)
    }

    /// Number of messages that have been sent and not yet received; a snapshot if the receiver is
    /// active. Messages in a [`Batch`](super::Batch) count until the batch is dropped.
    pub fn len(&self) -> usize {
        let taken = self.shared.taken.load(Ordering::Acquire);
        self.cursor.sent().saturating_sub(taken) as usize
    }

    /// Returns `true` if every message has been received.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `true` if the pipe is bounded and full.
    pub fn is_full(&self) -> bool {
        self.len() as u64 >= self.shared.layout.capacity
    }

    /// Maximum number of messages in the pipe, or `None` if it is unbounded.
    pub fn capacity(&self) -> Option<usize> {
        super::capacity(&self.shared)
    }

    /// Returns `true` if the receiver has been dropped, or if this is a forked child.
    pub fn is_disconnected(&self) -> bool {
        let state = self.shared.state.load(Ordering::Acquire);
        state & ALIVE == 0 || state & RECEIVER_GONE != 0
    }

    /// Memory that the pipe uses.
    pub fn memory(&self) -> super::MemoryUse {
        super::memory_use(&self.shared)
    }

    /// Looks for room for a message, waiting for it if `until` allows. Returns `None` once there is
    /// room.
    #[inline(always)]
    fn find_room(&mut self, until: impl FnOnce() -> Until) -> Option<NoRoom> {
        if self.cursor.free_slots() > 0 {
            return None;
        }
        // Cold for the same reason as in `Receiver::find`.
        cold_path();
        let shared = &**self.shared;
        // SAFETY: we are the sender.
        let stepped = shared.writer.with_mut(|writer| unsafe { &*writer }.step(self.cursor));
        if let Some(cursor) = stepped {
            self.cursor.move_to(cursor);
            return None;
        }
        let (cursor, no_room) = make_room(shared, self.cursor, until());
        self.cursor.move_to(cursor);
        no_room
    }

    /// Publishes a message. There must be room for it.
    #[inline(always)]
    fn push(&mut self, message: T) -> Result<(), SendError<T>> {
        // SAFETY: we are the sender, and there is room, so the slot is free.
        unsafe { self.cursor.next_slot().write(message) };
        let sent = self.cursor.publish(1);
        let quiet = self.is_quiet();
        // Stored last, so that no atomic operation comes between this store and the load in the
        // next send. A loop around `send` then keeps the value in a register, even if the sender
        // itself is in memory.
        self.cursor.advance_to(sent);
        if quiet {
            return Ok(());
        }
        cold_path();
        match send_slow(&**self.shared, self.cursor) {
            None => Ok(()),
            Some(message) => {
                self.cursor.advance_to(sent - 1);
                Err(SendError(message))
            }
        }
    }

    /// Called after publishing. Returns `true` if the receiver is awake and present, no fence is
    /// needed, and this is not a forked child.
    #[inline(always)]
    fn is_quiet(&self) -> bool {
        // A receiver that is about to sleep or leave sets its bit, makes this thread execute a
        // barrier here, and polls once more. So only the compiler has to be kept from moving the
        // load before the store of the header.
        mutate!(barrier_in_send, light_barrier() => ());
        // SAFETY: part of `shared`, which is alive.
        let state = unsafe { self.state.as_ref() };
        // Relaxed: the slow path loads the word again.
        state.load(Ordering::Relaxed) == ALIVE
    }
}

/// The slow path of [`Sender::find_room`].
#[cold]
#[inline(never)]
fn make_room<T>(
    shared: &Shared<T>,
    mut cursor: WriteCursor<T>,
    until: Until,
) -> (WriteCursor<T>, Option<NoRoom>) {
    let no_room = with_writer(shared, |writer| writer.make_room(shared, &mut cursor, until).err());
    (cursor, no_room)
}

/// Borrows the sender's own state. Only the sender may call this.
fn with_writer<T, R>(shared: &Shared<T>, body: impl FnOnce(&mut Writer<T>) -> R) -> R {
    // SAFETY: we are the sender, and these calls are not nested.
    shared.writer.with_mut(|writer| body(unsafe { &mut *writer }))
}

/// The slow path after publishing a message: the receiver sleeps or is gone, a fence is needed, or
/// this is a forked child. Returns the message if nobody will receive it.
#[cold]
#[inline(never)]
fn send_slow<T>(shared: &Shared<T>, mut cursor: WriteCursor<T>) -> Option<T> {
    let state = shared.state_after_publishing();
    if state & ALIVE == 0 {
        return Some(cursor.take_back());
    }
    if state & RECEIVER_GONE != 0 {
        // The receiver may have dropped the message itself: `taken` tells how far it has read.
        let drained = shared.flag_late_send();
        let taken = shared.taken.load(Ordering::Relaxed);
        let not_taken = drained && mutate!(not_taken, taken < cursor.sent() => true);
        return not_taken.then(|| cursor.take_back());
    }
    if state & RECEIVER_SLEEPS != 0 {
        shared.wake_receiver();
    }
    None
}

/// Like [`send_slow`], for messages that are not handed back. Returns the number of sent messages
/// that the receiver did not take; they are dropped here.
#[cold]
#[inline(never)]
fn send_many_slow<T>(shared: &Shared<T>, sent: u64) -> u64 {
    let state = shared.state_after_publishing();
    if state & ALIVE == 0 {
        return sent;
    }
    if state & RECEIVER_GONE != 0 {
        if !shared.flag_late_send() {
            return 0;
        }
        let mut first_panic = FirstPanic::default();
        let taken = shared.drop_remaining(&mut first_panic);
        first_panic.resume();
        return sent.saturating_sub(taken);
    }
    if state & RECEIVER_SLEEPS != 0 {
        shared.wake_receiver();
    }
    0
}

#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
impl<T> Sender<T> {
    /// Continues as if `count` messages had been sent and received.
    pub(super) fn begin_at(&mut self, count: u64) {
        let mut cursor = self.cursor;
        with_writer(&self.shared, |writer| writer.begin_at(&self.shared, &mut cursor, count));
        self.cursor = cursor;
    }
}

impl<T> Drop for Sender<T> {
    // Inlined, with the cursor passed by value, so that the cursor need not be in memory here.
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: `shared` is not used again.
        close(unsafe { ManuallyDrop::take(&mut self.shared) }, self.cursor);
    }
}

#[inline(never)]
fn close<T>(shared: Arc<Shared<T>>, cursor: WriteCursor<T>) {
    shared.sender_leaves(cursor);
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("sent", &self.cursor.sent()).finish_non_exhaustive()
    }
}
