//! The end that sends.

#[cfg(not(any(loom, shuttle)))]
mod claim;
mod record;
mod room;

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::time::Duration;

#[cfg(not(any(loom, shuttle)))]
pub use claim::Claim;
use room::{MARK_STEP, NoRoom, Until};

use super::memory::{CLOSED, FINAL, Frame, Geometry, Memory};
use super::segment::Segment;
use super::shared::{ALIVE, RECEIVER_GONE, RECEIVER_SLEEPS, Shared};
use crate::error::{SendError, SendTimeoutError, TrySendError};
use crate::sync::{Arc, AtomicU32, Instant, Ordering, light_barrier, mutate};
use crate::wait::{Adaptive, Wait};

/// The sending end of a pipe. Dropping it disconnects: the receiver gets what was sent, then learns that it was all.
#[repr(align(128))]
pub struct Sender<T, W: Wait = Adaptive> {
    memory: Memory<T>,
    /// The frame that is being filled…
    frame: Frame<T>,
    /// …and where it is in the memory.
    unit: usize,
    /// Messages in it, those included that were sent quietly.
    filled: usize,
    /// Messages that may be in it before something must be looked after: the frame is full then, or there may be no room.
    allowed: usize,
    /// Messages in the records before it.
    before: u64,
    /// Messages that may be sent in all before something must be looked after.
    limit: u64,
    /// What the receiver is known to have taken.
    seen: u64,
    /// Where home begins anew: its units. A chunk never does.
    wrap: usize,
    /// The unit that only ends a chunk. Home has none.
    last: usize,
    at_home: bool,
    /// How many units ahead of itself it asks for lines. Where that is 0, it asks for the one at which it is.
    ahead: usize,
    segment: *mut Segment<T>,
    /// Where sending goes on in home.
    home_unit: usize,
    /// What was sent when home was left.
    home_left: u64,
    /// Chunks taken from the spares.
    spares: *mut Segment<T>,
    /// The mark that the number of messages under way has not passed, as far as is known.
    high: u64,
    on_high: Option<Box<dyn FnMut(usize) + Send>>,
    /// The word of `shared`, so that a send finds it in one step.
    state: NonNull<AtomicU32>,
    shared: Arc<Shared<T>>,
    _wait: PhantomData<W>,
}

// SAFETY: the only sender of values that may be sent to other threads; its pointers lead into memory that `shared` keeps alive,
// or to chunks that it owns.
unsafe impl<T: Send, W: Wait> Send for Sender<T, W> {}

impl<T, W: Wait> Sender<T, W> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        let mut sender = Sender {
            memory: shared.home.memory,
            frame: shared.home.memory.frame(0),
            unit: 0,
            filled: 0,
            allowed: 0,
            before: 0,
            limit: 0,
            seen: 0,
            ahead: shared.measures.ahead,
            wrap: shared.measures.home_units,
            last: usize::MAX,
            at_home: true,
            segment: std::ptr::from_ref(&shared.home).cast_mut(),
            home_unit: 0,
            home_left: 0,
            spares: std::ptr::null_mut(),
            high: MARK_STEP,
            on_high: None,
            state: NonNull::from(&*shared.state),
            shared,
            _wait: PhantomData,
        };
        sender.set_limit();
        sender
    }

    /// Sends a message, and wakes the receiver if it sleeps.
    ///
    /// Waits for room if the pipe is bounded and full. An unbounded pipe never makes its sender wait, and takes every message
    /// while the receiver lives.
    ///
    /// # Errors
    ///
    /// If the receiver is gone; in a forked child.
    #[inline]
    pub fn send(&mut self, message: T) -> Result<(), SendError<T>> {
        if self.filled == self.allowed
            && let Err(no_room) = self.make_room(Until::Deadline(None))
        {
            return Err(match no_room {
                NoRoom::Forked => SendError::Forked(message),
                NoRoom::Full | NoRoom::Disconnected => SendError::Disconnected(message),
            });
        }
        self.push(message)
    }

    /// Sends a message if there is room for it.
    ///
    /// # Errors
    ///
    /// If the pipe is bounded and full; if the receiver is gone; in a forked child.
    #[inline]
    pub fn try_send(&mut self, message: T) -> Result<(), TrySendError<T>> {
        if self.filled == self.allowed
            && let Err(no_room) = self.make_room(Until::Now)
        {
            return Err(match no_room {
                NoRoom::Full => TrySendError::Full(message),
                NoRoom::Disconnected => TrySendError::Disconnected(message),
                NoRoom::Forked => TrySendError::Forked(message),
            });
        }
        Ok(self.push(message)?)
    }

    /// Sends a message, waiting for room for at most `timeout`.
    ///
    /// # Errors
    ///
    /// If there was no room in time; if the receiver is gone; in a forked child.
    pub fn send_timeout(&mut self, message: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        if self.filled == self.allowed {
            // A time that no clock will ever show is no limit.
            let until = Until::Deadline(Instant::now().checked_add(timeout));
            if let Err(no_room) = self.make_room(until) {
                return Err(match no_room {
                    NoRoom::Full => SendTimeoutError::Timeout(message),
                    NoRoom::Disconnected => SendTimeoutError::Disconnected(message),
                    NoRoom::Forked => SendTimeoutError::Forked(message),
                });
            }
        }
        Ok(self.push(message)?)
    }

    /// Puts a message into the pipe without telling the receiver: it may stay unseen until [`Sender::flush`], the next message
    /// that is not quiet, or the end of the sender. Many small messages go over at the price of few.
    ///
    /// Waits for room like [`Sender::send`]; what is there is flushed before that.
    ///
    /// # Errors
    ///
    /// If the receiver was found gone; in a forked child. Where that is found only later, the message is dropped.
    #[inline]
    pub fn send_quiet(&mut self, message: T) -> Result<(), SendError<T>> {
        if self.filled == self.allowed
            && let Err(no_room) = self.make_room(Until::Deadline(None))
        {
            return Err(match no_room {
                NoRoom::Forked => SendError::Forked(message),
                NoRoom::Full | NoRoom::Disconnected => SendError::Disconnected(message),
            });
        }
        self.put(message);
        if self.filled == Geometry::<T>::PER_FRAME {
            self.publish();
        }
        Ok(())
    }

    /// Lets the receiver see what was sent quietly, and wakes it if it sleeps.
    pub fn flush(&mut self) {
        self.publish_quiet();
        mutate!(barrier_in_flush, light_barrier() => ());
        if self.shared.state.load(Ordering::Relaxed) != ALIVE {
            self.attend_quietly();
        }
    }

    /// Sends all of them, waiting for room where there is none. The receiver can take them as slices.
    ///
    /// # Errors
    ///
    /// If the receiver is gone, with the number of messages that were sent before that was found.
    pub fn send_slice(&mut self, messages: &[T]) -> Result<(), SendError<usize>>
    where
        T: Copy,
    {
        let mut rest = messages;
        while !rest.is_empty() {
            if self.filled == self.allowed
                && let Err(no_room) = self.make_room(Until::Deadline(None))
            {
                let sent = messages.len() - rest.len();
                return Err(match no_room {
                    NoRoom::Forked => SendError::Forked(sent),
                    NoRoom::Full | NoRoom::Disconnected => SendError::Disconnected(sent),
                });
            }
            let count = self.put_slice(rest);
            rest = &rest[count..];
        }
        self.flush();
        let state = self.shared.state.load(Ordering::Relaxed);
        if state & ALIVE == 0 {
            Err(SendError::Forked(messages.len()))
        } else if state & RECEIVER_GONE != 0 {
            Err(SendError::Disconnected(messages.len()))
        } else {
            Ok(())
        }
    }

    /// Copies as many messages as fit into one record, and publishes them. There is room for at least one.
    #[inline(always)]
    fn put_slice(&mut self, messages: &[T]) -> usize
    where
        T: Copy,
    {
        let wanted = messages.len().min(self.room());
        let long = self.long_record(wanted);
        let count = long.map_or(wanted.min(Geometry::<T>::PER_FRAME - self.filled), |(count, _)| count);
        // SAFETY: so many messages fit into what is left of the record, all of it free, and the slice is not in the pipe.
        unsafe { self.frame.copy(self.filled, messages.as_ptr(), count) };
        self.filled += count;
        match long {
            Some((_, units)) => self.close_long_record(units),
            None => self.publish(),
        }
        count
    }

    /// Sends all that an iterator gives, waiting for room where there is none.
    ///
    /// Returns how many they were. If the iterator panics, those that it gave before are sent.
    ///
    /// # Errors
    ///
    /// If the receiver is found gone: the message that was not sent; others may be left in the iterator, if it was lent.
    pub fn send_all(&mut self, messages: impl IntoIterator<Item = T>) -> Result<usize, SendError<T>> {
        let mut sent = 0;
        for message in messages {
            // Not quietly: the iterator may take its time, and nobody should wait for its next message to see this one.
            self.send(message)?;
            sent += 1;
        }
        Ok(sent)
    }

    /// Messages that were sent and not received, quiet ones included. Exact while the receiver does nothing.
    pub fn len(&self) -> usize {
        (self.sent() - self.shared.taken.load(Ordering::Acquire)) as usize
    }

    /// Whether everything was received.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many messages the pipe holds at most; null if there is no limit.
    pub fn capacity(&self) -> Option<usize> {
        super::capacity(&self.shared)
    }

    /// Whether the receiver is gone.
    pub fn is_disconnected(&self) -> bool {
        self.shared.state.load(Ordering::Acquire) & RECEIVER_GONE != 0
    }

    /// The most messages that were ever under way, as far as the sender has looked: it looks when they may have become 512, or a
    /// sixteenth, more than it knew of, and now.
    pub fn high_water_mark(&mut self) -> usize {
        self.refresh(true);
        self.shared.high_water.load(Ordering::Relaxed) as usize
    }

    /// Calls `callback` from within a send whenever the high-water mark is found to have risen, with its new value.
    pub fn on_high_water(&mut self, callback: impl FnMut(usize) + Send + 'static) {
        self.on_high = Some(Box::new(callback));
    }

    /// What the pipe's memory is used for.
    pub fn memory(&self) -> super::MemoryUse {
        super::memory_use(&self.shared)
    }

    /// Frees the memory that is kept for the next burst.
    pub fn trim(&mut self) {
        self.shared.spares.trim(&mut self.spares);
    }

    #[inline(always)]
    fn sent(&self) -> u64 {
        self.before + self.filled as u64
    }

    /// Messages that may be sent before something must be looked after.
    #[inline(always)]
    fn room(&self) -> usize {
        usize::try_from(self.limit - self.sent()).unwrap_or(usize::MAX)
    }

    /// Moves a message in, publishes it and looks whether anybody sleeps or has left.
    #[inline(always)]
    fn push(&mut self, message: T) -> Result<(), SendError<T>> {
        let (frame, index) = (self.frame, self.filled);
        debug_assert!(index < self.allowed);
        // SAFETY: we are the sender, and there is room, so the place is free.
        unsafe { frame.write(index, message) };
        self.filled = self.show(frame, index + 1);
        // The receiver that is about to sleep stores its bit, makes us execute a barrier here, and looks for our message. Without
        // this, the compiler might load before it stores.
        mutate!(barrier_in_send, light_barrier() => ());
        if self.undisturbed() {
            return Ok(());
        }
        self.attend(frame, index)
    }

    /// Whether nobody sleeps or has left, nothing must be fenced for, and this is no forked child.
    #[inline(always)]
    fn undisturbed(&self) -> bool {
        // SAFETY: a part of what `shared` keeps alive.
        let state = unsafe { self.state.as_ref() };
        // Relaxed: whatever else the word says is looked at again in `attend`.
        state.load(Ordering::Relaxed) == ALIVE
    }

    /// Moves a message in. There is room.
    #[inline(always)]
    fn put(&mut self, message: T) {
        debug_assert!(self.filled < self.allowed);
        // SAFETY: we are the sender, and there is room, so the place is free.
        unsafe { self.frame.write(self.filled, message) };
        self.filled += 1;
    }

    /// After a message was published: somebody sleeps, has left, must be fenced for, or this is a forked child.
    #[cold]
    #[inline(never)]
    fn attend(&mut self, frame: Frame<T>, index: usize) -> Result<(), SendError<T>> {
        let state = self.shared.state_after_publishing();
        if state & ALIVE == 0 {
            return Err(SendError::Forked(self.take_back(frame, index)));
        }
        if state & RECEIVER_GONE != 0 {
            // The receiver may have dropped the message before it stopped looking; `taken` says how far it came.
            if self.shared.sent_late()
                && mutate!(not_taken, self.shared.taken.load(Ordering::Relaxed) < self.sent() => true)
            {
                return Err(SendError::Disconnected(self.take_back(frame, index)));
            }
        } else if state & RECEIVER_SLEEPS != 0 {
            self.shared.wake_receiver();
        }
        Ok(())
    }

    /// The same after messages that are not given back.
    #[cold]
    fn attend_quietly(&self) {
        let state = self.shared.state_after_publishing();
        if state & RECEIVER_GONE != 0 {
            // Either the receiver drops them, or the end of the pipe does.
            self.shared.sent_late();
        } else if state & RECEIVER_SLEEPS != 0 {
            self.shared.wake_receiver();
        }
    }

    /// Undoes the last message, which lies here. Nobody reads any more.
    fn take_back(&mut self, frame: Frame<T>, index: usize) -> T {
        if self.filled == 0 {
            // It was the last one of its frame, which has been left since.
            self.before -= index as u64 + 1;
            let behind = if self.unit == 0 { self.wrap } else { self.unit };
            self.unit = behind - Geometry::<T>::FRAME;
            self.frame = frame;
        }
        // SAFETY: the record in which the message lies begins here.
        unsafe { frame.header() }.store(index as u32, Ordering::Relaxed);
        self.filled = index;
        self.allow();
        // SAFETY: just written here by us, and the header no longer counts it.
        unsafe { frame.read(index) }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl<T, W: Wait> Sender<T, W> {
    /// Goes on as if so many messages had been sent and received.
    pub(super) fn begin_at(&mut self, count: u64) {
        (self.before, self.seen) = (count, count);
        self.shared.room.store(count, Ordering::Relaxed);
        self.tell_progress();
        self.set_limit();
    }
}

impl<T, W: Wait> Drop for Sender<T, W> {
    fn drop(&mut self) {
        // SAFETY: the frame that is open begins here.
        let header = unsafe { self.frame.header() };
        self.shared.sender_gone.store(true, Ordering::Release);
        // Release: as in `show`.
        header.store(self.filled as u32 | FINAL | CLOSED, Ordering::Release);
        mutate!(barrier_in_close, light_barrier() => ());
        mutate!(wake_in_close, self.attend_quietly() => ());
        self.shared.spares.trim(&mut self.spares);
    }
}

impl<T, W: Wait> fmt::Debug for Sender<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("sent", &self.sent()).finish_non_exhaustive()
    }
}
