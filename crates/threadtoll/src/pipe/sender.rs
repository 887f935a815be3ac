//! The end that sends.

#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
mod claim;
mod slice;

use std::fmt;
use std::hint::cold_path;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::time::Duration;

#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
pub use claim::Claim;

use super::receiver::Receiver;
use super::shared::{ALIVE, RECEIVER_GONE, RECEIVER_SLEEPS, Shared};
use super::writer::{NoRoom, WriteCursor, Writer};
use crate::error::{SendError, SendTimeoutError, TrySendError};
use crate::first_panic::FirstPanic;
use crate::sync::{Arc, AtomicU32, Instant, Ordering, light_barrier, mutate};
use crate::wait::{Adaptive, Until, Wait};

/// The sending end of a pipe. Dropping it disconnects: the receiver gets what was sent, then learns
/// that it was all.
#[repr(align(128))]
pub struct Sender<T, W: Wait = Adaptive> {
    /// Never lent to anything that is not inlined, so that a loop around `send` keeps it in
    /// registers.
    cursor: WriteCursor<T>,
    /// The word of `shared`, so that a send finds it in one step.
    state: NonNull<AtomicU32>,
    shared: ManuallyDrop<Arc<Shared<T>>>,
    _wait: PhantomData<W>,
}

// SAFETY: the only sender of values that may be sent to other threads; its pointers point into
// memory that `shared` keeps alive, or to chunks that it owns.
unsafe impl<T: Send, W: Wait> Send for Sender<T, W> {}
impl<T, W: Wait> UnwindSafe for Sender<T, W> {}
impl<T, W: Wait> RefUnwindSafe for Sender<T, W> {}

impl<T, W: Wait> Sender<T, W> {
    pub(super) fn new(shared: Arc<Shared<T>>, cursor: WriteCursor<T>) -> Self {
        let state = NonNull::from(&*shared.state);
        Sender { cursor, state, shared: ManuallyDrop::new(shared), _wait: PhantomData }
    }

    /// Sends a message, and wakes the receiver if it sleeps.
    ///
    /// Waits for room if the pipe is bounded and full. An unbounded pipe never makes its sender
    /// wait, and accepts every message as long as the receiver lives.
    ///
    /// # Errors
    ///
    /// If the receiver is gone: the message comes back.
    #[inline(always)]
    pub fn send(&mut self, message: T) -> Result<(), SendError<T>> {
        match self.find_room(|| Until::Deadline(None)) {
            None => self.push(message),
            Some(_) => Err(SendError(message)),
        }
    }

    /// Sends a message if there is room for it.
    ///
    /// # Errors
    ///
    /// If the pipe is bounded and full; if the receiver is gone.
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
    /// # Errors
    ///
    /// If there was no room in time; if the receiver is gone.
    pub fn send_timeout(
        &mut self,
        message: T,
        timeout: Duration,
    ) -> Result<(), SendTimeoutError<T>> {
        // A time that no clock will ever show is no limit.
        self.send_until(message, || Instant::now().checked_add(timeout))
    }

    /// Sends a message, waiting for room until `deadline` at the latest.
    ///
    /// # Errors
    ///
    /// If there was no room in time; if the receiver is gone.
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

    /// Sends all that an iterator gives, one by one, waiting for room where there is none.
    ///
    /// Returns the number of messages. If the iterator panics, those that it gave before are sent.
    ///
    /// # Errors
    ///
    /// If the receiver is found gone: the message that was not sent; others may be left in the
    /// iterator, if it was lent.
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

    /// Number of messages that were sent and not yet received. Exact while the receiver does
    /// nothing; the messages of a batch count until it is dropped.
    pub fn len(&self) -> usize {
        let taken = self.shared.taken.load(Ordering::Acquire);
        self.cursor.sent().saturating_sub(taken) as usize
    }

    /// Returns `true` if everything was received.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `true` if the pipe is bounded and full.
    pub fn is_full(&self) -> bool {
        self.len() as u64 >= self.shared.layout.capacity
    }

    /// Number of messages that the pipe holds at most; `None` if there is no limit.
    pub fn capacity(&self) -> Option<usize> {
        super::capacity(&self.shared)
    }

    /// Returns `true` if the receiver is gone. In a forked child it always is.
    pub fn is_disconnected(&self) -> bool {
        let state = self.shared.state.load(Ordering::Acquire);
        state & ALIVE == 0 || state & RECEIVER_GONE != 0
    }

    /// Returns `true` if this is the sender of that receiver.
    pub fn same_channel(&self, receiver: &Receiver<T, W>) -> bool {
        std::ptr::eq(&**self.shared, receiver.shared())
    }

    /// Bytes of memory that the pipe holds.
    pub fn memory(&self) -> super::MemoryUse {
        super::memory_use(&self.shared)
    }

    pub(super) fn shared(&self) -> &Shared<T> {
        &self.shared
    }

    /// Makes sure that there is room for a message; otherwise says why there is none.
    #[inline(always)]
    fn find_room(&mut self, until: impl FnOnce() -> Until) -> Option<NoRoom> {
        if self.cursor.free_slots() > 0 {
            return None;
        }
        // As in the receiver's `find`.
        cold_path();
        let shared = &**self.shared;
        // SAFETY: we are the sender.
        let stepped = shared.writer.with_mut(|writer| unsafe { &*writer }.step(self.cursor));
        if let Some(cursor) = stepped {
            self.cursor = cursor;
            return None;
        }
        let (cursor, no_room) = make_room::<T, W>(shared, self.cursor, until());
        self.cursor = cursor;
        no_room
    }

    /// Moves a message in, publishes it and looks whether anybody sleeps or has left.
    #[inline(always)]
    fn push(&mut self, message: T) -> Result<(), SendError<T>> {
        // SAFETY: we are the sender, and there is room, so the place is free.
        unsafe { self.cursor.next_slot().write(message) };
        let sent = self.cursor.publish(1);
        let quiet = self.is_quiet();
        // After the atomic operations above, none of which then stands between this store and the
        // load in the next send: a loop keeps the value in a register, even where the sender itself
        // lies in memory.
        self.cursor.advance_to(sent);
        if quiet {
            return Ok(());
        }
        cold_path();
        let (cursor, handed_back) = send_slow(&**self.shared, self.cursor);
        self.cursor = cursor;
        handed_back.map_or(Ok(()), |message| Err(SendError(message)))
    }

    /// After something was published: returns `true` if nobody sleeps or has left, no fence is
    /// needed, and this is no forked child.
    #[inline(always)]
    fn is_quiet(&self) -> bool {
        // The receiver that is about to sleep or leave stores its bit, makes us execute a barrier
        // here, and looks for our message. Without this, the compiler might load before it stores.
        mutate!(barrier_in_send, light_barrier() => ());
        // SAFETY: a part of what `shared` keeps alive.
        let state = unsafe { self.state.as_ref() };
        // Relaxed: what the word says beyond that is looked at again in the slow path.
        state.load(Ordering::Relaxed) == ALIVE
    }
}

/// Finds room out of the ordinary.
#[cold]
#[inline(never)]
fn make_room<T, W: Wait>(
    shared: &Shared<T>,
    mut cursor: WriteCursor<T>,
    until: Until,
) -> (WriteCursor<T>, Option<NoRoom>) {
    let no_room =
        with_writer(shared, |writer| writer.make_room::<W>(shared, &mut cursor, until).err());
    (cursor, no_room)
}

/// Lends what the sender alone uses. The caller is the sender.
fn with_writer<T, R>(shared: &Shared<T>, body: impl FnOnce(&mut Writer<T>) -> R) -> R {
    // SAFETY: we are the sender, and no caller does so from within another such call.
    shared.writer.with_mut(|writer| body(unsafe { &mut *writer }))
}

/// After a message was published: somebody sleeps or has left, a fence is needed, or this is a
/// forked child. Hands the message back if nobody will take it.
#[cold]
#[inline(never)]
fn send_slow<T>(shared: &Shared<T>, mut cursor: WriteCursor<T>) -> (WriteCursor<T>, Option<T>) {
    let state = shared.state_after_publishing();
    let mut handed_back = None;
    if state & ALIVE == 0 {
        handed_back = Some(cursor.take_back());
    } else if state & RECEIVER_GONE != 0 {
        // The receiver may have dropped the message before it stopped looking; `taken` says how far
        // it came.
        let drained = shared.flag_late_send();
        let taken = shared.taken.load(Ordering::Relaxed);
        if drained && mutate!(not_taken, taken < cursor.sent() => true) {
            handed_back = Some(cursor.take_back());
        }
    } else if state & RECEIVER_SLEEPS != 0 {
        shared.wake_receiver();
    }
    (cursor, handed_back)
}

/// As [`send_slow`], but after messages that are not handed back. Returns how many of all messages
/// sent were never taken, and so were dropped here.
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
impl<T, W: Wait> Sender<T, W> {
    /// Goes on as if so many messages had been sent and received.
    pub(super) fn begin_at(&mut self, count: u64) {
        let mut cursor = self.cursor;
        with_writer(&self.shared, |writer| writer.begin_at(&self.shared, &mut cursor, count));
        self.cursor = cursor;
    }
}

impl<T, W: Wait> Drop for Sender<T, W> {
    // Inlined, and by values, so that nothing has to be kept in memory for the sake of this.
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: not used again.
        close(unsafe { ManuallyDrop::take(&mut self.shared) }, self.cursor);
    }
}

#[inline(never)]
fn close<T>(shared: Arc<Shared<T>>, cursor: WriteCursor<T>) {
    shared.sender_leaves(cursor);
}

impl<T, W: Wait> fmt::Debug for Sender<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("sent", &self.cursor.sent()).finish_non_exhaustive()
    }
}
