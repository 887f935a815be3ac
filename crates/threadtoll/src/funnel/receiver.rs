mod future;
mod watch;

use std::cell::RefCell;
use std::fmt;
use std::iter::FusedIterator;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::task::Waker;
use std::time::Duration;

pub use future::RecvFuture;

use super::chunks::Reader;
use super::shared::{RECEIVER, Shared};
use super::tail::{RECEIVER_GONE, RECEIVER_PARKED, is_legal, ticket};
use crate::error::{RecvError, RecvTimeoutError, TryRecvError};
use crate::first_panic::FirstPanic;
use crate::sync::{Arc, Instant, Ordering, mutate, spin_loop};
use crate::wait::{FenceOutcome, Polled, Probe, WaitOutcome, Waiter, wait_by};

/// Longest sleep of the receiver while woken senders have not taken the slots for which they were
/// woken.
const NAP: Duration = Duration::from_millis(1);
/// A receiver that waits for a send in progress polls this many times before it sleeps, because
/// most sends complete at once.
const POLLS_BEHIND: u32 = if cfg!(any(threadtoll_loom, threadtoll_shuttle)) { 1 } else { 64 };

/// The receiving end of a funnel.
///
/// Dropping the receiver drops the messages that were not received, and disconnects the senders.
// `C`: rustc would put `announced` first, and the path of `recv` would be longer.
#[repr(C, align(128))]
pub struct Receiver<T> {
    reader: Reader<T>,
    shared: Arc<Shared<T>>,
    /// The marks that a task's last poll, or a `Select`, has left for the senders.
    announced: Announced,
}

// SAFETY: this is the only receiver, its messages may be sent to other threads, and its pointers
// lead to chunks that `shared` keeps alive.
unsafe impl<T: Send> Send for Receiver<T> {}

impl<T> Receiver<T> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        Receiver { reader: Reader::new(&shared.chunks), announced: Announced::default(), shared }
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
    /// If all senders are gone and everything has been received.
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
    /// If no message is ready, or if all senders are gone and everything has been received.
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        if self.poll() {
            return Ok(self.take()?);
        }
        self.publish_passed();
        Err(self.why_empty())
    }

    /// Returns the error of a receive that has found no message. Reads the tail only if all senders
    /// are gone.
    fn why_empty(&self) -> TryRecvError {
        if self.shared.is_forked() || is_closed(&self.shared, self.reader.head) {
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
    /// If no message was ready in time, or if all senders are gone and everything has been
    /// received.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        // If the clock cannot represent the deadline, there is no limit.
        self.recv_until(Instant::now().checked_add(timeout))
    }

    /// Receives the next message, waiting until `deadline`; see [`Receiver::recv_timeout`].
    ///
    /// # Errors
    ///
    /// If no message was ready in time, or if all senders are gone and everything has been
    /// received.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub fn recv_deadline(&mut self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.recv_until(Some(deadline))
    }

    pub(crate) fn recv_until(&mut self, deadline: Option<Instant>) -> Result<T, RecvTimeoutError> {
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
    /// If all senders are gone and everything has been received.
    pub fn recv_many(&mut self, messages: &mut Vec<T>, most: usize) -> Result<usize, RecvError> {
        if most == 0 {
            return Ok(0);
        }
        let WaitOutcome::Found(Polled::Message) = self.find(None) else { return Err(RecvError) };
        match self.drain(most, |message| messages.push(message)) {
            // `find` has found a message, so `drain` returns 0 only in a forked child.
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
            // The message is taken, and its slot freed, before the body runs, because the body may
            // wait for a sender that waits for room. Fails if the body forked in an earlier
            // iteration and this is the child.
            let Ok(message) = self.take() else { break };
            count += 1;
            body(message);
        }
        self.publish_passed();
        count
    }

    /// Returns the next message without receiving it, or `None` if none is ready.
    ///
    /// ```
    /// let (sender, mut receiver) = threadtoll::funnel::unbounded();
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.peek(), Some(&1));
    /// assert_eq!(receiver.recv(), Ok(1));
    /// ```
    pub fn peek(&mut self) -> Option<&T> {
        let found = self.poll();
        // `poll` may have skipped voided tickets, and a sender may be waiting for their slots.
        mutate!(tell_passed_by_peek, self.publish_passed() => ());
        if !found || self.shared.is_forked() {
            return None;
        }
        // SAFETY: the message stays until it is received, and that needs `&mut self`.
        Some(unsafe { &*self.reader.message_ptr() })
    }

    /// Prefetches the slot of the message that comes this many after the next. Pays if that message
    /// is there; if it is not, its sender has to fetch the slot again.
    #[inline(always)]
    pub(crate) fn prefetch(&self, ahead: u64) {
        self.reader.prefetch(ahead);
    }

    /// Returns an iterator that waits for each message and ends when all senders are gone.
    pub fn iter(&mut self) -> Iter<'_, T> {
        Iter(self)
    }

    /// Returns an iterator over the messages that are ready. The iterator never waits.
    pub fn try_iter(&mut self) -> TryIter<'_, T> {
        TryIter(self)
    }

    /// Number of messages that have been or are being sent and have not been received; a snapshot.
    pub fn len(&self) -> usize {
        ticket(self.shared.tail.word.load(Ordering::Acquire)).saturating_sub(self.reader.head)
            as usize
    }

    /// Returns `true` if no message is waiting and none is being sent.
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

    /// Returns `true` if all senders are gone, or if this is a forked child. There may still be
    /// messages to receive.
    pub fn is_disconnected(&self) -> bool {
        self.shared.is_forked() || self.shared.senders_are_gone()
    }

    /// Memory that the funnel uses.
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
        self.find_slow(deadline)
    }

    /// Makes senders forget a task that waits. Returns its waker, for the caller to drop.
    #[cold]
    fn stop_watching(&mut self) -> Option<Waker> {
        std::mem::take(&mut self.announced).undo(&self.shared);
        self.shared.parker(RECEIVER).unwatch(false)
    }

    #[cold]
    #[inline(never)]
    fn find_slow(&mut self, deadline: Option<Instant>) -> WaitOutcome<Polled> {
        self.find_by(Waiter::Thread(deadline))
    }

    #[inline(always)]
    fn find_by(&mut self, waiter: Waiter<'_>) -> WaitOutcome<Polled> {
        self.publish_passed();
        let parker = self.shared.parker(RECEIVER);
        let is_task = matches!(waiter, Waiter::Task(_));
        // Both closures use this, but never at the same time.
        let waiting = Waiting::new(&self.shared, &mut self.reader, &mut self.announced);
        let waiting = RefCell::new(waiting);
        let waited = loop {
            let announce = |_| {
                let mut waiting = waiting.borrow_mut();
                // Unlike a thread, a task cannot take a nap.
                if is_task { waiting.park_or_stay_behind() } else { waiting.announce() }
            };
            let look = |probe| waiting.borrow_mut().look(probe);
            match wait_by(waiter, parker, announce, look) {
                WaitOutcome::Found(Look::Passed) => {}
                WaitOutcome::Found(Look::Found(polled)) => break WaitOutcome::Found(polled),
                WaitOutcome::TimedOut => break WaitOutcome::TimedOut,
                WaitOutcome::Forked => break WaitOutcome::Forked,
            }
        };
        if !is_task || waited != WaitOutcome::TimedOut {
            std::mem::take(&mut self.announced).undo(&self.shared);
        }
        waited
    }

    #[inline(always)]
    fn take(&mut self) -> Result<T, RecvError> {
        let message = self.reader.take();
        if let Err(forked) = self.report_taken() {
            // The message stays in the funnel, like all messages of a forked child.
            std::mem::forget(message);
            self.reader.head -= 1;
            return Err(forked);
        }
        Ok(message)
    }

    /// Publishes how far the receiver has read. Fails in a forked child.
    #[inline(always)]
    fn report_taken(&mut self) -> Result<(), RecvError> {
        if self.shared.publish_taken(self.reader.head) { Ok(()) } else { Err(RecvError) }
    }

    /// Publishes how far the receiver has read, if it has skipped voided tickets since it last
    /// published.
    fn publish_passed(&mut self) {
        if self.shared.taken.load(Ordering::Relaxed) != self.reader.head {
            self.shared.publish_taken(self.reader.head);
        }
    }
}

#[cfg(all(test, any(threadtoll_loom, threadtoll_shuttle)))]
impl<T> Receiver<T> {
    pub(crate) fn tail(&self) -> &crate::sync::AtomicU64 {
        &self.shared.tail.word
    }
}

#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
impl<T> Receiver<T> {
    /// Continues as if `count` messages had been sent and received. None may have been sent yet.
    pub(super) fn begin_at(&mut self, count: u64) {
        self.reader.begin_at(count);
        self.shared.taken.store(count, Ordering::Relaxed);
        let tail = (count * super::tail::TICKET) | super::tail::ALIVE;
        self.shared.tail.word.store(tail, Ordering::Relaxed);
    }
}

/// Result of a poll that ends a call of `wait`.
enum Look {
    Found(Polled),
    /// The poll found only voided tickets, the first of which the receiver had announced.
    Passed,
}

/// The marks by which a receiver that waits tells senders to wake it.
#[derive(Clone, Copy, Default)]
struct Announced {
    /// True once `RECEIVER_PARKED` is set: a sender that draws a ticket wakes the receiver.
    parked: bool,
    /// True once `RECEIVER_BEHIND` is set: the sender of `ticket` wakes the receiver.
    behind: bool,
    /// The ticket for which the receiver has announced that it waits.
    ticket: Option<u64>,
}

impl Announced {
    fn is_any(self) -> bool {
        self.parked || self.behind
    }

    /// Stops senders from waking the receiver.
    #[inline(always)]
    fn undo<T>(self, shared: &Shared<T>) {
        if self.parked {
            unpark(shared);
        }
        if self.behind {
            shared.is_not_behind();
        }
    }
}

/// Stops senders that draw a ticket from waking the receiver.
fn unpark<T>(shared: &Shared<T>) {
    // Relaxed: it does not matter when senders see this.
    shared.tail.word.fetch_and(!RECEIVER_PARKED, Ordering::Relaxed);
}

struct Waiting<'a, T> {
    shared: &'a Shared<T>,
    reader: &'a mut Reader<T>,
    announced: &'a mut Announced,
    /// True if, at the last announcement, senders that had been woken for room had not polled yet.
    late: bool,
}

impl<'a, T> Waiting<'a, T> {
    #[inline(always)]
    fn new(shared: &'a Shared<T>, reader: &'a mut Reader<T>, announced: &'a mut Announced) -> Self {
        Waiting { shared, reader, announced, late: false }
    }

    #[inline(always)]
    fn poll(&mut self) -> bool {
        self.reader.poll(&self.shared.chunks, &self.shared.tail.word)
    }

    #[inline(always)]
    fn look(&mut self, probe: Probe) -> Option<Look> {
        let shared = self.shared;
        if self.poll() {
            return Some(Look::Found(Polled::Message));
        }
        let head = self.reader.head;
        if mutate!(tell_passed, shared.taken.load(Ordering::Relaxed) != head => false) {
            shared.publish_taken(head);
        }
        if is_closed(shared, head) {
            return Some(Look::Found(Polled::Closed));
        }
        // The next message may be there without a wake-up to come: its sender may have seen the
        // announcement for an earlier ticket, and then does not wake the receiver.
        let passed =
            probe == Probe::Fenced && self.announced.ticket.is_some_and(|ticket| ticket != head);
        if mutate!(announce_anew, passed => false) {
            self.announced.ticket = None;
            return Some(Look::Passed);
        }
        None
    }

    /// Ensures that a sender wakes this thread: the next sender to draw a ticket or, if the next
    /// ticket has already been drawn, the sender that drew it.
    fn announce(&mut self) -> FenceOutcome {
        let shared = self.shared;
        let room = mutate!(wake_for_unclaimed_room, shared.unclaimed_room(self.reader.head) => 0);
        if self.late && room > 0 {
            shared.wake_senders(room);
        }
        self.late = room > 0;
        let outcome = self.park_or_stay_behind();
        // Most woken senders poll within microseconds, so the receiver wakes others only if the
        // slots are still free after a short sleep.
        if self.late { FenceOutcome::NapAtMost(NAP) } else { outcome }
    }

    fn park_or_stay_behind(&mut self) -> FenceOutcome {
        if self.park_or_say_behind() { self.shared.barrier_behind() } else { FenceOutcome::Fenced }
    }

    /// Returns `true` if a barrier must come before the last poll.
    fn park_or_say_behind(&mut self) -> bool {
        if self.park() {
            return false;
        }
        for _ in 0..POLLS_BEHIND {
            if self.poll() {
                return false;
            }
            if !cfg!(any(threadtoll_loom, threadtoll_shuttle)) {
                // Left out in models: a checker takes this hint to mean that the sender will run.
                spin_loop();
            }
        }
        // `poll` may have skipped the ticket because it was voided, so that there is no sender to
        // wait for.
        if mutate!(park_again, self.park() => false) {
            return false;
        }
        if std::mem::take(&mut self.announced.parked) {
            unpark(self.shared);
        }
        self.announced.behind = true;
        self.announced.ticket = Some(self.reader.head);
        self.shared.say_behind(self.reader.head);
        true
    }

    /// Sets `RECEIVER_PARKED`, unless a ticket has been drawn whose message has not been received:
    /// the sender of that message would not see the bit. Returns `false` in that case.
    fn park(&mut self) -> bool {
        let word = &self.shared.tail.word;
        let mut tail = word.load(Ordering::Acquire);
        loop {
            if mutate!(park_at_head, ticket(tail) != self.reader.head => false) {
                return false;
            }
            let parked = tail | RECEIVER_PARKED;
            // AcqRel: a sender that sees this bit also sees `RECEIVER_SLEEPS`, which was set before
            // it.
            match word.compare_exchange_weak(tail, parked, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    debug_assert!(is_legal(parked));
                    self.announced.parked = true;
                    self.announced.ticket = Some(self.reader.head);
                    return true;
                }
                Err(other) => tail = other,
            }
        }
    }
}

/// Returns `true` if all senders are gone and everything was received. Called after a poll at
/// `head` that has found nothing.
#[inline(always)]
fn is_closed<T>(shared: &Shared<T>, head: u64) -> bool {
    // Relaxed: senders that are gone draw no more tickets.
    mutate!(spare_tail, shared.senders_are_gone() => true)
        && ticket(shared.tail.word.load(Ordering::Relaxed)) == head
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        debug_assert_eq!(self.shared.tail.word.load(Ordering::Relaxed) & RECEIVER_GONE, 0);
        let mut first_panic = FirstPanic::default();
        first_panic.drop(self.stop_watching());
        let empty = Reader::detached();
        self.shared.receiver_leaves(std::mem::replace(&mut self.reader, empty), first_panic);
    }
}

impl<T> UnwindSafe for Receiver<T> {}
impl<T> RefUnwindSafe for Receiver<T> {}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("taken", &self.reader.head).finish_non_exhaustive()
    }
}

/// Iterator that waits for each message and ends when all senders are gone; see [`Receiver::iter`].
#[derive(Debug)]
pub struct Iter<'a, T>(&'a mut Receiver<T>);

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T> FusedIterator for Iter<'_, T> {}

/// Iterator over the messages that are ready; see [`Receiver::try_iter`].
#[derive(Debug)]
pub struct TryIter<'a, T>(&'a mut Receiver<T>);

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.try_recv().ok()
    }
}

impl<'a, T> IntoIterator for &'a mut Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// Iterator that owns the receiver, waits for each message, and ends when all senders are gone.
#[derive(Debug)]
pub struct IntoIter<T>(Receiver<T>);

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T> FusedIterator for IntoIter<T> {}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}
