#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
mod batch;
mod future;
mod iter;
mod watch;

use std::fmt;
use std::hint::cold_path;
use std::mem::ManuallyDrop;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::time::Duration;

#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
pub use batch::Batch;
pub use future::RecvFuture;
pub use iter::{IntoIter, Iter, TryIter};

use super::memory::Geometry;
use super::reader::{ReadCursor, Reader};
use super::shared::{
    ALIVE, FENCE_FOR_NOW, MUST_FENCE, RECEIVER, SENDER_GONE, SENDER_SLEEPS, Shared,
};
use crate::error::{RecvError, RecvTimeoutError, TryRecvError};
use crate::sync::{Arc, AtomicU32, Instant, Ordering, light_barrier, mutate};
use crate::wait::{Polled, Until, WaitOutcome, Waiter, wait_by};

/// The receiving end of a pipe.
///
/// Dropping the receiver drops the messages that were not received, and disconnects the sender.
#[repr(align(128))]
pub struct Receiver<T> {
    /// Borrowed only by inlined code, so that a loop around `recv` keeps the cursor in registers.
    cursor: ReadCursor<T>,
    /// Pointer to `shared.state`, to save an indirection.
    state: NonNull<AtomicU32>,
    shared: ManuallyDrop<Arc<Shared<T>>>,
}

// SAFETY: this is the only receiver, its messages may be sent to other threads, and its pointers
// lead to memory that `shared` keeps alive.
unsafe impl<T: Send> Send for Receiver<T> {}
impl<T> UnwindSafe for Receiver<T> {}
impl<T> RefUnwindSafe for Receiver<T> {}
// No message is in the receiver itself.
impl<T> Unpin for Receiver<T> {}

impl<T> Receiver<T> {
    pub(super) fn new(shared: Arc<Shared<T>>, cursor: ReadCursor<T>) -> Self {
        Receiver { cursor, state: NonNull::from(&*shared.state), shared: ManuallyDrop::new(shared) }
    }

    /// Receives the next message, waiting for it if there is none.
    ///
    /// ```
    /// use threadtoll::error::RecvError;
    ///
    /// let (mut sender, mut receiver) = threadtoll::pipe::unbounded();
    /// sender.send(1).unwrap();
    /// drop(sender);
    /// assert_eq!(receiver.recv(), Ok(1));
    /// assert_eq!(receiver.recv(), Err(RecvError));
    /// ```
    ///
    /// # Errors
    ///
    /// If the sender is gone and everything has been received.
    #[inline]
    pub fn recv(&mut self) -> Result<T, RecvError> {
        match self.find(|| Until::Deadline(None)) {
            None => self.take(),
            Some(_) => Err(RecvError),
        }
    }

    /// Receives the next message if there is one. Never waits.
    ///
    /// ```
    /// let (mut sender, mut receiver) = threadtoll::pipe::unbounded();
    /// assert!(receiver.try_recv().unwrap_err().is_empty());
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.try_recv(), Ok(1));
    /// ```
    ///
    /// # Errors
    ///
    /// If there is no message, or if the sender is gone and everything has been received.
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        match self.find(|| Until::Now) {
            None => Ok(self.take()?),
            Some(NoMessage::Empty) => Err(TryRecvError::Empty),
            Some(NoMessage::Disconnected) => Err(TryRecvError::Disconnected),
        }
    }

    /// Receives the next message, waiting for at most `timeout`.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let (_sender, mut receiver) = threadtoll::pipe::unbounded::<u64>();
    /// assert!(receiver.recv_timeout(Duration::from_millis(1)).unwrap_err().is_timeout());
    /// ```
    ///
    /// # Errors
    ///
    /// If no message came in time, or if the sender is gone and everything has been received.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        // If the clock cannot represent the deadline, there is no limit.
        self.recv_until(|| Instant::now().checked_add(timeout))
    }

    /// Receives the next message, waiting until `deadline`; see [`Receiver::recv_timeout`].
    ///
    /// # Errors
    ///
    /// If no message came in time, or if the sender is gone and everything has been received.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub fn recv_deadline(&mut self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.recv_until(|| Some(deadline))
    }

    #[inline(always)]
    fn recv_until(
        &mut self,
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> Result<T, RecvTimeoutError> {
        match self.find(|| Until::Deadline(deadline())) {
            None => Ok(self.take()?),
            Some(NoMessage::Empty) => Err(RecvTimeoutError::Timeout),
            Some(NoMessage::Disconnected) => Err(RecvTimeoutError::Disconnected),
        }
    }

    /// Waits for a message, then appends it and all others that are available to `messages`, up to
    /// `most`. Returns their number.
    ///
    /// ```
    /// let (mut sender, mut receiver) = threadtoll::pipe::unbounded();
    /// sender.send_slice(&[1, 2, 3]).unwrap();
    /// let mut messages = Vec::new();
    /// assert_eq!(receiver.recv_many(&mut messages, 2), Ok(2));
    /// assert_eq!(messages, [1, 2]);
    /// ```
    ///
    /// # Errors
    ///
    /// If the sender is gone and everything has been received.
    pub fn recv_many(&mut self, messages: &mut Vec<T>, most: usize) -> Result<usize, RecvError> {
        if most == 0 {
            return Ok(0);
        }
        messages.push(self.recv()?);
        Ok(1 + self.drain(most - 1, |message| messages.push(message)))
    }

    /// Calls `body` with each message that is available, up to `most`. Never waits. Returns the
    /// number of messages.
    ///
    /// A message counts as received even if `body` panics.
    ///
    /// ```
    /// let (mut sender, mut receiver) = threadtoll::pipe::unbounded();
    /// sender.send_slice(&[1, 2, 3]).unwrap();
    /// let mut sum = 0;
    /// assert_eq!(receiver.drain(usize::MAX, |number| sum += number), 3);
    /// assert_eq!(sum, 6);
    /// ```
    pub fn drain(&mut self, most: usize, mut body: impl FnMut(T)) -> usize {
        let mut count = 0;
        while count < most
            && let Ok(message) = self.try_recv()
        {
            count += 1;
            body(message);
        }
        count
    }

    /// Waits for messages, and borrows those that are contiguous in memory, as a slice or to be
    /// moved out one by one. Messages left in the [`Batch`] when it is dropped count as received.
    ///
    /// If the messages were sent as a claim, or as a slice of seven cache lines or more, a batch
    /// has up to a page of them; otherwise, as many as fit into a cache line.
    ///
    /// ```
    /// let (mut sender, mut receiver) = threadtoll::pipe::unbounded();
    /// sender.send_slice(&[1, 2, 3]).unwrap();
    /// assert_eq!(receiver.recv_batch().unwrap()[..], [1, 2, 3]);
    /// ```
    ///
    /// # Errors
    ///
    /// If the sender is gone and everything has been received.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    #[inline]
    pub fn recv_batch(&mut self) -> Result<Batch<'_, T>, RecvError> {
        match self.find_batch(Until::Deadline(None)) {
            None => self.batch(),
            Some(_) => Err(RecvError),
        }
    }

    /// Like [`Receiver::recv_batch`], but does not wait.
    ///
    /// # Errors
    ///
    /// If there is no message, or if the sender is gone and everything has been received.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub fn try_recv_batch(&mut self) -> Result<Batch<'_, T>, TryRecvError> {
        match self.find_batch(Until::Now) {
            None => Ok(self.batch()?),
            Some(NoMessage::Empty) => Err(TryRecvError::Empty),
            Some(NoMessage::Disconnected) => Err(TryRecvError::Disconnected),
        }
    }

    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    #[inline(always)]
    fn batch(&mut self) -> Result<Batch<'_, T>, RecvError> {
        if self.state() & ALIVE == 0 {
            return Err(RecvError);
        }
        // An earlier batch may have been leaked before it reported the messages that were moved
        // out. Release: the sender may overwrite what the receiver has read.
        self.shared.taken.store(self.cursor.taken(), Ordering::Release);
        Ok(Batch::new(self))
    }

    /// Returns the next message without receiving it, or `None` if there is none.
    ///
    /// ```
    /// let (mut sender, mut receiver) = threadtoll::pipe::unbounded();
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.peek(), Some(&1));
    /// assert_eq!(receiver.recv(), Ok(1));
    /// assert_eq!(receiver.peek(), None);
    /// ```
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub fn peek(&mut self) -> Option<&T> {
        if self.find(|| Until::Now).is_some() || self.state() & ALIVE == 0 {
            return None;
        }
        // SAFETY: a header counts the message, which stays until it is received, and that needs
        // `&mut self`.
        Some(unsafe { &*self.cursor.next_message().as_ptr() })
    }

    /// Returns an iterator that waits for each message and ends when the sender is gone.
    pub fn iter(&mut self) -> Iter<'_, T> {
        Iter(self)
    }

    /// Returns an iterator over the messages that are available. The iterator never waits.
    pub fn try_iter(&mut self) -> TryIter<'_, T> {
        TryIter(self)
    }

    /// Number of messages that have been sent and not received; a snapshot if the sender is active.
    /// May read up to 64 cache lines.
    pub fn len(&self) -> usize {
        if self.state() & ALIVE == 0 {
            return 0;
        }
        self.shared.sent(&self.cursor).saturating_sub(self.cursor.taken()) as usize
    }

    /// Returns `true` if there is no message.
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

    /// Returns `true` if the sender has been dropped, or if this is a forked child. There may still
    /// be messages to receive.
    pub fn is_disconnected(&self) -> bool {
        let state = self.shared.state.load(Ordering::Acquire);
        state & ALIVE == 0 || state & SENDER_GONE != 0
    }

    /// Memory that the pipe uses.
    pub fn memory(&self) -> super::MemoryUse {
        super::memory_use(&self.shared)
    }

    #[inline(always)]
    fn state(&self) -> u32 {
        // SAFETY: part of `shared`, which is alive.
        unsafe { self.state.as_ref() }.load(Ordering::Relaxed)
    }

    /// Looks for a message, waiting for it if `until` allows. Returns `None` once there is one.
    #[inline(always)]
    fn find(&mut self, until: impl FnOnce() -> Until) -> Option<NoMessage> {
        if self.cursor.available() > 0 {
            return None;
        }
        // Cold, although one in seven messages of 8 bytes takes this path: a jump on the path of
        // the other six would cost more than a jump on this one. (A loop with two jumps per message
        // takes twice as long.)
        cold_path();
        let shared = &**self.shared;
        // SAFETY: we are the receiver.
        let stepped = shared.reader.with_mut(|reader| unsafe { &*reader }.step(self.cursor));
        if let Some(cursor) = stepped {
            self.cursor.move_to(cursor);
            return None;
        }
        let (cursor, no_message) = find_slow(shared, self.cursor, until());
        self.cursor.move_to(cursor);
        no_message
    }

    /// Like [`Receiver::find`], for batches.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    #[inline(always)]
    fn find_batch(&mut self, until: Until) -> Option<NoMessage> {
        if Geometry::<T>::PACKS_RUNS && self.cursor.available() == 0 {
            let stepped = self.shared.reader.with_mut(|reader| {
                // SAFETY: we are the receiver, and these calls are not nested.
                unsafe { &mut *reader }.step_run(self.cursor)
            });
            if let Some(cursor) = stepped {
                self.cursor.move_to(cursor);
                return None;
            }
        }
        self.find(|| until)
    }

    /// Receives the message that `find` has found.
    #[inline(always)]
    fn take(&mut self) -> Result<T, RecvError> {
        // SAFETY: a header counts the message, and it is moved out once: either it counts as taken
        // below, or, in a forked child, the moved value is forgotten.
        let message = ManuallyDrop::new(unsafe { self.cursor.next_message().read() });
        let taken = self.cursor.taken() + 1;
        if !self.report_taken(taken) {
            // Stores the unchanged count, so that it stays in a register, as in
            // `ReadCursor::move_to`.
            self.cursor.advance_to(taken - 1);
            return Err(RecvError);
        }
        // Stored last, so that no atomic operation comes between this store and the load in the
        // next receive. A loop around `recv` then keeps the value in a register, even if the
        // receiver itself is in memory.
        self.cursor.advance_to(taken);
        Ok(ManuallyDrop::into_inner(message))
    }

    /// Publishes that `taken` messages have been taken in total, and wakes a sender that waits for
    /// room. Returns `false` in a forked child.
    #[inline(always)]
    fn report_taken(&self, taken: u64) -> bool {
        // Release: the sender may overwrite what the receiver has read.
        self.shared.taken.store(taken, mutate!(tell_taken, Release));
        // A sender that goes to sleep because there is no room makes this thread execute a full
        // barrier here.
        mutate!(barrier_in_recv, light_barrier() => ());
        let state = self.state();
        if state == ALIVE {
            return true;
        }
        cold_path();
        if state & FENCE_FOR_NOW != 0 {
            self.shared.stop_fencing_if_dense(taken);
        }
        if !self.shared.layout.is_bounded() {
            // The sender of an unbounded pipe never waits for room.
            return state & ALIVE != 0;
        }
        let calm = ALIVE | SENDER_SLEEPS | MUST_FENCE | FENCE_FOR_NOW;
        state & calm == ALIVE || receive_slow(&**self.shared)
    }
}

enum NoMessage {
    Empty,
    Disconnected,
}

/// The slow path of [`Receiver::find`].
#[cold]
#[inline(never)]
fn find_slow<T>(
    shared: &Shared<T>,
    mut cursor: ReadCursor<T>,
    until: Until,
) -> (ReadCursor<T>, Option<NoMessage>) {
    let no_message = shared.reader.with_mut(|reader| {
        // SAFETY: we are the receiver, and these calls are not nested.
        let reader = unsafe { &mut *reader };
        find(shared, reader, &mut cursor, until)
    });
    (cursor, no_message)
}

fn find<T>(
    shared: &Shared<T>,
    reader: &mut Reader<T>,
    cursor: &mut ReadCursor<T>,
    until: Until,
) -> Option<NoMessage> {
    let taken = cursor.taken();
    // Every receive has already called this, unless a batch was leaked.
    shared.stop_fencing_if_dense(taken);
    if reader.is_ack_due(taken) {
        acknowledge(shared, reader, taken);
    }
    match reader.poll(shared, cursor) {
        Some(Polled::Message) => {
            // The sender may have announced further frames, which `step` can then prefetch. After a
            // long run, `step` is not needed.
            if cursor.available() <= Geometry::<T>::PER_FRAME {
                reader.update_written_end(shared, cursor);
            }
            return None;
        }
        Some(Polled::Closed) => return Some(NoMessage::Disconnected),
        None => acknowledge(shared, reader, taken),
    }
    let deadline = match until {
        Until::Deadline(deadline) => deadline,
        Until::Now if shared.state.load(Ordering::Relaxed) & ALIVE == 0 => {
            return Some(NoMessage::Disconnected);
        }
        Until::Now => return Some(NoMessage::Empty),
    };
    wait_for_message(shared, reader, cursor, Waiter::Thread(deadline))
}

#[inline(always)]
fn wait_for_message<T>(
    shared: &Shared<T>,
    reader: &mut Reader<T>,
    cursor: &mut ReadCursor<T>,
    waiter: Waiter<'_>,
) -> Option<NoMessage> {
    let taken = cursor.taken();
    let announce = |state| shared.announce_receiver(state, taken);
    let poll = |_| reader.poll(shared, cursor);
    let parker = shared.parker(RECEIVER, shared.sticky_fence_bit(taken));
    match wait_by(waiter, parker, announce, poll) {
        WaitOutcome::Found(Polled::Message) => None,
        WaitOutcome::Found(Polled::Closed) | WaitOutcome::Forked => Some(NoMessage::Disconnected),
        WaitOutcome::TimedOut => Some(NoMessage::Empty),
    }
}

/// Publishes how far the receiver has read, unless that is already published, and wakes a sender
/// that waits.
fn acknowledge<T>(shared: &Shared<T>, reader: &mut Reader<T>, taken: u64) {
    if shared.acked.load(Ordering::Relaxed) == taken
        && shared.taken.load(Ordering::Relaxed) == taken
    {
        return;
    }
    reader.acknowledge(shared, taken);
    light_barrier();
    receive_slow(shared);
}

/// The slow path after messages were taken. Returns `false` in a forked child.
#[cold]
#[inline(never)]
fn receive_slow<T>(shared: &Shared<T>) -> bool {
    let state = shared.state_after_publishing();
    if state & SENDER_SLEEPS != 0 {
        shared.wake_sender();
    }
    state & ALIVE != 0
}

#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
impl<T> Receiver<T> {
    /// Continues as if `count` messages had been sent and received.
    pub(super) fn begin_at(&mut self, count: u64) {
        self.cursor.begin_at(count);
        // SAFETY: we are the receiver.
        self.shared
            .reader
            .with_mut(|reader| unsafe { &mut *reader }.acknowledge(&self.shared, count));
    }
}

impl<T> Drop for Receiver<T> {
    // Inlined, with the cursor passed by value, so that the cursor need not be in memory here.
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: `shared` is not used again.
        leave(unsafe { ManuallyDrop::take(&mut self.shared) }, self.cursor);
    }
}

#[inline(never)]
fn leave<T>(shared: Arc<Shared<T>>, cursor: ReadCursor<T>) {
    shared.receiver_leaves(cursor);
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("taken", &self.cursor.taken()).finish_non_exhaustive()
    }
}
