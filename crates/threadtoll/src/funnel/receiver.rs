//! The end that receives.

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::Duration;

use super::Sender;
use super::chunks::Reader;
use super::shared::{
    ALIVE, RECEIVER, RECEIVER_GONE, RECEIVER_PARKED, SENDERS_GONE, Shared, is_legal, ticket,
};
use crate::error::{RecvError, RecvTimeoutError, TryRecvError};
use crate::sync::{Arc, Instant, Ordering, mutate, spin_loop};
use crate::wait::{Adaptive, FenceOutcome, Polled, Probe, Wait, WaitOutcome, wait};

/// Polls of a waiting receiver between two reads of the tail, each of which costs the senders the
/// transfer of a cache line.
const POLLS_PER_TAIL_READ: u32 =
    if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 1 } else { 1024 };
/// First nap of a receiver behind a sender in the middle of a send, which will not wake it.
const MIN_NAP: Duration = Duration::from_micros(50);
/// Longest nap. Each is twice as long as the one before.
const MAX_NAP: Duration = Duration::from_millis(1);
/// Polls before each nap, since most sends complete at once.
const POLLS_BEFORE_NAP: u32 = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 0 } else { 64 };

/// The receiving end of a funnel.
///
/// Dropping it drops the messages that were not received, and disconnects the senders.
#[repr(align(128))]
pub struct Receiver<T, W: Wait = Adaptive> {
    reader: Reader<T>,
    shared: Arc<Shared<T>>,
    _wait: PhantomData<W>,
}

// SAFETY: it is the only receiver, its values may be sent to other threads, and its pointers lead
// to chunks that `shared` keeps alive.
unsafe impl<T: Send, W: Wait> Send for Receiver<T, W> {}

impl<T, W: Wait> Receiver<T, W> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        Receiver { reader: Reader::new(&shared.chunks), shared, _wait: PhantomData }
    }

    /// Receives the next message, waiting for it if there is none.
    ///
    /// ```
    /// use threadtoll::error::RecvError;
    ///
    /// let (sender, mut receiver) = threadtoll::funnel::unbounded();
    /// sender.send(1).unwrap();
    /// drop(sender);
    /// assert_eq!(receiver.recv(), Ok(1));
    /// assert_eq!(receiver.recv(), Err(RecvError));
    /// ```
    ///
    /// # Errors
    ///
    /// If all senders are gone and everything was received.
    #[inline]
    pub fn recv(&mut self) -> Result<T, RecvError> {
        match self.find(None) {
            WaitOutcome::Found(Polled::Message) => self.take(),
            WaitOutcome::Found(Polled::Closed) | WaitOutcome::Forked | WaitOutcome::TimedOut => {
                Err(RecvError)
            }
        }
    }

    /// Receives the next message if it is ready. Never waits for another thread.
    ///
    /// A message is ready once its send, and every send that drew an earlier ticket, has stored its
    /// message.
    ///
    /// ```
    /// let (sender, mut receiver) = threadtoll::funnel::unbounded();
    /// assert!(receiver.try_recv().unwrap_err().is_empty());
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.try_recv(), Ok(1));
    /// ```
    ///
    /// # Errors
    ///
    /// If no message is ready, or if all senders are gone and everything was received.
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        if self.poll() {
            return Ok(self.take()?);
        }
        self.publish_passed();
        Err(self.why_empty())
    }

    /// Why no message is ready. Only the tail can prove that nothing was sent.
    fn why_empty(&self) -> TryRecvError {
        // Acquire: everything sent before the last sender left is visible.
        let tail = self.shared.tail.word.load(Ordering::Acquire);
        let all_received = tail & SENDERS_GONE != 0 && ticket(tail) == self.reader.head;
        if all_received || tail & ALIVE == 0 {
            TryRecvError::Disconnected
        } else {
            TryRecvError::Empty
        }
    }

    /// Receives the next message, waiting for at most `timeout`.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let (_sender, mut receiver) = threadtoll::funnel::unbounded::<u64>();
    /// assert!(receiver.recv_timeout(Duration::from_millis(1)).unwrap_err().is_timeout());
    /// ```
    ///
    /// # Errors
    ///
    /// If no message was ready in time, or if all senders are gone and everything was received.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        // A deadline that the clock cannot represent is no limit.
        self.recv_until(Instant::now().checked_add(timeout))
    }

    /// Receives the next message, waiting until `deadline`; see [`Receiver::recv_timeout`].
    ///
    /// # Errors
    ///
    /// If no message was ready in time, or if all senders are gone and everything was received.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub fn recv_deadline(&mut self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.recv_until(Some(deadline))
    }

    fn recv_until(&mut self, deadline: Option<Instant>) -> Result<T, RecvTimeoutError> {
        match self.find(deadline) {
            WaitOutcome::Found(Polled::Message) => Ok(self.take()?),
            WaitOutcome::Found(Polled::Closed) | WaitOutcome::Forked => {
                Err(RecvTimeoutError::Disconnected)
            }
            WaitOutcome::TimedOut => Err(RecvTimeoutError::Timeout),
        }
    }

    /// Waits for a message, then appends it and all others that are ready to `messages`, up to
    /// `most`. Returns their number.
    ///
    /// ```
    /// let (sender, mut receiver) = threadtoll::funnel::unbounded();
    /// sender.send_all([1, 2, 3]).unwrap();
    /// let mut messages = Vec::new();
    /// assert_eq!(receiver.recv_many(&mut messages, 2), Ok(2));
    /// assert_eq!(messages, [1, 2]);
    /// ```
    ///
    /// # Errors
    ///
    /// If all senders are gone and everything was received.
    pub fn recv_many(&mut self, messages: &mut Vec<T>, most: usize) -> Result<usize, RecvError> {
        if most == 0 {
            return Ok(0);
        }
        let WaitOutcome::Found(Polled::Message) = self.find(None) else { return Err(RecvError) };
        match self.drain(most, |message| messages.push(message)) {
            // There was a message, so this is a forked child.
            0 => Err(RecvError),
            count => Ok(count),
        }
    }

    /// Calls `body` with each message that is ready, up to `most`. Never waits. Returns the number
    /// of messages.
    ///
    /// A message counts as received even if `body` panics.
    ///
    /// ```
    /// let (sender, mut receiver) = threadtoll::funnel::unbounded();
    /// sender.send_all([1, 2, 3, 4]).unwrap();
    /// let mut sum = 0;
    /// assert_eq!(receiver.drain(3, |number| sum += number), 3);
    /// assert_eq!(sum, 6);
    /// ```
    #[inline]
    pub fn drain(&mut self, most: usize, mut body: impl FnMut(T)) -> usize {
        if self.shared.is_forked() {
            return 0;
        }
        let mut count = 0;
        while count < most && self.poll() {
            // Before the body, which may wait for a sender that waits for this room. Fails if the
            // body has forked.
            let Ok(message) = self.take() else { break };
            count += 1;
            body(message);
        }
        self.publish_passed();
        count
    }

    /// The next message, without receiving it; `None` if none is ready.
    ///
    /// ```
    /// let (sender, mut receiver) = threadtoll::funnel::unbounded();
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.peek(), Some(&1));
    /// assert_eq!(receiver.recv(), Ok(1));
    /// ```
    pub fn peek(&mut self) -> Option<&T> {
        let found = self.poll();
        // A sender may wait for the room of voided tickets.
        mutate!(tell_passed_by_peek, self.publish_passed() => ());
        if !found || self.shared.is_forked() {
            return None;
        }
        // SAFETY: it stays until it is received, which needs `&mut self`.
        Some(unsafe { &*self.reader.message_ptr() })
    }

    /// An iterator that waits for each message and ends when all senders are gone.
    pub fn iter(&mut self) -> Iter<'_, T, W> {
        Iter(self)
    }

    /// An iterator over the messages that are ready. Never waits.
    pub fn try_iter(&mut self) -> TryIter<'_, T, W> {
        TryIter(self)
    }

    /// Number of messages that were sent, or are being sent, and not received: a snapshot.
    pub fn len(&self) -> usize {
        ticket(self.shared.tail.word.load(Ordering::Acquire)).saturating_sub(self.reader.head)
            as usize
    }

    /// Returns `true` if no message waits and none is being sent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `true` if the funnel is bounded and full.
    pub fn is_full(&self) -> bool {
        self.capacity().is_some_and(|capacity| self.len() >= capacity)
    }

    /// Maximum number of messages in the funnel, or `None` if it is unbounded.
    pub fn capacity(&self) -> Option<usize> {
        self.shared.capacity()
    }

    /// Returns `true` if all senders are gone, and in a forked child. There may still be messages.
    pub fn is_disconnected(&self) -> bool {
        // In a forked child the word is 0.
        self.shared.tail.word.load(Ordering::Acquire) & (ALIVE | SENDERS_GONE) != ALIVE
    }

    /// Returns `true` if both are ends of the same funnel.
    pub fn same_channel(&self, sender: &Sender<T, W>) -> bool {
        std::ptr::eq(&*self.shared, &*sender.shared)
    }

    /// Memory that the funnel holds.
    pub fn memory(&self) -> super::MemoryUse {
        super::MemoryUse {
            used_bytes: self.shared.chunks.used_bytes(),
            kept_bytes: self.shared.chunks.kept_bytes(),
            pinned_bytes: self.reader.pinned_bytes(),
        }
    }

    #[inline(always)]
    fn poll(&mut self) -> bool {
        self.reader.poll(&self.shared.chunks, &self.shared.tail.word)
    }

    /// Waits until a message is ready or all senders are gone.
    #[inline(always)]
    fn find(&mut self, deadline: Option<Instant>) -> WaitOutcome<Polled> {
        if self.poll() {
            return WaitOutcome::Found(Polled::Message);
        }
        self.publish_passed();
        let shared = &*self.shared;
        // Both closures use the reader, one at a time.
        let reader = std::cell::RefCell::new(&mut self.reader);
        let mut nap = MIN_NAP;
        let mut polls = 0u32;
        // True if senders that were woken for room had not yet looked by the last announcement.
        let mut late = false;
        let parked = std::cell::Cell::new(false);
        let waited = wait::<W, _>(
            shared.parker(RECEIVER),
            deadline,
            |_| {
                let mut reader = reader.borrow_mut();
                let room =
                    mutate!(wake_for_unclaimed_room, shared.unclaimed_room(reader.head) => 0);
                if late && room > 0 {
                    shared.wake_senders(room);
                }
                late = room > 0;
                if set_parked(shared, reader.head) {
                    parked.set(true);
                    // Most of them look within microseconds, so other senders are woken only later.
                    let nap = FenceOutcome::NapAtMost(MAX_NAP);
                    return if late { nap } else { FenceOutcome::Fenced };
                }
                for _ in 0..POLLS_BEFORE_NAP {
                    if reader.poll(&shared.chunks, &shared.tail.word) {
                        break;
                    }
                    spin_loop();
                }
                let outcome = FenceOutcome::NapAtMost(nap);
                nap = (nap * 2).min(MAX_NAP);
                outcome
            },
            |probe| {
                let mut reader = reader.borrow_mut();
                if reader.poll(&shared.chunks, &shared.tail.word) {
                    return Some(Polled::Message);
                }
                if mutate!(tell_passed, shared.taken.load(Ordering::Relaxed) != reader.head => false)
                {
                    shared.publish_taken(reader.head);
                }
                polls = polls.wrapping_add(1);
                if probe == Probe::Fenced || polls.is_multiple_of(POLLS_PER_TAIL_READ) {
                    // Acquire: as in `why_empty`.
                    let tail = shared.tail.word.load(Ordering::Acquire);
                    if tail & SENDERS_GONE != 0 && ticket(tail) == reader.head {
                        return Some(Polled::Closed);
                    }
                }
                None
            },
        );
        if parked.get() {
            // Until now, every sender tried to wake us. Relaxed: nothing depends on when they stop.
            shared.tail.word.fetch_and(!RECEIVER_PARKED, Ordering::Relaxed);
        }
        waited
    }

    #[inline(always)]
    fn take(&mut self) -> Result<T, RecvError> {
        let message = self.reader.take();
        if let Err(forked) = self.report_taken() {
            // It stays in the funnel, like all messages of a forked child.
            std::mem::forget(message);
            self.reader.head -= 1;
            return Err(forked);
        }
        Ok(message)
    }

    /// Publishes how far the receiver has come. Fails in a forked child.
    #[inline(always)]
    fn report_taken(&mut self) -> Result<(), RecvError> {
        if self.shared.publish_taken(self.reader.head) { Ok(()) } else { Err(RecvError) }
    }

    /// Publishes the voided tickets that were skipped, if any.
    fn publish_passed(&mut self) {
        if self.shared.taken.load(Ordering::Relaxed) != self.reader.head {
            self.shared.publish_taken(self.reader.head);
        }
    }
}

#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
impl<T, W: Wait> Receiver<T, W> {
    /// Continues as if `count` messages had been sent and received. None may have been sent yet.
    pub(super) fn begin_at(&mut self, count: u64) {
        self.reader.begin_at(count);
        self.shared.taken.store(count, Ordering::Relaxed);
        self.shared.tail.word.store((count * super::shared::TICKET) | ALIVE, Ordering::Relaxed);
    }
}

/// Sets `RECEIVER_PARKED`, unless a ticket was drawn whose message was not received: its sender
/// would not see the bit.
fn set_parked<T>(shared: &Shared<T>, head: u64) -> bool {
    let mut tail = shared.tail.word.load(Ordering::Acquire);
    loop {
        if mutate!(park_at_head, ticket(tail) != head => false) {
            return false;
        }
        // AcqRel: a sender that sees this bit sees `RECEIVER_SLEEPS`, which was set before it.
        match shared.tail.word.compare_exchange_weak(
            tail,
            tail | RECEIVER_PARKED,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => {
                debug_assert!(is_legal(tail | RECEIVER_PARKED));
                return true;
            }
            Err(other) => tail = other,
        }
    }
}

impl<T, W: Wait> Drop for Receiver<T, W> {
    fn drop(&mut self) {
        debug_assert_eq!(self.shared.tail.word.load(Ordering::Relaxed) & RECEIVER_GONE, 0);
        let empty = Reader::detached();
        self.shared.receiver_leaves(std::mem::replace(&mut self.reader, empty));
    }
}

impl<T, W: Wait> UnwindSafe for Receiver<T, W> {}
impl<T, W: Wait> RefUnwindSafe for Receiver<T, W> {}

impl<T, W: Wait> fmt::Debug for Receiver<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("taken", &self.reader.head).finish_non_exhaustive()
    }
}

/// Waits for each message and ends when all senders are gone; see [`Receiver::iter`].
#[derive(Debug)]
pub struct Iter<'a, T, W: Wait = Adaptive>(&'a mut Receiver<T, W>);

impl<T, W: Wait> Iterator for Iter<'_, T, W> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T, W: Wait> FusedIterator for Iter<'_, T, W> {}

/// Iterates over the messages that are ready; see [`Receiver::try_iter`].
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

/// Waits for each message and ends when all senders are gone. Owns the receiver.
#[derive(Debug)]
pub struct IntoIter<T, W: Wait = Adaptive>(Receiver<T, W>);

impl<T, W: Wait> Iterator for IntoIter<T, W> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T, W: Wait> FusedIterator for IntoIter<T, W> {}

impl<T, W: Wait> IntoIterator for Receiver<T, W> {
    type Item = T;
    type IntoIter = IntoIter<T, W>;

    fn into_iter(self) -> IntoIter<T, W> {
        IntoIter(self)
    }
}
