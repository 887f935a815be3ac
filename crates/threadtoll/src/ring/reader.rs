mod batch;
mod watch;

use std::fmt;
use std::hint::cold_path;
use std::ptr::{self, NonNull};
use std::time::Duration;

pub use batch::{Batch, Iter};

use super::progress::{GONE, Progress};
use super::shared::Ring;
use super::slots::Place;
use crate::error::{RecvError, RecvTimeoutError, TryRecvError};
use crate::sync::{Arc, AtomicU32, Instant, mutate};
use crate::wait::{Polled, Until, WaitOutcome};

/// Number of frames of which a reader reads the headers before it reads the writer's position. One
/// that is not far behind leaves the cache line of that position alone: each read of it delays the
/// writer, which stores its position with every publication. A writer of single events was the
/// faster the more headers came first, up to 128; 512 were level with that.
const HEADERS: u32 = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 1 } else { 128 };

/// A reader of a [ring](crate::ring), which sees every event.
///
/// A reader that is dropped holds back neither the writer nor the readers that
/// [come after](super::Builder::reader_after) it. They do not wait for it any more:
/// [`Batch::has_lost_dependency`] tells them.
#[repr(align(128))]
pub struct Reader<T> {
    /// The frame of event `read`, or the one before if `read` is the first event of a frame.
    place: Place<T>,
    /// Number of events that this reader has read.
    read: u64,
    /// Number of events that it may read, as far as it has looked.
    visible: u64,
    /// Pointer to the word of `progress`, to save an indirection.
    word: NonNull<AtomicU32>,
    progress: Arc<Progress>,
    /// The readers that this one follows: its dependencies, and those of dependencies that have
    /// left. If empty, it follows the writer.
    follows: Vec<Arc<Progress>>,
    /// The first event that a dependency that has left had not read, as far as this reader has
    /// noticed; or else `GONE`.
    lost_from: u64,
    /// The end for which a `Select` waits; only compared.
    watched: *const Progress,
    ring: Arc<Ring<T>>,
}

// SAFETY: the pointers lead to memory that `ring` and `progress` keep alive. The reader gives out
// shared references to events and may be the last end, which drops them.
unsafe impl<T: Send + Sync> Send for Reader<T> {}

impl<T> Reader<T> {
    pub(super) fn new(ring: Arc<Ring<T>>, progress: Arc<Progress>) -> Self {
        ring.reader_comes();
        Reader {
            place: ring.slots.first_place(0),
            read: 0,
            visible: 0,
            word: NonNull::from(progress.word()),
            follows: progress.dependencies().to_vec(),
            progress,
            lost_from: GONE,
            watched: ptr::null(),
            ring,
        }
    }

    pub(super) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    pub(super) fn ring(&self) -> &Arc<Ring<T>> {
        &self.ring
    }

    /// Waits for events, and borrows all that are there: those that the writer has published and
    /// that the readers before this one have read. Dropping the [`Batch`] counts them as read.
    ///
    /// If the last batch was [truncated](Batch::truncate) or leaked, only the rest of what it held
    /// at first comes, and not what is there by now.
    ///
    /// ```
    /// use threadtoll::ring;
    ///
    /// let mut builder = ring::Builder::new(8, || 0);
    /// let mut reader = builder.reader();
    /// let mut writer = builder.start()?;
    /// writer.publish_many(3, |index, event| *event = index)?;
    /// assert!(reader.recv_batch()?.iter().eq(&[0, 1, 2]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the writer is gone and this reader has read everything.
    #[inline]
    pub fn recv_batch(&mut self) -> Result<Batch<'_, T>, RecvError> {
        match self.find(|| Until::Deadline(None)) {
            None => Ok(Batch::new(self)),
            Some(_) => Err(RecvError),
        }
    }

    /// Like [`Reader::recv_batch`], but does not wait.
    ///
    /// # Errors
    ///
    /// If there is no event, or if the writer is gone and this reader has read everything.
    #[inline]
    pub fn try_recv_batch(&mut self) -> Result<Batch<'_, T>, TryRecvError> {
        match self.find(|| Until::Now) {
            None => Ok(Batch::new(self)),
            Some(NoEvent::Empty) => Err(TryRecvError::Empty),
            Some(NoEvent::Disconnected) => Err(TryRecvError::Disconnected),
        }
    }

    /// Like [`Reader::recv_batch`], but waits for at most `timeout`.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use threadtoll::ring;
    ///
    /// let mut builder = ring::Builder::new(8, || 0);
    /// let mut reader = builder.reader();
    /// let writer = builder.start()?;
    /// let soon = Duration::from_millis(1);
    /// assert!(reader.recv_batch_timeout(soon).unwrap_err().is_timeout());
    /// drop(writer);
    /// assert!(reader.recv_batch_timeout(soon).unwrap_err().is_disconnected());
    /// # Ok::<(), threadtoll::error::StartError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If no event came in time, or if the writer is gone and this reader has read everything.
    pub fn recv_batch_timeout(
        &mut self,
        timeout: Duration,
    ) -> Result<Batch<'_, T>, RecvTimeoutError> {
        // If the clock cannot represent the deadline, there is no limit.
        self.recv_batch_until(|| Instant::now().checked_add(timeout))
    }

    /// Like [`Reader::recv_batch`], but waits until `deadline`; see
    /// [`Reader::recv_batch_timeout`].
    ///
    /// # Errors
    ///
    /// If no event came in time, or if the writer is gone and this reader has read everything.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub fn recv_batch_deadline(
        &mut self,
        deadline: Instant,
    ) -> Result<Batch<'_, T>, RecvTimeoutError> {
        self.recv_batch_until(|| Some(deadline))
    }

    fn recv_batch_until(
        &mut self,
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> Result<Batch<'_, T>, RecvTimeoutError> {
        match self.find(|| Until::Deadline(deadline())) {
            None => Ok(Batch::new(self)),
            Some(NoEvent::Empty) => Err(RecvTimeoutError::Timeout),
            Some(NoEvent::Disconnected) => Err(RecvTimeoutError::Disconnected),
        }
    }

    /// Number of events that the writer has published and this reader has not read; a snapshot if
    /// the writer is active. 0 in a forked child.
    ///
    /// ```
    /// let mut builder = threadtoll::ring::Builder::new(8, || 0);
    /// let mut reader = builder.reader();
    /// let mut writer = builder.start()?;
    /// writer.publish_many(3, |index, event| *event = index)?;
    /// assert_eq!(reader.lag(), 3);
    /// reader.recv_batch()?.truncate(1);
    /// assert_eq!(reader.lag(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lag(&self) -> u64 {
        if self.is_forked() {
            return 0;
        }
        self.ring.writer.position().saturating_sub(self.read)
    }

    /// Number of events by which the slowest reader may be behind the writer.
    pub fn capacity(&self) -> usize {
        self.ring.capacity as usize
    }

    /// Returns `true` if the writer has been dropped, or if this is a forked child. There may still
    /// be events to receive.
    pub fn is_disconnected(&self) -> bool {
        // The word of the writer is the first in which it says that it leaves.
        self.is_forked() || self.ring.writer.is_closed()
    }

    #[inline(always)]
    fn is_forked(&self) -> bool {
        // SAFETY: part of `progress`, which is alive.
        Progress::is_forked(unsafe { self.word.as_ref() })
    }

    /// Looks for events, waiting for them if `until` allows. Returns `None` once there are some.
    #[inline(always)]
    fn find(&mut self, until: impl FnOnce() -> Until) -> Option<NoEvent> {
        if self.is_forked() {
            return Some(NoEvent::Disconnected);
        }
        if self.visible > self.read || self.look() {
            return None;
        }
        cold_path();
        self.find_slow(until())
    }

    /// Sets `visible`. Returns `true` if there are events.
    #[inline(always)]
    fn look(&mut self) -> bool {
        if !self.follows.is_empty() {
            return self.look_at_readers();
        }
        if self.read == self.place.frame_end() {
            self.place.next_frame();
        }
        let count = self.place.count();
        if count <= self.read {
            return false;
        }
        self.visible = count;
        if count == self.place.frame_end() {
            self.look_ahead();
        }
        true
    }

    /// Looks for events beyond the frame, which is full.
    ///
    /// Ends where a publication ends, so that the events of one `publish_many` come in one batch. A
    /// header that ends the search and every position of the writer are such places, but a full
    /// frame may lie within a publication of which the position does not tell yet. The headers of
    /// that publication are there, so this reads on, without waiting for the writer: it comes to an
    /// end within a lap, since the writer is never further ahead.
    #[inline(never)]
    fn look_ahead(&mut self) {
        let mut place = self.place;
        loop {
            for _ in 0..HEADERS {
                place.next_frame();
                let count = place.count();
                if count <= self.visible {
                    return;
                }
                self.visible = count;
                if count < place.frame_end() {
                    return;
                }
            }
            let position = self.ring.writer.position();
            if mutate!(look_on, position >= self.visible => true) {
                self.visible = self.visible.max(position);
                return;
            }
        }
    }

    fn look_at_readers(&mut self) -> bool {
        loop {
            let (mut visible, mut left) = (GONE, false);
            for reader in &self.follows {
                let position = reader.position();
                visible = mutate!(wait_for_all, visible.min(position) => position);
                left |= position == GONE;
            }
            if left {
                self.follow_others();
                if self.follows.is_empty() {
                    return self.look();
                }
                continue;
            }
            self.visible = visible;
            return visible > self.read;
        }
    }

    /// Follows the dependencies of readers that have left, in place of those readers.
    #[cold]
    fn follow_others(&mut self) {
        let mut index = 0;
        while index < self.follows.len() {
            if self.follows[index].position() != GONE {
                index += 1;
                continue;
            }
            let left = self.follows.swap_remove(index);
            self.lost_from = self.lost_from.min(left.left_at());
            for reader in mutate!(follow_beyond, left.dependencies() => &[]) {
                if !self.follows.iter().any(|other| ptr::eq(&**other, &**reader)) {
                    self.follows.push(Arc::clone(reader));
                }
            }
        }
    }

    /// The slow path of [`Reader::find`].
    #[cold]
    #[inline(never)]
    fn find_slow(&mut self, until: Until) -> Option<NoEvent> {
        loop {
            if self.look() {
                return None;
            }
            let Some(end) = self.behind() else { continue };
            let waited = match until {
                Until::Now => self.poll(end).map_or(WaitOutcome::TimedOut, WaitOutcome::Found),
                Until::Deadline(deadline) => {
                    // An event loop may have left its waker.
                    self.progress.watcher().withdraw();
                    end.wait(deadline, 0, || self.poll(end))
                }
            };
            match waited {
                WaitOutcome::Found(Polled::Message) => {}
                WaitOutcome::Found(Polled::Closed) | WaitOutcome::Forked => {
                    return Some(NoEvent::Disconnected);
                }
                WaitOutcome::TimedOut => return Some(NoEvent::Empty),
            }
        }
    }

    /// The end for which this reader has to wait: one that it follows and that has not come further
    /// than this one. `None` if the last such reader has just come further.
    fn behind(&self) -> Option<&Progress> {
        if self.follows.is_empty() {
            return Some(&self.ring.writer);
        }
        self.follows.iter().find(|reader| reader.position() <= self.read).map(|reader| &**reader)
    }

    /// Polls the end for which this reader waits. Finds a message once that end has come further,
    /// even if this reader then has to wait for another one.
    #[inline(always)]
    fn poll(&self, end: &Progress) -> Option<Polled> {
        let is_writer = self.follows.is_empty();
        let further = if is_writer { self.place.count() } else { end.position() };
        if further > self.read {
            return Some(Polled::Message);
        }
        if !end.is_closed() {
            return None;
        }
        // This is the last position.
        if self.ring.writer.position() == self.read {
            Some(Polled::Closed)
        } else {
            // A reader comes further by itself, and then wakes this one. The writer does not, but
            // what it published last is visible by now.
            is_writer.then_some(Polled::Message)
        }
    }

    /// Counts the events before this number as read.
    #[inline(always)]
    fn pass(&mut self, read: u64) {
        self.progress.store(read);
        // SAFETY: part of `progress`, which is alive.
        let quiet = Progress::is_quiet(unsafe { self.word.as_ref() });
        self.read = read;
        self.place.advance_to(read);
        if !quiet {
            cold_path();
            self.progress.after_store(read);
        }
    }

    #[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
    pub(super) fn begin_at(&mut self, count: u64) {
        self.place = self.ring.slots.first_place(count);
        (self.read, self.visible) = (count, count);
        self.progress.begin_at(count);
    }
}

enum NoEvent {
    Empty,
    Disconnected,
}

impl<T> Drop for Reader<T> {
    fn drop(&mut self) {
        // An event loop may have left its waker.
        self.progress.watcher().withdraw();
        self.ring.reader_leaves(&self.progress);
    }
}

impl<T> fmt::Debug for Reader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("read", &self.read).finish_non_exhaustive()
    }
}
