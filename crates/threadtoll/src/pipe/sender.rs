//! The end that sends.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::time::Duration;

use super::memory::{CLOSED, FINAL, Frame, Geometry, JUMP, Memory};
use super::segment::Segment;
use super::shared::{ALIVE, RECEIVER_GONE, RECEIVER_SLEEPS, SENDER, Shared};
use crate::error::{SendError, SendTimeoutError, TrySendError};
use crate::sync::{Arc, AtomicU32, Instant, Ordering, light_barrier, mutate, prefetch_to_write};
use crate::wait::{Adaptive, Certainty, Wait, Waited, by_barrier, wait};

/// The high-water mark is looked after when it may have risen by so many messages…
const MARK_STEP: u64 = 512;
/// …or by this part of itself.
const MARK_SHARE: u64 = 16;
/// A sender that finds no room looks at `room` so often for each message that the pipe holds, then at `taken`: the receiver writes that with
/// each message, and is slowed down by being looked at.
const PATIENT_LOOKS: u64 = if cfg!(any(loom, shuttle)) { 4096 } else { 4 };

/// It never looks at `room` more often than this.
const MOST_PATIENT: u64 = 4096;

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

/// How long to wait for room.
#[derive(Clone, Copy)]
enum Until {
    Now,
    /// Null: for ever.
    Deadline(Option<Instant>),
}

/// Why there is no room.
enum NoRoom {
    Full,
    Disconnected,
    Forked,
}

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

    /// Lends room for up to `most` messages that are to be written in place, side by side; waits for room like [`Sender::send`].
    ///
    /// The room that is lent may be for fewer messages, never for none: what is left of a line, or up to a page where a line
    /// begins.
    ///
    /// ```
    /// let (mut sender, mut receiver) = threadtoll::pipe::bounded(64);
    /// let mut claim = sender.claim(4).unwrap();
    /// claim.room()[0].write(7);
    /// // SAFETY: the first place was written.
    /// unsafe { claim.send(1) };
    /// assert_eq!(receiver.recv(), Ok(7));
    /// ```
    ///
    /// # Errors
    ///
    /// If the receiver is gone; in a forked child.
    ///
    /// # Panics
    ///
    /// If `most` is 0.
    #[cfg(not(any(loom, shuttle)))]
    pub fn claim(&mut self, most: usize) -> Result<Claim<'_, T, W>, SendError<()>> {
        assert!(most > 0, "a claim of no messages");
        self.flush();
        let state = self.shared.state.load(Ordering::Relaxed);
        if state & ALIVE == 0 {
            return Err(SendError::Forked(()));
        }
        if state & RECEIVER_GONE != 0 {
            return Err(SendError::Disconnected(()));
        }
        if self.filled == self.allowed {
            self.make_room(Until::Deadline(None)).map_err(|no_room| match no_room {
                NoRoom::Forked => SendError::Forked(()),
                NoRoom::Full | NoRoom::Disconnected => SendError::Disconnected(()),
            })?;
        }
        let wanted = most.min(self.room());
        let places = match self.long_record(wanted) {
            Some((count, _)) => count,
            None => wanted.min(Geometry::<T>::PER_FRAME - self.filled),
        };
        if places > Geometry::<T>::PER_FRAME {
            // The room reaches over the header behind the frame. Until that is zero again nothing may be sent past `make_room`,
            // also if the claim is forgotten.
            self.allowed = self.filled;
        }
        Ok(Claim { places, sender: self })
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

    /// Lets the receiver see everything that is in the frame.
    #[inline(always)]
    fn publish(&mut self) {
        self.filled = self.show(self.frame, self.filled);
    }

    /// Lets the receiver see so many messages of the open frame, and goes on to the next one if it is full. Returns the messages in
    /// the frame that is open then, for the caller to keep: so one store writes what the next send loads, whichever way it went. A CPU
    /// that guesses which store feeds a load would be wrong once per frame otherwise.
    #[inline(always)]
    fn show(&mut self, frame: Frame<T>, filled: usize) -> usize {
        if filled == Geometry::<T>::PER_FRAME {
            self.close_record(frame, filled, Geometry::<T>::FRAME);
            return 0;
        }
        // SAFETY: the frame that is open begins here.
        let header = unsafe { frame.header() };
        // Release: the partner of the acquire in the receiver's look. Without it the receiver might read before we have written.
        header.store(filled as u32, mutate!(publish, Release));
        filled
    }

    /// The same for messages that were sent quietly, if there are any.
    fn publish_quiet(&mut self) {
        // SAFETY: the frame that is open begins here.
        let header = unsafe { self.frame.header() };
        // Only this end stores headers.
        if header.load(Ordering::Relaxed) as usize != self.filled {
            self.publish();
        }
    }

    /// Publishes a record that is full, and opens the frame behind it. The caller sets `filled` to 0.
    #[inline(always)]
    fn close_record(&mut self, frame: Frame<T>, filled: usize, units: usize) {
        if units > Geometry::<T>::FRAME {
            // The frame behind an ordinary frame was prepared before; that behind a longer record was not.
            mutate!(zero_behind_long_record, self.prepare(self.after(self.unit, units)) => ());
        }
        // SAFETY: the record that is open begins here.
        let header = unsafe { frame.header() };
        // Release: as in `show`; and the header behind it, zeroed before, is seen as zero.
        header.store(filled as u32 | FINAL, mutate!(publish_record, Release));
        self.open(filled, self.after(self.unit, units), units);
    }

    /// The same for the record that was just written, of so many units.
    #[inline(always)]
    fn close_long_record(&mut self, units: usize) {
        self.close_record(self.frame, self.filled, units);
        self.filled = 0;
    }

    #[inline(always)]
    fn after(&self, unit: usize, units: usize) -> usize {
        let next = unit + units;
        if next == self.wrap { 0 } else { next }
    }

    /// Makes the header of a frame that is about to follow say that it is empty.
    #[inline(always)]
    fn prepare(&self, unit: usize) {
        // SAFETY: free memory in which a record will begin; the receiver looks there only when the one before it is final.
        unsafe { self.memory.frame(unit).header() }.store(0, Ordering::Relaxed);
    }

    /// Goes on with an empty frame, whose header is zero, behind a record of so many messages and units. The caller sets `filled` to 0.
    #[inline(always)]
    fn open(&mut self, filled: usize, unit: usize, behind: usize) {
        self.before += filled as u64;
        self.unit = unit;
        self.frame = self.memory.frame(unit);
        self.allow();
        if unit != self.last {
            // Here and not before the last frame was made final: there the store would have to wait for its line in front of
            // the one that somebody is waiting for.
            mutate!(zero_behind_record, self.prepare(self.after(unit, Geometry::<T>::FRAME)) => ());
            self.fetch_ahead(behind);
        }
        mutate!(tell_progress, self.tell_progress() => ());
    }

    /// Sets how many messages the open frame may hold.
    #[inline(always)]
    fn allow(&mut self) {
        // The last frame of a chunk only ends it: no room makes the next send look for a segment.
        let most = if self.unit == self.last { 0 } else { Geometry::<T>::PER_FRAME as u64 };
        self.allowed = most.min(self.limit - self.before) as usize;
    }

    #[inline(always)]
    fn tell_progress(&self) {
        // SAFETY: the frame that is open begins here.
        let header = unsafe { self.frame.header() };
        let sent = &self.shared.sent;
        sent.open.store(std::ptr::from_ref(header).cast_mut(), Ordering::Release);
        sent.before.store(self.before, Ordering::Release);
    }

    /// Asks for as many lines as the last record had, which will be written soon.
    #[inline(always)]
    fn fetch_ahead(&self, units: usize) {
        let unit = self.unit + self.ahead;
        let unit = if unit >= self.wrap { unit - self.wrap } else { unit };
        if units == 1 {
            return prefetch_to_write(self.memory.line(unit));
        }
        let straight = units.min(self.wrap - unit);
        self.fetch(unit, straight);
        self.fetch(0, units - straight);
    }

    /// Asks for so many lines from this unit on. Behind a chunk's end that may be a few that are somebody else's: they are fetched in vain, and once
    /// per chunk.
    #[inline(always)]
    fn fetch(&self, unit: usize, units: usize) {
        let mut line = self.memory.line(unit);
        for _ in 0..units {
            prefetch_to_write(line);
            line = line.wrapping_add(Geometry::<T>::UNIT);
        }
    }

    /// How many of so many messages go into one long record, and its units; null if they go into frames.
    ///
    /// A long record never takes more units than the same messages in full frames: that is what home has room for.
    #[inline(always)]
    fn long_record(&self, messages: usize) -> Option<(usize, usize)> {
        if !Geometry::<T>::DENSE || messages < Geometry::<T>::fits(2) || self.filled != 0 {
            return None;
        }
        let most = self.shared.measures.longest.min(self.wrap.min(self.last) - self.unit);
        let count = messages.min(Geometry::<T>::fits(most));
        let units = Geometry::<T>::units(count);
        if units * Geometry::<T>::PER_FRAME <= count {
            return Some((count, units));
        }
        // The last line would be too empty: one less, filled to its end.
        (units > 2).then(|| (Geometry::<T>::fits(units - 1), units - 1))
    }

    /// Publishes a claimed record of more messages than a frame holds.
    #[cfg(not(any(loom, shuttle)))]
    fn close_claimed(&mut self) {
        let units = Geometry::<T>::units(self.filled);
        if units * Geometry::<T>::PER_FRAME <= self.filled {
            return self.close_long_record(units);
        }
        // Fewer were sent than claimed, and the last line would be too empty (see `long_record`): what is in it becomes the
        // beginning of a frame of its own.
        let full = Geometry::<T>::fits(units - 1);
        let rest = self.filled - full;
        let frame = self.unit + units - 1;
        let (from, to) = (self.frame.place(full), self.memory.frame(frame).place(0));
        // SAFETY: both inside the room that was claimed, which may overlap itself; the messages were written.
        unsafe { std::ptr::copy(from.as_ptr(), to.as_ptr(), rest) };
        self.filled = full;
        self.prepare(frame);
        self.close_long_record(units - 1);
        self.filled = rest;
        self.publish();
    }

    /// Makes good what a claim may have written over: the header behind the frame that is open.
    #[inline]
    fn restore(&mut self) {
        if self.unit != self.last {
            self.prepare(self.after(self.unit, Geometry::<T>::FRAME));
        }
        self.allow();
    }

    /// Finds out what the receiver has taken. Where that may be a little old, nothing more is taken from its cache.
    fn refresh(&mut self, certain: bool) {
        let shared = &self.shared;
        // Acquire: what the receiver has read may be written.
        let taken = if certain {
            shared.taken.load(mutate!(see_taken, Acquire))
        } else {
            shared.room.load(mutate!(see_room, Acquire))
        };
        self.seen = self.seen.max(taken);
        let under_way = self.sent() - self.seen;
        if certain && under_way > shared.high_water.load(Ordering::Relaxed) {
            shared.high_water.store(under_way, Ordering::Relaxed);
        }
    }

    /// Sets how many messages may be sent before something must be looked after.
    fn set_limit(&mut self) {
        let capacity = if self.at_home { self.shared.measures.home } else { u64::MAX / 2 };
        let limit = self.seen + capacity.min(self.high);
        self.limit = limit.max(self.sent());
        self.allow();
    }

    /// There may be no room: finds out, waits, or goes to another segment.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, until: Until) -> Result<(), NoRoom> {
        let unbounded = self.shared.measures.chunk_units != 0;
        let state = self.shared.state.load(Ordering::Relaxed);
        if state & ALIVE == 0 {
            return Err(NoRoom::Forked);
        }
        if state & RECEIVER_GONE != 0 {
            return Err(NoRoom::Disconnected);
        }
        self.restore();
        // What was sent quietly must be seen, by a receiver that is awake, before anybody waits for it to be taken.
        self.flush();
        if self.filled != self.allowed {
            return Ok(());
        }
        self.refresh(false);
        self.look_after_mark();
        if matches!(until, Until::Now) || unbounded && self.sent() - self.seen >= self.shared.measures.home {
            self.refresh(true);
        }
        if unbounded {
            if self.at_home && self.sent() - self.seen >= self.shared.measures.home || self.unit == self.last
            {
                self.change_segment();
            }
            self.set_limit();
            return Ok(());
        }
        self.set_limit();
        if self.filled != self.allowed {
            return Ok(());
        }
        let deadline = match until {
            Until::Now => return Err(NoRoom::Full),
            Until::Deadline(deadline) => deadline,
        };
        self.wait_for_room(deadline)
    }

    fn wait_for_room(&mut self, deadline: Option<Instant>) -> Result<(), NoRoom> {
        let shared = Arc::clone(&self.shared);
        let mut looks = 0u64;
        let patient = shared.measures.home.saturating_mul(PATIENT_LOOKS).min(MOST_PATIENT);
        let waited = wait::<W, _>(shared.sleeper(SENDER), deadline, by_barrier, |certainty| {
            looks = looks.saturating_add(1);
            self.refresh(certainty == Certainty::Certain || looks > patient);
            if mutate!(see_receiver_gone, shared.state.load(Ordering::Acquire) & RECEIVER_GONE != 0 => false)
            {
                return Some(Err(NoRoom::Disconnected));
            }
            (self.sent() - self.seen < shared.measures.home).then_some(Ok(()))
        });
        match waited {
            Waited::Found(found) => found?,
            Waited::Late => return Err(NoRoom::Full),
            Waited::Forked => return Err(NoRoom::Forked),
        }
        self.set_limit();
        Ok(())
    }

    /// The number of messages under way may have passed the mark: if so, says so, and moves the mark on.
    fn look_after_mark(&mut self) {
        let under_way = self.sent() - self.seen;
        if under_way < self.high {
            return;
        }
        self.refresh(true);
        let under_way = self.sent() - self.seen;
        if under_way < self.high {
            return;
        }
        self.high = under_way + MARK_STEP.max(under_way / MARK_SHARE);
        if let Some(callback) = &mut self.on_high {
            callback(under_way as usize);
        }
    }

    /// Goes on in another segment: home if the receiver has left it and is near, a chunk otherwise.
    fn change_segment(&mut self) {
        let shared = Arc::clone(&self.shared);
        let home = std::ptr::from_ref(&shared.home).cast_mut();
        let under_way = self.sent() - self.seen;
        // The receiver has taken a message from behind home, so it has read the jump out of it.
        let home_is_free = !self.at_home && self.seen > self.home_left;
        let goes_home =
            mutate!(go_home, home_is_free && under_way <= shared.measures.home / 2 => !self.at_home);
        let (next, memory, unit, wrap, last) = if goes_home {
            (home, shared.home.memory, self.home_unit, shared.measures.home_units, usize::MAX)
        } else {
            let chunk = shared.spares.take(&mut self.spares);
            // SAFETY: a chunk that was just taken is alive and ours.
            (chunk, unsafe { &*chunk }.memory, 0, usize::MAX, shared.measures.chunk_units)
        };
        // SAFETY: the segment that we are in is alive: the receiver has not been told to leave it.
        unsafe { &*self.segment }.next.store(next, Ordering::Relaxed);
        // SAFETY: the frame that is open begins here.
        let header = unsafe { self.frame.header() };
        let jump = self.filled as u32 | FINAL | JUMP;
        if self.at_home {
            self.home_left = self.sent();
            self.home_unit = self.after(self.unit, Geometry::<T>::FRAME);
        }
        self.segment = next;
        self.memory = memory;
        self.at_home = goes_home;
        (self.wrap, self.last) = (wrap, last);
        self.prepare(unit);
        self.open(self.filled, unit, Geometry::<T>::FRAME);
        self.filled = 0;
        // Last: once the receiver has seen this it may give the segment back, and asks us only for what was told before.
        // Release: as in `show`, and the next segment is ready.
        header.store(jump, mutate!(publish_jump, Release));
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

/// Room for messages that are written in place; see [`Sender::claim`]. Dropped without [`Claim::send`], nothing is sent.
#[cfg(not(any(loom, shuttle)))]
#[derive(Debug)]
pub struct Claim<'a, T, W: Wait = Adaptive> {
    sender: &'a mut Sender<T, W>,
    places: usize,
}

#[cfg(not(any(loom, shuttle)))]
impl<T, W: Wait> Claim<'_, T, W> {
    /// The room: at least one place, at most as many as were asked for.
    pub fn room(&mut self) -> &mut [std::mem::MaybeUninit<T>] {
        let place = self.sender.frame.place(self.sender.filled);
        // SAFETY: free places of the record that is open, side by side; `MaybeUninit` may hold anything.
        unsafe { std::slice::from_raw_parts_mut(place.as_ptr().cast(), self.places) }
    }

    /// Sends the first `count` places.
    ///
    /// # Panics
    ///
    /// If there are not so many.
    ///
    /// # Safety
    ///
    /// They must have been written.
    pub unsafe fn send(self, count: usize) {
        assert!(count <= self.places, "the claim has {} places, not {count}", self.places);
        if count == 0 {
            return;
        }
        let Claim { sender, places } = self;
        sender.filled += count;
        if sender.filled > Geometry::<T>::PER_FRAME {
            sender.close_claimed();
        } else {
            if places > Geometry::<T>::PER_FRAME {
                sender.restore();
            }
            sender.publish();
        }
        sender.flush();
    }
}
