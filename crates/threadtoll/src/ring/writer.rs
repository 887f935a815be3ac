use std::fmt;
use std::hint::cold_path;
use std::mem;
use std::ptr::NonNull;
use std::time::Duration;

use super::progress::{ALIVE, GONE, Progress, READERS_GONE};
use super::shared::Ring;
use super::slots::Place;
use crate::error::{SendError, SendTimeoutError, TrySendError};
use crate::sync::{Arc, AtomicU32, Instant, mutate};
use crate::wait::{SPINS_BEFORE_PARK, Until, WaitOutcome};

/// Distance in frames from the frame that is written to the one that is prefetched. Batches were
/// slower with 4, and without a prefetch.
const AHEAD: u64 = 20;

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
    cursor: Cursor<T>,
    /// Pointers to `ring.writer` and to its word, to save indirections.
    progress: NonNull<Progress>,
    word: NonNull<AtomicU32>,
    others: Box<Others<T>>,
}

/// Where a writer is. Slow paths take and return it by value: if its address left the writer's own
/// code, it would be reloaded from memory around each store of the position.
struct Cursor<T> {
    /// The frame of the next event, or the one before if the next event is the first of a frame.
    place: Place<T>,
    /// Number of events published, which is also the number of the next event.
    published: u64,
    /// Number of the first event without a free slot in this frame, as far as known.
    slots_end: u64,
    /// Number of the first event without a free slot, as far as known: a lap after the slowest
    /// reader.
    limit: u64,
}

impl<T> Clone for Cursor<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Cursor<T> {}

/// Events of which no reader knows yet. If a closure panics before all are filled, the headers that
/// count them must not outlive it: later events would lead readers to them.
struct Unpublish<T> {
    /// The frame of the first of these events.
    first: Place<T>,
    /// Number of the first of these events, and of the first one after them.
    published: u64,
    end: u64,
}

impl<T> Drop for Unpublish<T> {
    #[cold]
    fn drop(&mut self) {
        let mut place = self.first;
        while place.frame_end() < self.end {
            place.next_frame();
            place.publish_before(self.published);
        }
    }
}

/// The ends to which a writer writes, for as long as it lives.
struct Others<T> {
    ring: Arc<Ring<T>>,
    /// First the readers after which no other one comes: see [`Others::slowest`].
    readers: Vec<Arc<Progress>>,
    /// Number of those readers.
    last_readers: usize,
}

// SAFETY: the pointers lead to memory that `others.ring` keeps alive. The writer gives out
// exclusive references to events, which other threads share before and after, and may be the last
// end, which drops them.
unsafe impl<T: Send + Sync> Send for Writer<T> {}

impl<T> Writer<T> {
    pub(super) fn new(ring: Arc<Ring<T>>) -> Self {
        let place = ring.slots.first_place(0);
        Writer {
            cursor: Cursor { place, published: 0, slots_end: 0, limit: 0 },
            progress: NonNull::from(&ring.writer),
            word: NonNull::from(ring.writer.word()),
            others: Box::new(Others { ring, readers: Vec::new(), last_readers: 0 }),
        }
    }

    pub(super) fn ring(&self) -> &Arc<Ring<T>> {
        &self.others.ring
    }

    pub(super) fn add_reader(&mut self, reader: &Arc<Progress>) {
        self.others.readers.push(Arc::clone(reader));
    }

    /// Returns `true` if a reader has left.
    pub(super) fn has_lost_reader(&self) -> bool {
        self.others.readers.iter().any(|reader| reader.position() == GONE)
    }

    /// Sorts the readers, once all have come.
    pub(super) fn sort_readers(&mut self) {
        let Others { readers, last_readers, .. } = &mut *self.others;
        let dependencies = readers.iter().flat_map(|reader| reader.dependencies());
        let followed: Vec<*const Progress> =
            dependencies.map(|reader| &raw const **reader).collect();
        let is_last = |reader: &Arc<Progress>| !followed.contains(&(&raw const **reader));
        let (mut last, others): (Vec<_>, Vec<_>) = readers.drain(..).partition(is_last);
        *last_readers = last.len();
        last.extend(others);
        *readers = last;
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
        self.cursor.published.saturating_sub(self.others.slowest().0)
    }

    /// Number of events by which the slowest reader may be behind the writer.
    pub fn capacity(&self) -> usize {
        self.others.ring.capacity as usize
    }

    /// Number of readers that have not been dropped.
    pub fn readers(&self) -> usize {
        self.others.readers.iter().filter(|reader| reader.position() != GONE).count()
    }

    /// Returns `true` if all readers have been dropped, or if this is a forked child.
    pub fn is_disconnected(&self) -> bool {
        // As `make_room` finds it, so this agrees with its errors.
        self.is_forked() || self.others.slowest().1.is_none()
    }

    #[inline(always)]
    fn is_forked(&self) -> bool {
        // SAFETY: part of `others.ring`, which is alive.
        Progress::is_forked(unsafe { self.word.as_ref() })
    }

    /// Looks for room for an event, waiting for it if `until` allows. Returns `None` once there is
    /// room.
    #[inline(always)]
    fn find_room(&mut self, until: impl FnOnce() -> Until) -> Option<NoRoom> {
        if self.cursor.published < self.cursor.slots_end {
            return None;
        }
        cold_path();
        if self.cursor.published < self.cursor.limit {
            self.cursor.enter_frame();
            return None;
        }
        self.make_room(1, until())
    }

    /// Like [`Writer::find_room`], for `count` events.
    #[inline(always)]
    fn find_room_for(&mut self, count: usize, until: impl FnOnce() -> Until) -> Option<NoRoom> {
        assert!(count <= self.capacity(), "more events than the ring holds");
        if self.cursor.published + count as u64 <= self.cursor.limit {
            return None;
        }
        cold_path();
        self.make_room(count as u64, until())
    }

    #[inline(always)]
    fn make_room(&mut self, count: u64, until: Until) -> Option<NoRoom> {
        if self.is_forked() {
            return Some(NoRoom::Disconnected);
        }
        let (cursor, no_room) = self.others.make_room(self.cursor, count, until);
        self.cursor = cursor;
        no_room
    }

    /// Publishes an event. There must be room for it.
    #[inline(always)]
    fn push(&mut self, fill: impl FnOnce(&mut T)) -> Result<(), SendError<()>> {
        let Cursor { place, published, .. } = self.cursor;
        // SAFETY: all readers have read the last event in this slot, and none uses the slot before
        // a header or the position counts it.
        unsafe { place.slot(published).change(fill) };
        place.publish(published + 1);
        self.tell(published + 1)
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
        self.cursor.enter_frame();
        let Cursor { place: first, published, limit, .. } = self.cursor;
        let end = published + count as u64;
        let unpublish = Unpublish { first, published, end };
        let mut fill_one = |place: Place<T>, number: u64| {
            let index = (number - published) as usize;
            // SAFETY: as in `push`.
            unsafe { place.slot(number).change(|event| fill(index, event)) };
        };
        // The first frame comes last, since readers go through frames in order. So they see either
        // all of these events or none.
        let publish_first = || first.publish(end.min(first.frame_end()));
        let (mut place, mut next) = (first, published);
        loop {
            let stop = end.min(place.frame_end());
            // The compiler unrolls a loop over a whole frame.
            if stop - next == Place::<T>::PER_FRAME {
                (0..Place::<T>::PER_FRAME).for_each(|at| fill_one(place, next + at));
            } else {
                (next..stop).for_each(|number| fill_one(place, number));
            }
            if next > published {
                place.publish_before(stop);
            } else if mutate!(first_frame_last, false => true) {
                publish_first();
            }
            if stop == end {
                break;
            }
            next = stop;
            place.next_frame();
            if next + AHEAD * Place::<T>::PER_FRAME < limit {
                place.prefetch_to_write(AHEAD as usize);
            }
        }
        mem::forget(unpublish);
        self.cursor.place = place;
        self.cursor.slots_end = limit.min(place.frame_end());
        publish_first();
        self.tell(end)
    }

    /// Says that this many events have been published.
    #[inline(always)]
    fn tell(&mut self, published: u64) -> Result<(), SendError<()>> {
        // SAFETY: part of `others.ring`, which is alive.
        let progress = unsafe { self.progress.as_ref() };
        progress.store(published);
        // SAFETY: part of `others.ring`, which is alive.
        let quiet = Progress::is_quiet(unsafe { self.word.as_ref() });
        self.cursor.published = published;
        if quiet {
            return Ok(());
        }
        cold_path();
        if progress.after_store(published) & (ALIVE | READERS_GONE) == ALIVE {
            return Ok(());
        }
        // The next call looks for room, and finds that nobody is there.
        (self.cursor.slots_end, self.cursor.limit) = (published, published);
        Err(SendError(()))
    }

    #[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
    pub(super) fn begin_at(&mut self, count: u64) {
        let Others { ring, .. } = &*self.others;
        let place = ring.slots.first_place(count);
        self.cursor = Cursor { place, published: count, slots_end: count, limit: count };
        ring.writer.begin_at(count);
    }
}

impl<T> Cursor<T> {
    /// Makes `place` the frame of the next event, and updates `slots_end`.
    #[inline(always)]
    fn enter_frame(&mut self) {
        if self.published == self.place.frame_end() {
            self.place.next_frame();
        }
        self.slots_end = self.limit.min(self.place.frame_end());
    }
}

impl<T> Others<T> {
    /// The slow path of [`Writer::find_room`]: returns the cursor once there is room.
    #[cold]
    #[inline(never)]
    fn make_room(
        &self,
        mut cursor: Cursor<T>,
        count: u64,
        until: Until,
    ) -> (Cursor<T>, Option<NoRoom>) {
        // Each reader must have read this many.
        let needed = (cursor.published + count).saturating_sub(self.ring.capacity);
        loop {
            let (position, slowest) = self.slowest();
            let Some(slowest) = slowest else { return (cursor, Some(NoRoom::Disconnected)) };
            if position >= needed {
                cursor.limit = position + self.ring.capacity;
                cursor.enter_frame();
                return (cursor, None);
            }
            let Until::Deadline(deadline) = until else { return (cursor, Some(NoRoom::Full)) };
            let poll = || (slowest.position() >= needed).then_some(());
            match slowest.wait(deadline, SPINS_BEFORE_PARK, poll) {
                WaitOutcome::Found(()) => {}
                WaitOutcome::TimedOut => return (cursor, Some(NoRoom::Full)),
                WaitOutcome::Forked => return (cursor, Some(NoRoom::Disconnected)),
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

impl<T> Drop for Others<T> {
    fn drop(&mut self) {
        self.ring.writer.close();
        self.readers.iter().for_each(|reader| reader.close());
    }
}

impl<T> fmt::Debug for Writer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("published", &self.cursor.published).finish_non_exhaustive()
    }
}
