use std::fmt;
use std::hint::cold_path;
use std::ptr::NonNull;
use std::time::Duration;

use super::progress::{ALIVE, GONE, Progress, READERS_GONE};
use super::shared::Ring;
use super::slots::Place;
use crate::error::{SendError, SendTimeoutError, TrySendError};
use crate::sync::{Arc, AtomicU32, Instant, mutate};
use crate::wait::{SPINS_BEFORE_PARK, Until, WaitOutcome};

/// The only writer of a [ring](crate::ring).
///
/// It *publishes* events: a closure changes the event in the next slot, and then readers may see
/// it. The closure finds there what the last event in that slot, or the ring's `make`, has left. If
/// it panics, no reader sees anything of it, and the next event goes into the same slot, as the
/// closure left it.
///
/// When the writer is dropped, readers still get everything that was published, followed by an
/// error.
#[repr(align(128))]
pub struct Writer<T> {
    /// The frame of the next event, or the one before if the next event is the first of a frame.
    place: Place<T>,
    /// Number of events published, which is also the number of the next event.
    published: u64,
    /// Number of the first event without a free slot in this frame, as far as known.
    slots_end: u64,
    /// Number of the first event without a free slot, as far as known: a lap after the slowest
    /// reader.
    limit: u64,
    /// Pointer to the word of `ring.writer`, to save an indirection.
    word: NonNull<AtomicU32>,
    ring: Arc<Ring<T>>,
    /// First the readers after which no other one comes: see [`Writer::slowest`].
    readers: Vec<Arc<Progress>>,
    /// Number of those readers.
    last_readers: usize,
}

// SAFETY: the pointers lead to memory that `ring` keeps alive. The writer gives out exclusive
// references to events, which other threads share before and after, and may be the last end, which
// drops them.
unsafe impl<T: Send + Sync> Send for Writer<T> {}

impl<T> Writer<T> {
    pub(super) fn new(ring: Arc<Ring<T>>) -> Self {
        Writer {
            place: ring.slots.first_place(0),
            published: 0,
            slots_end: 0,
            limit: 0,
            word: NonNull::from(ring.writer.word()),
            ring,
            readers: Vec::new(),
            last_readers: 0,
        }
    }

    pub(super) fn ring(&self) -> &Arc<Ring<T>> {
        &self.ring
    }

    pub(super) fn add_reader(&mut self, reader: &Arc<Progress>) {
        self.readers.push(Arc::clone(reader));
    }

    /// Returns `true` if a reader has left.
    pub(super) fn has_lost_reader(&self) -> bool {
        self.readers.iter().any(|reader| reader.position() == GONE)
    }

    /// Sorts the readers, once all have come.
    pub(super) fn sort_readers(&mut self) {
        let dependencies = self.readers.iter().flat_map(|reader| reader.dependencies());
        let followed: Vec<*const Progress> =
            dependencies.map(|reader| &raw const **reader).collect();
        let is_last = |reader: &Arc<Progress>| !followed.contains(&(&raw const **reader));
        let (mut last, others): (Vec<_>, Vec<_>) = self.readers.drain(..).partition(is_last);
        self.last_readers = last.len();
        last.extend(others);
        self.readers = last;
    }

    /// Publishes the event that `fill` makes of the one in the next slot. Waits for room if the
    /// slowest reader is a whole lap behind.
    ///
    /// ```
    /// use threadtoll::ring;
    ///
    /// #[derive(Default)]
    /// struct Quote {
    ///     price: u64,
    /// }
    ///
    /// let mut builder = ring::Builder::new(8, Quote::default);
    /// let mut reader = builder.reader();
    /// let mut writer = builder.start()?;
    /// writer.publish(|quote| quote.price = 7)?;
    /// assert_eq!(reader.recv_batch()?.iter().map(|quote| quote.price).sum::<u64>(), 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If all readers are gone. `fill` may have been called.
    #[inline]
    pub fn publish(&mut self, fill: impl FnOnce(&mut T)) -> Result<(), SendError<()>> {
        match self.find_room(|| Until::Deadline(None)) {
            None => self.push(fill),
            Some(_) => Err(SendError(())),
        }
    }

    /// Publishes an event if there is room for it; see [`Writer::publish`]. Never waits.
    ///
    /// ```
    /// let mut builder = threadtoll::ring::Builder::new(1, || 0);
    /// let reader = builder.reader();
    /// let mut writer = builder.start()?;
    /// writer.try_publish(|event| *event = 1)?;
    /// assert!(writer.try_publish(|event| *event = 2).unwrap_err().is_full());
    /// # drop(reader);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If there is no room, in which case `fill` was not called, or if all readers are gone.
    #[inline]
    pub fn try_publish(&mut self, fill: impl FnOnce(&mut T)) -> Result<(), TrySendError<()>> {
        match self.find_room(|| Until::Now) {
            None => Ok(self.push(fill)?),
            Some(NoRoom::Full) => Err(TrySendError::Full(())),
            Some(NoRoom::Disconnected) => Err(TrySendError::Disconnected(())),
        }
    }

    /// Publishes an event, waiting for room for at most `timeout`; see [`Writer::publish`].
    ///
    /// # Errors
    ///
    /// If there was no room in time, in which case `fill` was not called, or if all readers are
    /// gone.
    pub fn publish_timeout(
        &mut self,
        timeout: Duration,
        fill: impl FnOnce(&mut T),
    ) -> Result<(), SendTimeoutError<()>> {
        // If the clock cannot represent the deadline, there is no limit.
        self.publish_until(|| Instant::now().checked_add(timeout), fill)
    }

    /// Publishes an event, waiting for room until `deadline`; see [`Writer::publish`].
    ///
    /// # Errors
    ///
    /// If there was no room in time, in which case `fill` was not called, or if all readers are
    /// gone.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub fn publish_deadline(
        &mut self,
        deadline: Instant,
        fill: impl FnOnce(&mut T),
    ) -> Result<(), SendTimeoutError<()>> {
        self.publish_until(|| Some(deadline), fill)
    }

    fn publish_until(
        &mut self,
        deadline: impl FnOnce() -> Option<Instant>,
        fill: impl FnOnce(&mut T),
    ) -> Result<(), SendTimeoutError<()>> {
        match self.find_room(|| Until::Deadline(deadline())) {
            None => Ok(self.push(fill)?),
            Some(no_room) => Err(no_room.in_time()),
        }
    }

    /// Publishes `count` events at once: `fill` gets the index of each, from 0, and the event in
    /// its slot. Waits until there is room for all of them.
    ///
    /// A reader that follows the writer receives all of them in one batch. If `fill` panics, none
    /// is published. If `count` is 0, nothing happens, and the result is always `Ok`.
    ///
    /// ```
    /// let mut builder = threadtoll::ring::Builder::new(1024, || 0);
    /// let mut reader = builder.reader();
    /// let mut writer = builder.start()?;
    /// writer.publish_many(256, |index, event| *event = 2 * index)?;
    /// assert_eq!(reader.recv_batch()?.iter().sum::<usize>(), 255 * 256);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If all readers are gone. `fill` may have been called.
    ///
    /// # Panics
    ///
    /// If `count` is larger than the ring's capacity.
    #[inline]
    pub fn publish_many(
        &mut self,
        count: usize,
        fill: impl FnMut(usize, &mut T),
    ) -> Result<(), SendError<()>> {
        match self.find_room_for(count, || Until::Deadline(None)) {
            None => self.push_many(count, fill),
            Some(_) => Err(SendError(())),
        }
    }

    /// Publishes `count` events if there is room for all of them; see [`Writer::publish_many`].
    /// Never waits.
    ///
    /// # Errors
    ///
    /// If there is no room for all, in which case `fill` was not called, or if all readers are
    /// gone.
    ///
    /// # Panics
    ///
    /// If `count` is larger than the ring's capacity.
    #[inline]
    pub fn try_publish_many(
        &mut self,
        count: usize,
        fill: impl FnMut(usize, &mut T),
    ) -> Result<(), TrySendError<()>> {
        match self.find_room_for(count, || Until::Now) {
            None => Ok(self.push_many(count, fill)?),
            Some(NoRoom::Full) => Err(TrySendError::Full(())),
            Some(NoRoom::Disconnected) => Err(TrySendError::Disconnected(())),
        }
    }

    /// Publishes `count` events, waiting for room for at most `timeout`; see
    /// [`Writer::publish_many`].
    ///
    /// # Errors
    ///
    /// If there was no room for all in time, in which case `fill` was not called, or if all readers
    /// are gone.
    ///
    /// # Panics
    ///
    /// If `count` is larger than the ring's capacity.
    pub fn publish_many_timeout(
        &mut self,
        timeout: Duration,
        count: usize,
        fill: impl FnMut(usize, &mut T),
    ) -> Result<(), SendTimeoutError<()>> {
        self.publish_many_until(|| Instant::now().checked_add(timeout), count, fill)
    }

    /// Publishes `count` events, waiting for room until `deadline`; see [`Writer::publish_many`].
    ///
    /// # Errors
    ///
    /// If there was no room for all in time, in which case `fill` was not called, or if all readers
    /// are gone.
    ///
    /// # Panics
    ///
    /// If `count` is larger than the ring's capacity.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub fn publish_many_deadline(
        &mut self,
        deadline: Instant,
        count: usize,
        fill: impl FnMut(usize, &mut T),
    ) -> Result<(), SendTimeoutError<()>> {
        self.publish_many_until(|| Some(deadline), count, fill)
    }

    fn publish_many_until(
        &mut self,
        deadline: impl FnOnce() -> Option<Instant>,
        count: usize,
        fill: impl FnMut(usize, &mut T),
    ) -> Result<(), SendTimeoutError<()>> {
        match self.find_room_for(count, || Until::Deadline(deadline())) {
            None => Ok(self.push_many(count, fill)?),
            Some(no_room) => Err(no_room.in_time()),
        }
    }

    /// Number of events that were published and that the slowest reader has not read; a snapshot if
    /// readers are active. 0 if all readers are gone, and in a forked child.
    pub fn lag(&self) -> u64 {
        if self.is_forked() {
            return 0;
        }
        // A reader that has left has the largest position.
        self.published.saturating_sub(self.slowest().0)
    }

    /// Number of events by which the slowest reader may be behind the writer.
    pub fn capacity(&self) -> usize {
        self.ring.capacity as usize
    }

    /// Number of readers that have not been dropped.
    pub fn readers(&self) -> usize {
        self.readers.iter().filter(|reader| reader.position() != GONE).count()
    }

    /// Returns `true` if all readers have been dropped, or if this is a forked child.
    pub fn is_disconnected(&self) -> bool {
        // As `make_room` finds it, so this agrees with its errors.
        self.is_forked() || self.slowest().1.is_none()
    }

    #[inline(always)]
    fn is_forked(&self) -> bool {
        // SAFETY: part of `ring`, which is alive.
        Progress::is_forked(unsafe { self.word.as_ref() })
    }

    /// Looks for room for an event, waiting for it if `until` allows. Returns `None` once there is
    /// room.
    #[inline(always)]
    fn find_room(&mut self, until: impl FnOnce() -> Until) -> Option<NoRoom> {
        if self.published < self.slots_end {
            return None;
        }
        cold_path();
        if self.published < self.limit {
            self.enter_frame();
            return None;
        }
        self.make_room(1, until())
    }

    /// Like [`Writer::find_room`], for `count` events.
    #[inline(always)]
    fn find_room_for(&mut self, count: usize, until: impl FnOnce() -> Until) -> Option<NoRoom> {
        assert!(count as u64 <= self.ring.capacity, "more events than the ring holds");
        if self.published + count as u64 <= self.limit {
            return None;
        }
        cold_path();
        self.make_room(count as u64, until())
    }

    /// Makes `place` the frame of the next event, and updates `slots_end`.
    #[inline(always)]
    fn enter_frame(&mut self) {
        if self.published == self.place.frame_end() {
            self.place.next_frame();
        }
        self.slots_end = self.limit.min(self.place.frame_end());
    }

    /// The slow path of [`Writer::find_room`].
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, count: u64, until: Until) -> Option<NoRoom> {
        if self.is_forked() {
            return Some(NoRoom::Disconnected);
        }
        // Each reader must have read this many.
        let needed = (self.published + count).saturating_sub(self.ring.capacity);
        loop {
            let (position, slowest) = self.slowest();
            let Some(slowest) = slowest else { return Some(NoRoom::Disconnected) };
            if position >= needed {
                self.limit = position + self.ring.capacity;
                self.enter_frame();
                return None;
            }
            let Until::Deadline(deadline) = until else { return Some(NoRoom::Full) };
            let poll = || (slowest.position() >= needed).then_some(());
            match slowest.wait(deadline, SPINS_BEFORE_PARK, poll) {
                WaitOutcome::Found(()) => {}
                WaitOutcome::TimedOut => return Some(NoRoom::Full),
                WaitOutcome::Forked => return Some(NoRoom::Disconnected),
            }
        }
    }

    /// The slowest reader, if there is one, and its position.
    ///
    /// As long as no reader has left, only those count after which no other one comes. Each of the
    /// others is ahead of one of these, because a reader has read only what all the readers that it
    /// follows had read before, as long as these were there, and positions only grow.
    fn slowest(&self) -> (u64, Option<&Progress>) {
        let (mut position, mut slowest, mut left) = (GONE, None, false);
        for (index, reader) in self.readers.iter().enumerate() {
            if index == self.last_readers && mutate!(gate_by_others, !left => true) {
                break;
            }
            let other = reader.position();
            left |= other == GONE;
            if other < position {
                (position, slowest) = (other, Some(&**reader));
            }
        }
        (position, slowest)
    }

    /// Publishes an event. There must be room for it.
    #[inline(always)]
    fn push(&mut self, fill: impl FnOnce(&mut T)) -> Result<(), SendError<()>> {
        // SAFETY: all readers have read the last event in this slot, and none uses the slot before
        // a header or the position counts it.
        unsafe { self.place.slot(self.published).change(fill) };
        let published = self.published + 1;
        self.place.publish(published);
        self.tell(published)
    }

    /// Like [`Writer::push`], for `count` events.
    #[inline(always)]
    fn push_many(
        &mut self,
        count: usize,
        mut fill: impl FnMut(usize, &mut T),
    ) -> Result<(), SendError<()>> {
        if count == 0 {
            return Ok(());
        }
        self.enter_frame();
        let end = self.published + count as u64;
        let first = self.place;
        let (mut place, mut next) = (first, self.published);
        loop {
            for number in next..end.min(place.frame_end()) {
                let index = (number - self.published) as usize;
                // SAFETY: as in `push`.
                unsafe { place.slot(number).change(|event| fill(index, event)) };
            }
            next = place.frame_end();
            if next >= end {
                break;
            }
            place.next_frame();
        }
        self.place = place;
        self.slots_end = self.limit.min(place.frame_end());
        // The first frame comes last, since readers go through frames in order. So they see either
        // all of these events or none.
        let publish_first = || first.publish(end.min(first.frame_end()));
        if mutate!(first_frame_last, false => true) {
            publish_first();
        }
        place = first;
        while place.frame_end() < end {
            place.next_frame();
            place.publish_before(end.min(place.frame_end()));
        }
        publish_first();
        self.tell(end)
    }

    /// Says that this many events have been published.
    #[inline(always)]
    fn tell(&mut self, published: u64) -> Result<(), SendError<()>> {
        self.ring.writer.store(published);
        // SAFETY: part of `ring`, which is alive.
        let quiet = Progress::is_quiet(unsafe { self.word.as_ref() });
        self.published = published;
        if quiet {
            return Ok(());
        }
        cold_path();
        self.tell_slow()
    }

    #[cold]
    #[inline(never)]
    fn tell_slow(&mut self) -> Result<(), SendError<()>> {
        let word = self.ring.writer.after_store(self.published);
        if word & (ALIVE | READERS_GONE) == ALIVE {
            return Ok(());
        }
        // The next call looks for room, and finds that nobody is there.
        (self.slots_end, self.limit) = (self.published, self.published);
        Err(SendError(()))
    }

    #[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
    pub(super) fn begin_at(&mut self, count: u64) {
        self.place = self.ring.slots.first_place(count);
        (self.published, self.slots_end, self.limit) = (count, count, count);
        self.ring.writer.begin_at(count);
    }
}

#[derive(Clone, Copy, Debug)]
enum NoRoom {
    Full,
    Disconnected,
}

impl NoRoom {
    fn in_time(self) -> SendTimeoutError<()> {
        match self {
            NoRoom::Full => SendTimeoutError::Timeout(()),
            NoRoom::Disconnected => SendTimeoutError::Disconnected(()),
        }
    }
}

impl<T> Drop for Writer<T> {
    fn drop(&mut self) {
        self.ring.writer.close();
        self.readers.iter().for_each(|reader| reader.close());
    }
}

impl<T> fmt::Debug for Writer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("published", &self.published).finish_non_exhaustive()
    }
}
