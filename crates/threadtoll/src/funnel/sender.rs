use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::Duration;

use super::chunk::Chunk;
use super::shared::{SENDERS, Shared};
use super::tail::{ALIVE, RECEIVER_GONE, RECEIVER_PARKED, TICKET, ticket};
use crate::error::{SendError, SendTimeoutError, TrySendError};
use crate::sync::{Arc, Instant, Ordering, mutate};
use crate::wait::{Until, WaitOutcome, wait};

/// A sending end of a funnel. Threads can share it or clone it.
///
/// When the last sender is dropped, the receiver still gets everything that has been sent, followed
/// by an error.
pub struct Sender<T> {
    pub(super) shared: Arc<Shared<T>>,
}

enum NoTicket {
    Full,
    Disconnected,
}

/// Consecutive tickets.
struct Tickets {
    /// The tail before these tickets were drawn.
    tail: u64,
    count: u64,
}

impl<T> Sender<T> {
    /// Maximum number of tickets that are drawn at once. The sender that draws the next ticket
    /// links all chunks up to its own, so a larger batch would make that sender allocate many
    /// chunks.
    const MAX_AT_ONCE: u64 = Chunk::<T>::SLOTS as u64;

    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        Sender { shared }
    }

    /// Sends a message, waiting for room if the funnel is bounded and full.
    ///
    /// In a destructor, use [`send_timeout`](Self::send_timeout): if the receiver's thread waits
    /// for that destructor, there will never be room.
    ///
    /// ```
    /// let (sender, receiver) = threadtoll::funnel::unbounded();
    /// sender.send(1).unwrap();
    /// drop(receiver);
    /// assert_eq!(sender.send(2).unwrap_err().into_inner(), 2);
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the message if the receiver is gone.
    #[inline]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        match self.draw(1, Until::Deadline(None)) {
            Ok(tickets) => self.put(tickets.tail, message).map_err(SendError),
            Err(_) => Err(SendError(message)),
        }
    }

    /// Sends a message if there is room for it.
    ///
    /// ```
    /// use threadtoll::error::TrySendError;
    ///
    /// let (sender, _receiver) = threadtoll::funnel::bounded(1);
    /// assert_eq!(sender.try_send(1), Ok(()));
    /// assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the message if the funnel is bounded and full, or if the receiver is gone.
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
    /// ```
    /// use std::time::Duration;
    ///
    /// let (sender, _receiver) = threadtoll::funnel::bounded(1);
    /// sender.send(1).unwrap();
    /// assert!(sender.send_timeout(2, Duration::from_millis(1)).unwrap_err().is_timeout());
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the message if there was no room in time, or if the receiver is gone.
    pub fn send_timeout(&self, message: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        // If the clock cannot represent the deadline, there is no limit.
        self.send_until(message, Instant::now().checked_add(timeout))
    }

    /// Sends a message, waiting for room until `deadline`; see [`Sender::send_timeout`].
    ///
    /// # Errors
    ///
    /// Returns the message if there was no room in time, or if the receiver is gone.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub fn send_deadline(&self, message: T, deadline: Instant) -> Result<(), SendTimeoutError<T>> {
        self.send_until(message, Some(deadline))
    }

    /// Sends a message even if the funnel is bounded and full.
    pub(crate) fn send_beyond_capacity(&self, message: T) -> Result<(), SendError<T>> {
        match self.draw_always(1) {
            Ok(tickets) => self.put(tickets.tail, message).map_err(SendError),
            Err(_) => Err(SendError(message)),
        }
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
    /// This costs less than sending them one by one, because one atomic operation draws tickets for
    /// many of them: as many as a chunk holds (1,024 messages of 8 bytes, at least 32 of any size),
    /// or as a bounded funnel has room for. Messages whose tickets were drawn together are received
    /// without messages of other senders in between. A thread that sends at the same time links at
    /// most one more chunk.
    ///
    /// If the iterator yields fewer messages than its `len` promised, or panics, the messages that
    /// it has yielded are sent. While the iterator computes a message, the receiver cannot get past
    /// that message. If the receiver is dropped in the meantime, the message is dropped, and so are
    /// all messages whose tickets were drawn together with its ticket.
    ///
    /// ```
    /// let (sender, mut receiver) = threadtoll::funnel::unbounded();
    /// sender.send_all(["one", "two"]).unwrap();
    /// assert_eq!(receiver.recv(), Ok("one"));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the iterator with the remaining messages if the receiver is gone, or if the iterator
    /// forked and this is the child.
    pub fn send_all<I>(&self, messages: I) -> Result<(), SendError<I::IntoIter>>
    where
        I: IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    {
        let mut messages = messages.into_iter();
        let mut left = messages.len() as u64;
        while left > 0 {
            let Ok(tickets) = self.draw(left.min(Self::MAX_AT_ONCE), Until::Deadline(None)) else {
                return Err(SendError(messages));
            };
            left -= tickets.count;
            let complete = self.put_all(tickets, &mut messages);
            if self.shared.is_forked() {
                // The iterator forked, and this is the child.
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
    /// Returns the number of messages that have been sent if the receiver is gone.
    pub fn send_slice(&self, messages: &[T]) -> Result<(), SendError<usize>>
    where
        T: Copy,
    {
        self.send_all(messages.iter().copied())
            .map_err(|SendError(rest)| SendError(messages.len() - rest.len()))
    }

    /// Number of messages that have been or are being sent and have not been received; a snapshot.
    pub fn len(&self) -> usize {
        super::len(&self.shared)
    }

    /// Returns `true` if every message has been received.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Maximum number of messages in the funnel, or `None` if it is unbounded.
    pub fn capacity(&self) -> Option<usize> {
        self.shared.capacity()
    }

    /// Returns `true` if the funnel is bounded and full.
    pub fn is_full(&self) -> bool {
        self.capacity().is_some_and(|capacity| self.len() >= capacity)
    }

    /// Returns `true` if the receiver has been dropped, or if this is a forked child.
    pub fn is_disconnected(&self) -> bool {
        self.shared.is_disconnected()
    }

    /// Returns a handle that can be turned into a sender again, but does not keep the funnel
    /// connected.
    ///
    /// ```
    /// let (sender, mut receiver) = threadtoll::funnel::unbounded();
    /// let weak = sender.downgrade();
    /// weak.upgrade().unwrap().send(1).unwrap();
    /// drop(sender);
    /// assert!(weak.upgrade().is_none());
    /// assert!(receiver.into_iter().eq([1]));
    /// ```
    pub fn downgrade(&self) -> WeakSender<T> {
        WeakSender { shared: Arc::clone(&self.shared) }
    }

    /// Draws up to `most` tickets, and at least one.
    #[inline(always)]
    fn draw(&self, most: u64, until: Until) -> Result<Tickets, NoTicket> {
        if self.shared.capacity.is_some() {
            return self.draw_bounded(most, until);
        }
        self.draw_always(most)
    }

    /// Draws this many tickets, whatever the capacity.
    #[inline(always)]
    fn draw_always(&self, most: u64) -> Result<Tickets, NoTicket> {
        // A batch first checks if the receiver is gone. Otherwise, batches that are rejected again
        // and again would use up the tickets.
        if most > 1 && self.is_disconnected() {
            return Err(NoTicket::Disconnected);
        }
        // Acquire: see `chunks`. Release: `note_cutoff` must see every earlier draw.
        let tail = self.shared.tail.word.fetch_add(most * TICKET, mutate!(draw, AcqRel));
        match tail & mutate!(see_receiver_gone_in_draw, ALIVE | RECEIVER_GONE => ALIVE) {
            ALIVE => Ok(Tickets { tail, count: most }),
            _ => Err(NoTicket::Disconnected),
        }
    }

    #[inline(never)]
    fn draw_bounded(&self, most: u64, until: Until) -> Result<Tickets, NoTicket> {
        let shared = &*self.shared;
        let capacity = shared.capacity.unwrap_or(u64::MAX);
        let draw = || draw_if_room(shared, most, capacity);
        match (draw(), until) {
            (Err(NoTicket::Full), Until::Deadline(deadline)) => {
                let waited = wait(
                    shared.parker(SENDERS),
                    deadline,
                    |before| shared.announce(before),
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
        // SAFETY: we drew the ticket and have not used it.
        let chunk = unsafe { shared.chunks.find(ticket, &shared.tail.word) };
        if Chunk::<T>::index_of(ticket) == Chunk::<T>::SLOTS / 2 {
            // The next chunk is linked early, so that no sender has to link it at the end of this
            // one.
            shared.chunks.next(std::ptr::from_ref(chunk).cast_mut());
        }
        if Chunk::<T>::begins_line(ticket) {
            // SAFETY: we drew the ticket and have not used it.
            unsafe { chunk.prefetch_ahead(ticket) };
        }
        // SAFETY: we drew the ticket and have not used it.
        let put = unsafe { shared.put(chunk.slot(ticket), ticket, message) };
        if drawn_tail & RECEIVER_PARKED != 0 {
            shared.wake_receiver();
        }
        put
    }

    /// Stores the messages of an iterator. Returns `false` if the iterator yields too few.
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
            // SAFETY: we drew the ticket and have not used it.
            let chunk = unsafe { self.shared.chunks.find(ticket, &self.shared.tail.word) };
            unused.next += 1;
            // SAFETY: we drew the ticket and have not used it.
            drop(unsafe { self.shared.put(chunk.slot(ticket), ticket, message) });
            // The receiver is woken after the first message, because the iterator may take a long
            // time.
            unused.wake();
        }
        true
    }
}

#[cfg(test)]
impl<T> Sender<T> {
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub(super) fn next_ticket(&self) -> u64 {
        ticket(self.shared.tail.word.load(Ordering::Relaxed))
    }

    /// Begins a send, and returns a function that completes it.
    pub(crate) fn begin_send(&self) -> impl FnOnce(T) -> Result<(), T> {
        let Ok(tickets) = self.draw(1, Until::Now) else { unreachable!("the receiver lives") };
        move |message| self.put(tickets.tail, message)
    }

    /// Continues as if a sender had been woken because there was room, and stopped before it
    /// polled.
    pub(crate) fn stop_a_woken_sender(&self) {
        self.shared.stop_a_woken_sender();
    }
}

/// Tickets of a batch that have no message yet. Dropping this value voids the tickets and wakes the
/// receiver.
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
            // SAFETY: we drew the ticket and have not used it.
            let chunk = unsafe { self.shared.chunks.find(ticket, &self.shared.tail.word) };
            chunk.slot(ticket).void(ticket);
        }
        if self.next < self.end {
            mutate!(wake_by_void, self.shared.after_void(self.next..self.end) => ());
        }
        self.wake();
    }
}

/// Draws tickets for as many messages as there is room for, up to `most`.
fn draw_if_room<T>(shared: &Shared<T>, most: u64, capacity: u64) -> Result<Tickets, NoTicket> {
    let tail = &shared.tail.word;
    let mut seen = tail.load(Ordering::Relaxed);
    loop {
        if seen & (ALIVE | RECEIVER_GONE) != ALIVE {
            return Err(NoTicket::Disconnected);
        }
        let count = shared.room_from(ticket(seen), most, capacity);
        if count == 0 {
            return Err(NoTicket::Full);
        }
        let next = seen + count * TICKET;
        // Fails if `seen` is outdated. In that case, `taken` may be newer than `seen`, and `count`
        // too large.
        match tail.compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(tail) => return Ok(Tickets { tail, count }),
            Err(other) => seen = other,
        }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        // Relaxed: as for an `Arc`, the owner that clones keeps the count above 0.
        self.shared.senders.fetch_add(1, Ordering::Relaxed);
        Sender::new(Arc::clone(&self.shared))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // AcqRel: the last sender has seen what all others did.
        if self.shared.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.shared.senders_leave();
        }
    }
}

impl<T> UnwindSafe for Sender<T> {}
impl<T> RefUnwindSafe for Sender<T> {}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// A handle to a funnel that does not keep it connected; see [`Sender::downgrade`].
///
/// The funnel's memory is freed when the last handle is dropped.
pub struct WeakSender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> WeakSender<T> {
    /// Returns a new sender, or `None` if all senders are gone.
    pub fn upgrade(&self) -> Option<Sender<T>> {
        let senders = &self.shared.senders;
        // Relaxed: as in `clone`. A count of 0 is never incremented, since the receiver may have
        // seen that all senders are gone.
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
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        WeakSender { shared: Arc::clone(&self.shared) }
    }
}

impl<T> UnwindSafe for WeakSender<T> {}
impl<T> RefUnwindSafe for WeakSender<T> {}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakSender")
    }
}
