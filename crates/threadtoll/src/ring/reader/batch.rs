use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::thread::panicking;

use super::Reader;
use crate::ring::slots::Place;

/// Events, borrowed from a ring; see [`Reader::recv_batch`].
///
/// Dropping the batch counts its events as read: the writer may reuse their slots, and readers that
/// come after this one may read them. In a forked child, every batch is empty.
///
/// All of them count, even if a `return` or `?` leaves the loop early. To prevent that, truncate
/// the batch to the events that are done. Otherwise, readers that come after this one take the
/// others for read, too:
///
/// ```
/// use std::io::{self, Write};
///
/// use threadtoll::ring::Reader;
///
/// fn journal(mut lines: Reader<Vec<u8>>, mut disk: impl Write) -> io::Result<()> {
///     while let Ok(mut batch) = lines.recv_batch() {
///         for (done, line) in batch.iter().enumerate() {
///             if let Err(error) = disk.write_all(line) {
///                 batch.truncate(done);
///                 return Err(error);
///             }
///         }
///     }
///     Ok(())
/// }
/// ```
///
/// If the batch is leaked ([`mem::forget`](std::mem::forget)), or dropped because the thread
/// panics, its events do not count as read. The reader receives them again, unless it is dropped
/// too. So a reader that comes after it sees events of a batch in which it panicked only if it
/// [has lost it](Batch::has_lost_dependency).
#[must_use = "the events of a batch count as read when it is dropped"]
pub struct Batch<'a, T> {
    reader: &'a mut Reader<T>,
    /// Number of the first event after the batch.
    end: u64,
    /// True if the thread was panicking when it received the batch, so that a destructor that
    /// receives batches makes progress.
    was_panicking: bool,
}

impl<'a, T> Batch<'a, T> {
    #[inline(always)]
    pub(super) fn new(reader: &'a mut Reader<T>) -> Self {
        Batch { end: reader.visible, was_panicking: panicking(), reader }
    }
}

impl<T> Batch<'_, T> {
    /// Number of events in the batch.
    #[inline]
    pub fn len(&self) -> usize {
        if self.reader.is_forked() { 0 } else { (self.end - self.reader.read) as usize }
    }

    /// Returns `true` if there are no events: after [`truncate`](Batch::truncate), or in a forked
    /// child.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of events that were published before the first one of this batch, in the whole life
    /// of the ring.
    ///
    /// ```
    /// let mut builder = threadtoll::ring::Builder::new(8, || 0);
    /// let mut reader = builder.reader();
    /// let mut writer = builder.start()?;
    /// writer.publish_many(3, |index, event| *event = index)?;
    /// drop(reader.recv_batch()?);
    /// writer.publish(|event| *event = 7)?;
    /// assert_eq!(reader.recv_batch()?.first_number(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn first_number(&self) -> u64 {
        self.reader.read
    }

    /// Returns `true` if a reader that was named in this one's
    /// [`reader_after`](crate::ring::Builder::reader_after) has left before it had read all events
    /// of this batch.
    ///
    /// ```
    /// use threadtoll::ring;
    ///
    /// let mut builder = ring::Builder::new(8, || 0);
    /// let mut journal = builder.reader();
    /// let mut logic = builder.reader_after([&journal]);
    /// let mut writer = builder.start()?;
    /// writer.publish(|event| *event = 1)?;
    /// drop(journal.recv_batch()?);
    /// assert!(!logic.recv_batch()?.has_lost_dependency());
    ///
    /// drop(journal);
    /// writer.publish(|event| *event = 2)?;
    /// let batch = logic.recv_batch()?;
    /// assert!(batch.has_lost_dependency(), "event 2 is in no journal");
    /// # drop(batch);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn has_lost_dependency(&self) -> bool {
        self.end > self.reader.lost_from
    }

    /// Leaves all events except the first `most` to the next batch.
    ///
    /// A reader that takes long for each event can so free slots earlier.
    ///
    /// ```
    /// let mut builder = threadtoll::ring::Builder::new(8, || 0);
    /// let mut reader = builder.reader();
    /// let mut writer = builder.start()?;
    /// writer.publish_many(3, |index, event| *event = index)?;
    /// let mut batch = reader.recv_batch()?;
    /// batch.truncate(1);
    /// assert!(batch.iter().eq(&[0]));
    /// drop(batch);
    /// assert!(reader.recv_batch()?.iter().eq(&[1, 2]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn truncate(&mut self, most: usize) {
        self.end = self.end.min(self.reader.read.saturating_add(most as u64));
    }

    /// Returns an iterator over the events, in the order in which they were published.
    #[inline]
    pub fn iter(&self) -> Iter<'_, T> {
        let mut place = self.reader.place;
        let next = self.reader.read;
        if next == place.frame_end() {
            place.next_frame();
        }
        let end = next + self.len() as u64;
        Iter { place, next, stop: end.min(place.frame_end()), end, _events: PhantomData }
    }
}

impl<'a, T> IntoIterator for &'a Batch<'_, T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    #[inline]
    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> Drop for Batch<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if !panicking() || self.was_panicking {
            self.reader.pass(self.end);
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Batch<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

/// Iterator over the events of a [`Batch`].
pub struct Iter<'a, T> {
    place: Place<T>,
    /// Number of the next event.
    next: u64,
    /// Number of the first event after those of the batch in this frame.
    stop: u64,
    /// Number of the first event after the batch.
    end: u64,
    _events: PhantomData<&'a T>,
}

// SAFETY: an iterator over shared references. Its pointers lead to the ring's memory, which the
// batch keeps alive.
unsafe impl<T: Sync> Send for Iter<'_, T> {}
// SAFETY: as for `Send`; a shared iterator can only be cloned.
unsafe impl<T: Sync> Sync for Iter<'_, T> {}

impl<T> Iter<'_, T> {
    /// Moves on to the next frame, unless this was the last one.
    #[inline]
    fn next_frame(&mut self) -> bool {
        if self.next == self.end {
            return false;
        }
        self.place.next_frame();
        self.stop = self.end.min(self.place.frame_end());
        true
    }
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        if self.next == self.stop && !self.next_frame() {
            return None;
        }
        // SAFETY: the event is in this frame and part of the batch, so it was published. The writer
        // changes it only after the batch has been dropped, and `'a` borrows the batch.
        let event = unsafe { self.place.slot(self.next).get() };
        self.next += 1;
        Some(event)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.end - self.next) as usize;
        (left, Some(left))
    }

    /// Goes through the events of a frame without looking for its end after each.
    #[inline]
    fn fold<B, F: FnMut(B, &'a T) -> B>(mut self, init: B, mut body: F) -> B {
        let mut folded = init;
        loop {
            let Iter { place, next, stop, .. } = self;
            // SAFETY: as in `next`.
            let mut fold_one = |folded, number| body(folded, unsafe { place.slot(number).get() });
            // The compiler unrolls a loop over a whole frame.
            folded = if stop - next == Place::<T>::PER_FRAME {
                (0..Place::<T>::PER_FRAME).fold(folded, |folded, at| fold_one(folded, next + at))
            } else {
                (next..stop).fold(folded, fold_one)
            };
            self.next = self.stop;
            if !self.next_frame() {
                return folded;
            }
        }
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}

impl<T> FusedIterator for Iter<'_, T> {}

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Iter { ..*self }
    }
}

impl<T> fmt::Debug for Iter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("left", &self.len()).finish_non_exhaustive()
    }
}
