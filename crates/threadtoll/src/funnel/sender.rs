//! The ends that send.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::Duration;

use super::chunk::Chunk;
use super::shared::{
    ALIVE, RECEIVER_GONE, RECEIVER_PARKED, SENDERS, SENDERS_GONE, Shared, TICKET, is_legal, ticket,
};
use crate::error::{SendError, SendTimeoutError, TrySendError};
use crate::sync::{Arc, AtomicU64, Instant, Ordering, mutate};
use crate::wait::{Adaptive, Until, Wait, WaitOutcome, wait};

/// A sending end of a funnel. Threads may share it or use clones of it.
///
/// When the last one is dropped, the receiver gets what was sent and then an error.
pub struct Sender<T, W: Wait = Adaptive> {
    pub(super) shared: Arc<Shared<T>>,
    _wait: PhantomData<W>,
}

// SAFETY: see `Shared`: sending moves a value in and shares nothing else.
unsafe impl<T: Send, W: Wait> Send for Sender<T, W> {}
// SAFETY: each send draws a ticket of its own.
unsafe impl<T: Send, W: Wait> Sync for Sender<T, W> {}

/// Slots between the one that a sender writes and the one whose line it asks for.
const AHEAD: usize = 64;

/// Most tickets that are drawn at once. An iterator that promises more than it gives costs a slot
/// for each message that it owes.
const MAX_AT_ONCE: u64 = 1 << 20;

/// Why there is no ticket.
enum NoTicket {
    Full,
    Disconnected,
}

/// Tickets that were drawn together.
struct Tickets {
    /// The tail as it was.
    tail: u64,
    count: u64,
}

impl<T, W: Wait> Sender<T, W> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        Sender { shared, _wait: PhantomData }
    }

    /// Sends a message, and wakes the receiver if it sleeps.
    ///
    /// Waits for room if the funnel is bounded and full. An unbounded funnel never makes a sender
    /// wait.
    ///
    /// # Errors
    ///
    /// If the receiver is gone.
    #[inline]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        match self.draw(1, Until::Deadline(None)) {
            Ok(tickets) => self.put(tickets.tail, message).map_err(SendError),
            Err(_) => Err(SendError(message)),
        }
    }

    /// Sends a message if there is room for it.
    ///
    /// # Errors
    ///
    /// If the funnel is bounded and full; if the receiver is gone.
    #[inline]
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        match self.draw(1, Until::Now) {
            Ok(tickets) => self.put(tickets.tail, message).map_err(TrySendError::Disconnected),
            Err(NoTicket::Full) => Err(TrySendError::Full(message)),
            Err(NoTicket::Disconnected) => Err(TrySendError::Disconnected(message)),
        }
    }

    /// Sends a message, waiting for room for at most `timeout`.
    ///
    /// # Errors
    ///
    /// If there was no room in time; if the receiver is gone.
    pub fn send_timeout(&self, message: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        // A time past what the clock can show is no limit.
        self.send_until(message, Instant::now().checked_add(timeout))
    }

    /// Sends a message, waiting for room until `deadline`.
    ///
    /// # Errors
    ///
    /// If there was no room in time; if the receiver is gone.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub fn send_deadline(&self, message: T, deadline: Instant) -> Result<(), SendTimeoutError<T>> {
        self.send_until(message, Some(deadline))
    }

    fn send_until(&self, message: T, deadline: Option<Instant>) -> Result<(), SendTimeoutError<T>> {
        match self.draw(1, Until::Deadline(deadline)) {
            Ok(tickets) => self.put(tickets.tail, message).map_err(SendTimeoutError::Disconnected),
            Err(NoTicket::Full) => Err(SendTimeoutError::Timeout(message)),
            Err(NoTicket::Disconnected) => Err(SendTimeoutError::Disconnected(message)),
        }
    }

    /// Sends all messages of an iterator, waiting for room if the funnel is bounded and full.
    ///
    /// Cheaper than one by one, because messages that find room together share one ticket draw:
    /// all of them in an unbounded funnel, up to 2²⁰, and in a bounded one as many as there is
    /// room for. Messages that were drawn for together are received together, with none of another
    /// sender between them.
    ///
    /// The iterator is asked for as many messages as its `len` promises. If it gives fewer, or
    /// panics, what it gave is sent. While it computes a message, the receiver cannot pass the
    /// tickets that were drawn for it. If the receiver leaves meanwhile, that message and those
    /// that share its draw are dropped.
    ///
    /// ```
    /// let (sender, mut receiver) = threadtoll::funnel::unbounded();
    /// sender.send_all(["one", "two"]).unwrap();
    /// assert_eq!(receiver.recv(), Ok("one"));
    /// ```
    ///
    /// # Errors
    ///
    /// If the receiver is gone: the iterator with the messages that were not sent. So too in a
    /// child that the iterator forked, after what it gave there was dropped or forgotten.
    pub fn send_all<I>(&self, messages: I) -> Result<(), SendError<I::IntoIter>>
    where
        I: IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    {
        let mut messages = messages.into_iter();
        let mut left = messages.len() as u64;
        while left > 0 {
            let Ok(tickets) = self.draw(left.min(MAX_AT_ONCE), Until::Deadline(None)) else {
                return Err(SendError(messages));
            };
            left -= tickets.count;
            let complete = self.put_all(tickets, &mut messages);
            if self.shared.is_forked() {
                // By the iterator: this is the child.
                return Err(SendError(messages));
            }
            if !complete {
                break;
            }
        }
        Ok(())
    }

    /// Sends copies of all messages of a slice; see [`Sender::send_all`].
    ///
    /// # Errors
    ///
    /// If the receiver is gone: the number of messages that were sent before.
    pub fn send_slice(&self, messages: &[T]) -> Result<(), SendError<usize>>
    where
        T: Copy,
    {
        self.send_all(messages.iter().copied())
            .map_err(|SendError(rest)| SendError(messages.len() - rest.len()))
    }

    /// Number of messages that were sent, or are being sent, and not received. It may change at any
    /// time.
    pub fn len(&self) -> usize {
        super::len(&self.shared)
    }

    /// Returns `true` if every message was received. That may change at any time.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of messages that the funnel holds at most; `None` if it is unbounded.
    pub fn capacity(&self) -> Option<usize> {
        self.shared.capacity()
    }

    /// Returns `true` if the funnel is bounded and full. That may change at any time.
    pub fn is_full(&self) -> bool {
        self.capacity().is_some_and(|capacity| self.len() >= capacity)
    }

    /// Returns `true` if the receiver is gone.
    pub fn is_disconnected(&self) -> bool {
        self.shared.is_disconnected()
    }

    /// Returns `true` if messages of both senders go to the same receiver.
    pub fn same_channel(&self, other: &Sender<T, W>) -> bool {
        std::ptr::eq(&*self.shared, &*other.shared)
    }

    /// A handle that can become a sender again but does not keep the receiver waiting.
    ///
    /// ```
    /// let (sender, mut receiver) = threadtoll::funnel::unbounded();
    /// let weak = sender.downgrade();
    /// weak.upgrade().unwrap().send(1).unwrap();
    /// drop(sender);
    /// assert!(weak.upgrade().is_none());
    /// assert!(receiver.into_iter().eq([1]));
    /// ```
    pub fn downgrade(&self) -> WeakSender<T, W> {
        WeakSender { shared: Arc::clone(&self.shared), _wait: PhantomData }
    }

    /// Draws up to `most` tickets, one at least.
    #[inline(always)]
    fn draw(&self, most: u64, until: Until) -> Result<Tickets, NoTicket> {
        if self.shared.capacity.is_some() {
            return self.draw_bounded(most, until);
        }
        // A batch first looks: one that is refused again and again must not use up the tickets.
        if most > 1 && self.is_disconnected() {
            return Err(NoTicket::Disconnected);
        }
        // One read-modify-write that tells the ticket, whether the receiver sleeps, and whether it
        // is gone. Acquire: see `chunks`. Release: so that it is part of every chain of draws that
        // `note_cutoff` ends.
        let tail = self.shared.tail.fetch_add(most * TICKET, mutate!(draw, AcqRel));
        match tail & mutate!(see_receiver_gone_in_draw, ALIVE | RECEIVER_GONE => ALIVE) {
            ALIVE => Ok(Tickets { tail, count: most }),
            _ => Err(NoTicket::Disconnected),
        }
    }

    #[inline(never)]
    fn draw_bounded(&self, most: u64, until: Until) -> Result<Tickets, NoTicket> {
        let shared = &*self.shared;
        let capacity = shared.capacity.unwrap_or(u64::MAX);
        let draw = || draw_if_room(&shared.tail, &shared.taken, most, capacity);
        match (draw(), until) {
            (Err(NoTicket::Full), Until::Deadline(deadline)) => {
                let waited = wait::<W, _>(
                    shared.parker(SENDERS),
                    deadline,
                    |_| shared.announce(),
                    |_| match draw() {
                        Err(NoTicket::Full) => None,
                        tickets => Some(tickets),
                    },
                );
                match waited {
                    WaitOutcome::Found(tickets) => tickets,
                    WaitOutcome::TimedOut => Err(NoTicket::Full),
                    WaitOutcome::Forked => Err(NoTicket::Disconnected),
                }
            }
            (tickets, _) => tickets,
        }
    }

    #[inline(always)]
    fn put(&self, drawn_tail: u64, message: T) -> Result<(), T> {
        let shared = &*self.shared;
        let ticket = ticket(drawn_tail);
        // SAFETY: drawn by us, and nothing was put there.
        let chunk = unsafe { shared.chunks.find(ticket, &shared.tail) };
        if Chunk::<T>::index_of(ticket) == Chunk::<T>::SLOTS / 2 {
            // So that nobody has to at the end of the chunk.
            shared.chunks.next(std::ptr::from_ref(chunk).cast_mut());
        }
        if Chunk::<T>::begins_line(ticket) {
            // SAFETY: as above.
            unsafe { chunk.prefetch_ahead(ticket, AHEAD.min(Chunk::<T>::SLOTS)) };
        }
        // SAFETY: as above.
        let put = unsafe { shared.put(chunk.slot(ticket), ticket, message) };
        if drawn_tail & RECEIVER_PARKED != 0 {
            shared.wake_receiver();
        }
        put
    }

    /// Puts the messages of an iterator where the tickets lead. False if it gave fewer.
    fn put_all(&self, tickets: Tickets, messages: &mut impl Iterator<Item = T>) -> bool {
        let next = ticket(tickets.tail);
        let mut unused = UnusedTickets {
            shared: &*self.shared,
            next,
            end: next + tickets.count,
            parked: tickets.tail & RECEIVER_PARKED != 0,
        };
        while unused.next < unused.end {
            let Some(message) = messages.next() else { return false };
            let ticket = unused.next;
            // SAFETY: drawn by us, and nothing was put there.
            let chunk = unsafe { self.shared.chunks.find(ticket, &self.shared.tail) };
            unused.next += 1;
            // SAFETY: as above.
            drop(unsafe { self.shared.put(chunk.slot(ticket), ticket, message) });
            // Not at the end: the iterator may take its time.
            unused.wake();
        }
        true
    }
}

#[cfg(test)]
impl<T, W: Wait> Sender<T, W> {
    /// The next ticket.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub(super) fn next_ticket(&self) -> u64 {
        ticket(self.shared.tail.load(Ordering::Relaxed))
    }

    /// Begins a send and returns its end.
    pub(crate) fn begin_send(&self) -> impl FnOnce(T) -> Result<(), T> {
        let Ok(tickets) = self.draw(1, Until::Now) else { unreachable!("the receiver lives") };
        move |message| self.put(tickets.tail, message)
    }

    /// Goes on as if a sender had been woken for room, and stopped before it could look for it.
    pub(crate) fn stop_a_woken_sender(&self) {
        self.shared.stop_a_woken_sender();
    }
}

/// Tickets of a batch that have no message yet. Dropped, also by a panic of the iterator, it gives
/// them up and wakes the receiver.
struct UnusedTickets<'a, T> {
    shared: &'a Shared<T>,
    next: u64,
    end: u64,
    parked: bool,
}

impl<T> UnusedTickets<'_, T> {
    fn wake(&mut self) {
        if mutate!(wake_by_batch, std::mem::take(&mut self.parked) => false) {
            self.shared.wake_receiver();
        }
    }
}

impl<T> Drop for UnusedTickets<'_, T> {
    fn drop(&mut self) {
        for ticket in self.next..self.end {
            // SAFETY: drawn by us, and nothing was put there.
            let chunk = unsafe { self.shared.chunks.find(ticket, &self.shared.tail) };
            chunk.slot(ticket).void(ticket);
        }
        self.wake();
    }
}

/// Draws tickets for as many messages as there is room for, up to `most`.
fn draw_if_room(
    tail: &AtomicU64,
    taken: &AtomicU64,
    most: u64,
    capacity: u64,
) -> Result<Tickets, NoTicket> {
    let mut seen = tail.load(Ordering::Relaxed);
    loop {
        if seen & (ALIVE | RECEIVER_GONE) != ALIVE {
            return Err(NoTicket::Disconnected);
        }
        // Acquire: so that what the receiver did before it made room has happened.
        let under_way = ticket(seen).saturating_sub(taken.load(Ordering::Acquire));
        let count = most.min(capacity.saturating_sub(under_way));
        if count == 0 {
            return Err(NoTicket::Full);
        }
        let next = seen + count * TICKET;
        match tail.compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(tail) => return Ok(Tickets { tail, count }),
            Err(other) => seen = other,
        }
    }
}

impl<T, W: Wait> Clone for Sender<T, W> {
    fn clone(&self) -> Self {
        // Relaxed: as for the count of an `Arc`, only an owner clones.
        self.shared.senders.fetch_add(1, Ordering::Relaxed);
        Sender::new(Arc::clone(&self.shared))
    }
}

impl<T, W: Wait> Drop for Sender<T, W> {
    fn drop(&mut self) {
        // AcqRel: the last one to go has seen what all others did.
        if self.shared.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            let tail = self.shared.tail.fetch_or(SENDERS_GONE, Ordering::AcqRel);
            debug_assert!(is_legal(tail | SENDERS_GONE));
            if mutate!(wake_by_last_sender, tail & RECEIVER_PARKED != 0 => false) {
                self.shared.wake_receiver();
            }
        }
    }
}

impl<T, W: Wait> UnwindSafe for Sender<T, W> {}
impl<T, W: Wait> RefUnwindSafe for Sender<T, W> {}

impl<T, W: Wait> fmt::Debug for Sender<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// A handle to a funnel that does not count as a sender: the receiver does not wait for it.
///
/// The memory of the funnel stays until the last handle is dropped.
pub struct WeakSender<T, W: Wait = Adaptive> {
    shared: Arc<Shared<T>>,
    _wait: PhantomData<W>,
}

// SAFETY: as for `Sender`, which it can become.
unsafe impl<T: Send, W: Wait> Send for WeakSender<T, W> {}
// SAFETY: as above.
unsafe impl<T: Send, W: Wait> Sync for WeakSender<T, W> {}

impl<T, W: Wait> WeakSender<T, W> {
    /// A sender; `None` if all senders are gone.
    pub fn upgrade(&self) -> Option<Sender<T, W>> {
        let senders = &self.shared.senders;
        // Relaxed: as in `clone`. Once it is 0, the receiver may have been told so.
        let mut count = senders.load(Ordering::Relaxed);
        while mutate!(upgrade_only_senders, count > 0 => true) {
            let next = count + 1;
            match senders.compare_exchange_weak(count, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(Sender::new(Arc::clone(&self.shared))),
                Err(other) => count = other,
            }
        }
        None
    }

    /// Returns `true` if the receiver is gone.
    ///
    /// ```
    /// let (sender, receiver) = threadtoll::funnel::unbounded::<u64>();
    /// let weak = sender.downgrade();
    /// assert!(!weak.is_disconnected());
    /// drop(receiver);
    /// assert!(weak.is_disconnected());
    /// ```
    pub fn is_disconnected(&self) -> bool {
        self.shared.is_disconnected()
    }

    /// Returns `true` if both are handles to the same funnel.
    ///
    /// ```
    /// let (sender, _receiver) = threadtoll::funnel::unbounded::<u64>();
    /// let (other, _other_receiver) = threadtoll::funnel::unbounded::<u64>();
    /// let weak = sender.downgrade();
    /// assert!(weak.same_channel(&sender.clone().downgrade()));
    /// assert!(!weak.same_channel(&other.downgrade()));
    /// ```
    pub fn same_channel(&self, other: &WeakSender<T, W>) -> bool {
        std::ptr::eq(&*self.shared, &*other.shared)
    }
}

impl<T, W: Wait> Clone for WeakSender<T, W> {
    fn clone(&self) -> Self {
        WeakSender { shared: Arc::clone(&self.shared), _wait: PhantomData }
    }
}

impl<T, W: Wait> UnwindSafe for WeakSender<T, W> {}
impl<T, W: Wait> RefUnwindSafe for WeakSender<T, W> {}

impl<T, W: Wait> fmt::Debug for WeakSender<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakSender")
    }
}
