//! The end that receives.

#[cfg(not(any(loom, shuttle)))]
mod batch;
mod iter;

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::time::Duration;

#[cfg(not(any(loom, shuttle)))]
pub use batch::Batch;
pub use iter::{IntoIter, Iter, TryIter};

use super::cursor::{Cursor, Found};
use super::memory::{COUNT, FINAL};
use super::shared::{ALIVE, RECEIVER, SENDER_SLEEPS, Shared};
use crate::error::{RecvError, RecvTimeoutError, TryRecvError};
use crate::sync::{Arc, AtomicU32, Instant, Ordering, light_barrier, mutate};
use crate::wait::{Adaptive, Pace, Sleeper, Wait, Waited, by_barrier, wait};

/// The receiving end of a pipe. Dropping it disconnects: what was not received is dropped.
#[repr(align(128))]
pub struct Receiver<T, W: Wait = Adaptive> {
    cursor: Cursor<T>,
    /// When to tell the sender about its room.
    next_room: u64,
    pace: Pace,
    /// The word of `shared`, so that a receive finds it in one step.
    state: NonNull<AtomicU32>,
    shared: Arc<Shared<T>>,
    _wait: PhantomData<W>,
}

// SAFETY: the only receiver of values that may be sent to other threads; its pointers lead into memory that `shared` keeps alive.
unsafe impl<T: Send, W: Wait> Send for Receiver<T, W> {}

impl<T, W: Wait> Receiver<T, W> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        Receiver {
            cursor: Cursor::new(&shared),
            next_room: step(&shared),
            pace: Pace::new::<W>(shared.measures.home),
            state: NonNull::from(&*shared.state),
            shared,
            _wait: PhantomData,
        }
    }

    /// Receives the next message, waiting for it if there is none.
    ///
    /// # Errors
    ///
    /// If the sender is gone and everything was received; in a forked child.
    #[inline]
    pub fn recv(&mut self) -> Result<T, RecvError> {
        if self.cursor.index == self.cursor.there {
            self.await_message()?;
        }
        self.take()
    }

    /// Waits until there is a message.
    ///
    /// Not inlined, so that what is done for each message stays small: this is done once for each record.
    #[inline(never)]
    fn await_message(&mut self) -> Result<(), RecvError> {
        self.tell_due_room();
        if self.cursor.step() {
            return Ok(());
        }
        self.await_anything()
    }

    #[inline(never)]
    fn await_anything(&mut self) -> Result<(), RecvError> {
        let found = self.cursor.look(&self.shared).map_or_else(|| self.wait(None), Waited::Found);
        match found {
            Waited::Found(Found::Message) => Ok(()),
            Waited::Found(Found::Closed) => Err(RecvError::Disconnected),
            Waited::Forked | Waited::Late => Err(RecvError::Forked),
        }
    }

    /// Receives the next message if it is there. Never waits for anybody.
    ///
    /// # Errors
    ///
    /// If there is none; if the sender is gone and everything was received; in a forked child.
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        if self.cursor.index == self.cursor.there {
            self.look_for_message()?;
        }
        Ok(self.take()?)
    }

    /// Looks whether there is a message. Not inlined, as above.
    #[inline(never)]
    fn look_for_message(&mut self) -> Result<(), TryRecvError> {
        self.tell_due_room();
        if self.cursor.step() {
            return Ok(());
        }
        match self.cursor.look(&self.shared) {
            Some(Found::Message) => Ok(()),
            Some(Found::Closed) => Err(TryRecvError::Disconnected),
            None => Err(self.nothing()),
        }
    }

    /// Receives the next message, waiting for at most `timeout`.
    ///
    /// # Errors
    ///
    /// If none came in time; if the sender is gone and everything was received; in a forked child.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        // A time that no clock will ever show is no limit.
        self.recv_until(Instant::now().checked_add(timeout))
    }

    /// Receives the next message, waiting until `deadline` at the latest.
    ///
    /// # Errors
    ///
    /// If none came in time; if the sender is gone and everything was received; in a forked child.
    #[cfg(not(any(loom, shuttle)))]
    pub fn recv_deadline(&mut self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.recv_until(Some(deadline))
    }

    fn recv_until(&mut self, deadline: Option<Instant>) -> Result<T, RecvTimeoutError> {
        match self.find(deadline) {
            Waited::Found(Found::Message) => Ok(self.take()?),
            Waited::Found(Found::Closed) => Err(RecvTimeoutError::Disconnected),
            Waited::Late => Err(RecvTimeoutError::Timeout),
            Waited::Forked => Err(RecvTimeoutError::Forked),
        }
    }

    /// Waits for messages and lends all those that lie side by side, to be looked at as a slice or moved out one by one; what
    /// is still in the [`Batch`] when it is dropped counts as received.
    ///
    /// How many they are depends on how they were sent: up to a page for those of a batch, as many as fit into a
    /// cache line otherwise.
    ///
    /// ```
    /// let (mut sender, mut receiver) = threadtoll::pipe::unbounded();
    /// sender.send_slice(&[1, 2, 3]).unwrap();
    /// assert_eq!(receiver.recv_batch().unwrap()[..], [1, 2, 3]);
    /// ```
    ///
    /// # Errors
    ///
    /// If the sender is gone and everything was received; in a forked child.
    #[cfg(not(any(loom, shuttle)))]
    #[inline]
    pub fn recv_batch(&mut self) -> Result<Batch<'_, T, W>, RecvError> {
        self.await_message()?;
        self.batch()
    }

    /// Like [`Receiver::recv_batch`], without waiting.
    ///
    /// # Errors
    ///
    /// If there is none; if the sender is gone and everything was received; in a forked child.
    #[cfg(not(any(loom, shuttle)))]
    pub fn try_recv_batch(&mut self) -> Result<Batch<'_, T, W>, TryRecvError> {
        self.tell_due_room();
        match self.cursor.look(&self.shared) {
            Some(Found::Message) => Ok(self.batch()?),
            Some(Found::Closed) => Err(TryRecvError::Disconnected),
            None => Err(self.nothing()),
        }
    }

    #[cfg(not(any(loom, shuttle)))]
    #[inline(always)]
    fn batch(&mut self) -> Result<Batch<'_, T, W>, RecvError> {
        if self.shared.state.load(Ordering::Relaxed) & ALIVE == 0 {
            return Err(RecvError::Forked);
        }
        Ok(Batch { end: self.cursor.there, receiver: self })
    }

    /// The next message if it is there, without receiving it.
    #[cfg(not(any(loom, shuttle)))]
    pub fn peek(&mut self) -> Option<&T> {
        self.tell_due_room();
        match self.cursor.look(&self.shared) {
            Some(Found::Message) => {
                let place = self.cursor.frame.place(self.cursor.index);
                // SAFETY: the header counts it, and it stays until it is received, for which `self` is borrowed.
                Some(unsafe { place.as_ref() })
            }
            _ => {
                self.tell_forgotten();
                None
            }
        }
    }

    /// Receives messages until the sender is gone, waiting for each.
    pub fn iter(&mut self) -> Iter<'_, T, W> {
        Iter(self)
    }

    /// Receives what is there, waiting for nothing.
    pub fn try_iter(&mut self) -> TryIter<'_, T, W> {
        TryIter(self)
    }

    /// Messages that were sent and not received, those not counted that were sent quietly and not flushed. Exact while the sender
    /// does nothing; otherwise a moment old.
    pub fn len(&self) -> usize {
        let sent = &self.shared.sent;
        let before = sent.before.load(Ordering::Acquire);
        // SAFETY: in home, or in a chunk that the receiver has not given back: the sender tells where it is before it publishes
        // the jump that lets the receiver leave a chunk.
        let header = unsafe { &*sent.open.load(Ordering::Acquire) }.load(Ordering::Acquire);
        // A record that is final and has a successor is about to be counted in `before`, or was.
        let closing = header & !COUNT == FINAL;
        let open = if closing { 0 } else { header & COUNT };
        (before + u64::from(open)).saturating_sub(self.cursor.taken()) as usize
    }

    /// Whether nothing is there to be received.
    pub fn is_empty(&self) -> bool {
        self.cursor.look_from_copy(&self.shared) != Some(Found::Message)
    }

    /// How many messages the pipe holds at most; null if there is no limit.
    pub fn capacity(&self) -> Option<usize> {
        super::capacity(&self.shared)
    }

    /// Whether the sender is gone. Messages may still be there.
    pub fn is_disconnected(&self) -> bool {
        self.shared.sender_gone.load(Ordering::Acquire)
    }

    /// The most messages that were ever under way, as far as the sender has looked; see [`super::Sender::high_water_mark`].
    pub fn high_water_mark(&self) -> usize {
        self.shared.high_water.load(Ordering::Relaxed) as usize
    }

    /// What the pipe's memory is used for.
    pub fn memory(&self) -> super::MemoryUse {
        super::memory_use(&self.shared)
    }

    /// Frees the memory that is kept for the next burst, but for what the sender has taken to use next.
    pub fn trim(&mut self) {
        self.shared.spares.trim(&mut std::ptr::null_mut());
    }

    /// Why there is nothing.
    fn nothing(&mut self) -> TryRecvError {
        self.tell_forgotten();
        if self.shared.state.load(Ordering::Relaxed) & ALIVE == 0 {
            TryRecvError::Forked
        } else {
            TryRecvError::Empty
        }
    }

    /// A batch may have been forgotten, and with it to tell a sender that may be asleep.
    fn tell_forgotten(&mut self) {
        if self.shared.taken.load(Ordering::Relaxed) != self.cursor.taken() {
            // A fork is found out elsewhere.
            let _ = self.took();
        }
    }

    /// Waits until a look finds something.
    #[inline(always)]
    fn find(&mut self, deadline: Option<Instant>) -> Waited<Found> {
        self.tell_due_room();
        match self.cursor.look(&self.shared) {
            Some(found) => Waited::Found(found),
            None => self.wait(deadline),
        }
    }

    /// The same where a look has found nothing. Not inlined, so that the look is fast.
    #[inline(never)]
    fn wait(&mut self, deadline: Option<Instant>) -> Waited<Found> {
        self.tell_forgotten();
        self.tell_room();
        self.pace.lag(self.cursor.taken());
        let (cursor, shared) = (&mut self.cursor, &*self.shared);
        let sleeper = Sleeper { glances: self.pace.glances(), ..shared.sleeper(RECEIVER) };
        wait::<W, _>(sleeper, deadline, by_barrier, |_| cursor.look(shared))
    }

    #[inline(always)]
    fn take(&mut self) -> Result<T, RecvError> {
        let message = self.cursor.take();
        if let Err(forked) = self.took() {
            // It stays where it is, like all that a child finds in its copy.
            std::mem::forget(message);
            self.cursor.index -= 1;
            return Err(forked);
        }
        Ok(message)
    }

    /// Tells the sender that messages were taken.
    #[inline(always)]
    fn took(&mut self) -> Result<(), RecvError> {
        // Release: the sender may write where we have read.
        self.shared.taken.store(self.cursor.taken(), mutate!(tell_taken, Release));
        // Between the store above and the load below stands the barrier of a sender that goes to sleep for want of room.
        mutate!(barrier_in_recv, light_barrier() => ());
        // SAFETY: a part of what `shared` keeps alive.
        let state = unsafe { self.state.as_ref() };
        if state.load(Ordering::Relaxed) == ALIVE {
            return Ok(());
        }
        self.attend()
    }

    /// Somebody sleeps, has left, must be fenced for, or this is a forked child.
    #[cold]
    fn attend(&mut self) -> Result<(), RecvError> {
        let state = self.shared.state_after_publishing();
        if state & ALIVE == 0 {
            return Err(RecvError::Forked);
        }
        if state & SENDER_SLEEPS != 0 {
            self.shared.wake_sender();
        }
        Ok(())
    }

    /// Tells the sender about its room if it is time.
    #[inline(always)]
    fn tell_due_room(&mut self) {
        if self.cursor.taken() >= self.next_room {
            // Room is never told of before `taken` counts it.
            self.tell_forgotten();
            self.tell_room();
        }
    }

    fn tell_room(&mut self) {
        // Release: as in `took`.
        let taken = self.cursor.taken();
        self.shared.room.store(taken, mutate!(tell_room, Release));
        self.next_room = taken + step(&self.shared);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl<T, W: Wait> Receiver<T, W> {
    /// Goes on as if so many messages had been sent and received.
    pub(super) fn begin_at(&mut self, count: u64) {
        self.cursor.before = count;
        self.shared.taken.store(count, Ordering::Relaxed);
        self.next_room = count + step(&self.shared);
    }
}

/// How many messages the receiver takes between two words about room.
fn step<T>(shared: &Shared<T>) -> u64 {
    (shared.measures.home / 4).max(1)
}

impl<T, W: Wait> Drop for Receiver<T, W> {
    fn drop(&mut self) {
        self.shared.leave(self.cursor.clone());
    }
}

impl<T, W: Wait> fmt::Debug for Receiver<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("taken", &self.cursor.taken()).finish_non_exhaustive()
    }
}
