//! The end that receives.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::time::Duration;

use super::memory::{COUNT, FINAL, Frame, Geometry, JUMP, Memory};
use super::segment::Segment;
use super::shared::{ALIVE, RECEIVER, SENDER_SLEEPS, Shared, is_closed};
use crate::error::{RecvError, RecvTimeoutError, TryRecvError};
use crate::sync::{Arc, AtomicU32, Instant, Ordering, light_barrier, mutate};
use crate::unwound::Unwound;
use crate::wait::{Adaptive, Pace, Sleeper, Wait, Waited, by_barrier, wait};

/// Where the receiver is.
pub(super) struct Cursor<T> {
    memory: Memory<T>,
    segment: *mut Segment<T>,
    /// The record that is being read…
    frame: Frame<T>,
    /// …and where it is in the memory.
    unit: usize,
    /// Messages in the records before it.
    before: u64,
    /// Messages of it that were read.
    index: usize,
    /// Messages of it that are known to be there.
    there: usize,
    /// Its header's flags, as last seen.
    flags: u32,
    /// Units of home.
    end: usize,
    /// Where reading goes on in home.
    home_unit: usize,
}

impl<T> Clone for Cursor<T> {
    fn clone(&self) -> Self {
        Cursor { ..*self }
    }
}

/// What a look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Message,
    Closed,
}

impl<T> Cursor<T> {
    fn new(shared: &Shared<T>) -> Self {
        Cursor {
            memory: shared.home.memory,
            segment: std::ptr::from_ref(&shared.home).cast_mut(),
            frame: shared.home.memory.frame(0),
            unit: 0,
            before: 0,
            index: 0,
            there: 0,
            flags: 0,
            end: shared.measures.home_units,
            home_unit: 0,
        }
    }

    /// Looks whether there is a message, or never will be.
    #[inline(always)]
    fn look(&mut self, shared: &Shared<T>) -> Option<Found> {
        self.advance(shared, false)
    }

    /// The same from a copy of the cursor, so that nothing moves.
    fn look_from_copy(&self, shared: &Shared<T>) -> Option<Found> {
        self.clone().advance(shared, true)
    }

    #[inline(always)]
    fn advance(&mut self, shared: &Shared<T>, copy: bool) -> Option<Found> {
        if self.index != self.there {
            return Some(Found::Message);
        }
        loop {
            if self.flags != 0 {
                if is_closed(self.flags) {
                    return Some(Found::Closed);
                }
                self.follow(shared, copy);
            }
            // SAFETY: the memory is alive while the receiver is in it, and a record begins here: the sender zeroed this header
            // before it made the record before it final.
            let header = unsafe { self.frame.header() };
            // Acquire: the partner of the release with which the sender publishes. Without it the messages might not be there.
            let header = header.load(mutate!(see_header, Acquire));
            let count = (header & COUNT) as usize;
            if count != self.index {
                self.there = count;
                self.flags = header & !COUNT;
                return Some(Found::Message);
            }
            if header & FINAL == 0 {
                return None;
            }
            self.flags = header & !COUNT;
        }
    }

    /// Goes to the next record.
    #[inline(always)]
    fn follow(&mut self, shared: &Shared<T>, copy: bool) {
        if self.flags & JUMP != 0 {
            return self.jump(shared, copy);
        }
        self.go_on();
    }

    /// Goes to the record behind this one.
    #[inline(always)]
    fn go_on(&mut self) {
        self.unit += Geometry::<T>::units(self.there);
        if self.unit == self.end {
            self.unit = 0;
        }
        self.start_record();
    }

    /// Goes on in the next segment. Gives the one that was read back, unless it is home or this is but a copy of the cursor.
    #[cold]
    fn jump(&mut self, shared: &Shared<T>, copy: bool) {
        let home = std::ptr::from_ref(&shared.home).cast_mut();
        // SAFETY: alive: the segment that the receiver is in, or one behind it.
        let next = unsafe { &*self.segment }.next.load(Ordering::Relaxed);
        if self.segment == home {
            self.home_unit = self.unit + Geometry::<T>::FRAME;
            if self.home_unit == shared.measures.home_units {
                self.home_unit = 0;
            }
        } else if !copy {
            // SAFETY: the sender left this chunk before it published the jump, and we have read all of it.
            unsafe { shared.spares.give(self.segment) };
        }
        self.segment = next;
        // SAFETY: the sender prepared it before it published the jump.
        self.memory = unsafe { &*next }.memory;
        // A chunk is left by a jump, never by its end.
        (self.unit, self.end) =
            if next == home { (self.home_unit, shared.measures.home_units) } else { (0, usize::MAX) };
        self.start_record();
    }

    #[inline(always)]
    fn start_record(&mut self) {
        self.before += self.there as u64;
        self.frame = self.memory.frame(self.unit);
        self.index = 0;
        self.there = 0;
        self.flags = 0;
    }

    /// Goes from a record that is read and final to the next one, if the sender has not gone elsewhere and there is a message: what
    /// nearly every step is, done fast. Otherwise [`Cursor::look`] finds out the rest.
    #[inline(always)]
    fn step(&mut self) -> bool {
        if self.flags != FINAL || self.index != self.there {
            return false;
        }
        self.go_on();
        // SAFETY: as in `advance`.
        let header = unsafe { self.frame.header() };
        // Acquire: as in `advance`.
        let header = header.load(mutate!(see_next_header, Acquire));
        let count = (header & COUNT) as usize;
        if count != 0 {
            self.there = count;
            self.flags = header & !COUNT;
        }
        count != 0
    }

    /// Messages that were moved out in all.
    #[inline(always)]
    pub(super) fn taken(&self) -> u64 {
        self.before + self.index as u64
    }

    /// Moves the message out that a look has found.
    #[inline(always)]
    fn take(&mut self) -> T {
        debug_assert!(self.index < self.there);
        // SAFETY: the header counts it, and `index` moves on, so it is moved out once.
        let message = unsafe { self.frame.read(self.index) };
        self.index += 1;
        message
    }

    /// Drops everything that is there.
    pub(super) fn drop_all(&mut self, shared: &Shared<T>, unwound: &mut Unwound) {
        while self.look(shared) == Some(Found::Message) {
            unwound.drop(self.take());
        }
    }

    /// Frees the segment in which reading ended.
    ///
    /// Called once, when both ends are gone and everything was dropped.
    pub(super) fn free(self, shared: &Shared<T>) {
        if self.segment != std::ptr::from_ref(&shared.home).cast_mut() {
            // SAFETY: a chunk, the last one of the pipe, and nobody is left who could use it.
            unsafe { shared.spares.free(self.segment) };
        }
    }
}

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
            pace: Pace::new(shared.measures.home),
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

/// Messages that lie side by side; see [`Receiver::recv_batch`].
///
/// Lends them as a slice, or moves them out as an iterator.
#[cfg(not(any(loom, shuttle)))]
pub struct Batch<'a, T, W: Wait = Adaptive> {
    receiver: &'a mut Receiver<T, W>,
    /// Where in the record the batch ends.
    end: usize,
}

#[cfg(not(any(loom, shuttle)))]
impl<T, W: Wait> Batch<'_, T, W> {
    /// Leaves all but the first `most` messages to a later receive.
    #[inline]
    pub fn truncate(&mut self, most: usize) {
        let index = self.receiver.cursor.index;
        self.end = self.end.min(index.saturating_add(most));
    }
}

#[cfg(not(any(loom, shuttle)))]
impl<T, W: Wait> std::ops::Deref for Batch<'_, T, W> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        let cursor = &self.receiver.cursor;
        let first = cursor.frame.place(cursor.index);
        // SAFETY: the header counts them, and messages of a record lie side by side.
        unsafe { std::slice::from_raw_parts(first.as_ptr(), self.end - cursor.index) }
    }
}

#[cfg(not(any(loom, shuttle)))]
impl<T, W: Wait> Iterator for Batch<'_, T, W> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let cursor = &mut self.receiver.cursor;
        (cursor.index != self.end).then(|| cursor.take())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

#[cfg(not(any(loom, shuttle)))]
impl<T, W: Wait> ExactSizeIterator for Batch<'_, T, W> {
    fn len(&self) -> usize {
        self.end - self.receiver.cursor.index
    }
}

#[cfg(not(any(loom, shuttle)))]
impl<T, W: Wait> Drop for Batch<'_, T, W> {
    fn drop(&mut self) {
        let mut unwound = Unwound::default();
        if std::mem::needs_drop::<T>() {
            for message in self.by_ref() {
                unwound.drop(message);
            }
        }
        let receiver = &mut *self.receiver;
        receiver.cursor.index = self.end;
        // A fork is told by the next receive.
        let _ = receiver.took();
        receiver.tell_due_room();
        unwound.resume();
    }
}

#[cfg(not(any(loom, shuttle)))]
impl<T: fmt::Debug, W: Wait> fmt::Debug for Batch<'_, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Messages until the sender is gone.
#[derive(Debug)]
pub struct Iter<'a, T, W: Wait = Adaptive>(&'a mut Receiver<T, W>);

impl<T, W: Wait> Iterator for Iter<'_, T, W> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

/// Messages that are there.
#[derive(Debug)]
pub struct TryIter<'a, T, W: Wait = Adaptive>(&'a mut Receiver<T, W>);

impl<T, W: Wait> Iterator for TryIter<'_, T, W> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.try_recv().ok()
    }
}

impl<'a, T, W: Wait> IntoIterator for &'a mut Receiver<T, W> {
    type Item = T;
    type IntoIter = Iter<'a, T, W>;

    fn into_iter(self) -> Iter<'a, T, W> {
        self.iter()
    }
}

/// Messages until the sender is gone.
#[derive(Debug)]
pub struct IntoIter<T, W: Wait = Adaptive>(Receiver<T, W>);

impl<T, W: Wait> Iterator for IntoIter<T, W> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T, W: Wait> IntoIterator for Receiver<T, W> {
    type Item = T;
    type IntoIter = IntoIter<T, W>;

    fn into_iter(self) -> IntoIter<T, W> {
        IntoIter(self)
    }
}
