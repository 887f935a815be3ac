//! The ends that send.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use super::chunk::Chunk;
use super::shared::{ALIVE, CLOSED, NO_SENDERS, PARKED, SENDERS, Shared, TICKET, ticket};
use super::{Ceiling, Limit};
use crate::error::{SendError, SendTimeoutError, TrySendError};
use crate::sync::{Arc, AtomicU64, Instant, Ordering, mutate};
use crate::wait::{Adaptive, Wait, Waited, by_barrier, wait};

/// A sending end of a funnel. Any number of threads may use it at the same time, or clones of it.
///
/// When the last one is dropped the receiver gets what was sent, then learns that it was all.
pub struct Sender<T, W: Wait = Adaptive> {
    shared: Arc<Shared<T>>,
    _wait: PhantomData<W>,
}

// SAFETY: see `Shared`: sending moves a value in and shares nothing else.
unsafe impl<T: Send, W: Wait> Send for Sender<T, W> {}
// SAFETY: each send draws a ticket of its own.
unsafe impl<T: Send, W: Wait> Sync for Sender<T, W> {}

/// How many slots ahead of itself a sender asks for the line, so that it is there when it is written to.
const AHEAD: usize = 64;

/// More tickets than this are never drawn at once, however long an iterator says that it is: the tail must not overflow.
const MOST_AT_ONCE: u64 = 1 << 32;

/// Why there is no ticket.
enum NoTicket {
    Full,
    Dropped,
    Disconnected,
    Forked,
}

/// How long to wait for room.
#[derive(Clone, Copy)]
enum Until {
    Now,
    Policy(Option<Instant>),
}

impl<T, W: Wait> Sender<T, W> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        Sender { shared, _wait: PhantomData }
    }

    /// Sends a message, and wakes the receiver if it sleeps.
    ///
    /// Never waits for anybody, unless the funnel has a ceiling with [`Ceiling::Wait`]. Under [`Ceiling::Drop`] a message that
    /// finds no room is dropped, counted, and taken for sent.
    ///
    /// # Errors
    ///
    /// If the funnel has a ceiling with [`Ceiling::Refuse`] and is full; if the receiver is gone; in a forked child.
    #[inline]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        let drawn = match self.draw(1, Until::Policy(None)) {
            Ok(drawn) => drawn,
            Err(NoTicket::Dropped) => return Ok(()),
            Err(NoTicket::Disconnected) => return Err(SendError::Disconnected(message)),
            Err(NoTicket::Forked) => return Err(SendError::Forked(message)),
            Err(NoTicket::Full) => return Err(SendError::Full(message)),
        };
        self.put(drawn, message);
        Ok(())
    }

    /// Sends a message if the funnel is not at its ceiling.
    ///
    /// # Errors
    ///
    /// If it is, whatever the policy; if the receiver is gone; in a forked child.
    #[inline]
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        match self.draw(1, Until::Now) {
            Ok(drawn) => self.put(drawn, message),
            Err(NoTicket::Dropped) => {}
            Err(NoTicket::Full) => return Err(TrySendError::Full(message)),
            Err(NoTicket::Disconnected) => return Err(TrySendError::Disconnected(message)),
            Err(NoTicket::Forked) => return Err(TrySendError::Forked(message)),
        }
        Ok(())
    }

    /// Sends a message, waiting for room for at most `timeout`, whatever the policy at the ceiling.
    ///
    /// # Errors
    ///
    /// If there was no room in time; if the receiver is gone; in a forked child.
    pub fn send_timeout(&self, message: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        let first = self.draw(1, Until::Now);
        let drawn = match first {
            // A time that no clock will ever show is no limit.
            Err(NoTicket::Full) => self.wait_for_ticket(1, Instant::now().checked_add(timeout)),
            other => other,
        };
        match drawn {
            Ok(drawn) => self.put(drawn, message),
            Err(NoTicket::Full | NoTicket::Dropped) => return Err(SendTimeoutError::Timeout(message)),
            Err(NoTicket::Disconnected) => return Err(SendTimeoutError::Disconnected(message)),
            Err(NoTicket::Forked) => return Err(SendTimeoutError::Forked(message)),
        }
        Ok(())
    }

    /// Sends all that an iterator gives, side by side: nothing of another sender comes between. Cheaper than one by one: one ticket is
    /// drawn for all.
    ///
    /// Should the iterator give fewer than it said, or panic, what it gave is sent; what it gives beyond is left in it. While the iterator
    /// takes its time, the receiver cannot go past the tickets that were drawn for it.
    ///
    /// # Errors
    ///
    /// If the receiver is gone; in a forked child; at a ceiling, if not all of them fit (under [`Ceiling::Wait`] it waits until they do,
    /// for ever if others keep the funnel full); if there are more than 2³² of them. The messages come back in their iterator.
    pub fn send_all<I>(&self, messages: I) -> Result<(), TrySendError<I::IntoIter>>
    where
        I: IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    {
        /// Gives up the tickets that were not used, and wakes the receiver, also if the iterator panics.
        struct Unused<'a, T> {
            shared: &'a Shared<T>,
            next: u64,
            end: u64,
            parked: bool,
        }
        impl<T> Unused<'_, T> {
            fn wake(&mut self) {
                if mutate!(wake_by_batch, std::mem::take(&mut self.parked) => false) {
                    self.shared.wake_receiver();
                }
            }
        }
        impl<T> Drop for Unused<'_, T> {
            fn drop(&mut self) {
                for ticket in self.next..self.end {
                    // SAFETY: drawn by us, and nothing was put there.
                    unsafe { self.shared.chunks.find(ticket, &self.shared.tail) }.slot(ticket).void(ticket);
                }
                self.wake();
            }
        }
        let mut messages = messages.into_iter();
        let count = messages.len() as u64;
        if count == 0 {
            return Ok(());
        }
        if count > MOST_AT_ONCE {
            return Err(TrySendError::Full(messages));
        }
        let drawn = match self.draw(count, Until::Policy(None)) {
            Ok(drawn) => drawn,
            Err(NoTicket::Dropped) => return Ok(()),
            Err(NoTicket::Full) => return Err(TrySendError::Full(messages)),
            Err(NoTicket::Disconnected) => return Err(TrySendError::Disconnected(messages)),
            Err(NoTicket::Forked) => return Err(TrySendError::Forked(messages)),
        };
        let first = ticket(drawn);
        let mut unused =
            Unused { shared: &*self.shared, next: first, end: first + count, parked: drawn & PARKED != 0 };
        while unused.next < unused.end
            && let Some(message) = messages.next()
        {
            let ticket = unused.next;
            // SAFETY: drawn by us, and nothing was put there.
            let chunk = unsafe { self.shared.chunks.find(ticket, &self.shared.tail) };
            unused.next += 1;
            // SAFETY: as above.
            unsafe { chunk.slot(ticket).put(ticket, message) };
            // Not at the end: the iterator may take its time.
            unused.wake();
        }
        drop(unused);
        if Chunk::<T>::passes_middle(first, count) {
            self.shared.look_after_mark(first + count);
        }
        Ok(())
    }

    /// Sends a message without waking a receiver that sleeps: it is there for one that looks, and [`Sender::flush`], or the next send
    /// that is not quiet, wakes one that does not. Whoever sends many messages at once pays for one wake-up.
    ///
    /// # Errors
    ///
    /// As [`Sender::send`].
    #[inline]
    pub fn send_quiet(&self, message: T) -> Result<(), SendError<T>> {
        match self.draw(1, Until::Policy(None)) {
            Ok(drawn) => {
                self.put(drawn & !PARKED, message);
                Ok(())
            }
            Err(NoTicket::Dropped) => Ok(()),
            Err(NoTicket::Disconnected) => Err(SendError::Disconnected(message)),
            Err(NoTicket::Forked) => Err(SendError::Forked(message)),
            Err(NoTicket::Full) => Err(SendError::Full(message)),
        }
    }

    /// Wakes the receiver if it sleeps.
    pub fn flush(&self) {
        // Acquire: see `wake_receiver`.
        if self.shared.tail.load(Ordering::Acquire) & PARKED != 0 {
            self.shared.wake_receiver();
        }
    }

    /// Sends copies of all of them, side by side; see [`Sender::send_all`].
    ///
    /// # Errors
    ///
    /// As [`Sender::send_all`], with the number of messages that were sent: none.
    pub fn send_slice(&self, messages: &[T]) -> Result<(), TrySendError<usize>>
    where
        T: Copy,
    {
        self.send_all(messages.iter().copied()).map_err(|error| match error {
            TrySendError::Full(_) => TrySendError::Full(0),
            TrySendError::Disconnected(_) => TrySendError::Disconnected(0),
            TrySendError::Forked(_) => TrySendError::Forked(0),
        })
    }

    /// Takes the place of one message, to be written later. Until it is, nothing behind it is delivered; dropped, it is given up.
    ///
    /// ```
    /// let (sender, mut receiver) = threadtoll::funnel::unbounded();
    /// let first = sender.claim().unwrap();
    /// sender.send("second").unwrap();
    /// first.send("first");
    /// assert_eq!(receiver.recv(), Ok("first"));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Sender::send`].
    pub fn claim(&self) -> Result<Claim<'_, T, W>, SendError<()>> {
        match self.draw(1, Until::Policy(None)) {
            Ok(drawn) => Ok(Claim { sender: self, drawn: Some(drawn) }),
            // There is nothing to be dropped yet: the place does not exist.
            Err(NoTicket::Dropped) => Ok(Claim { sender: self, drawn: None }),
            Err(NoTicket::Disconnected) => Err(SendError::Disconnected(())),
            Err(NoTicket::Forked) => Err(SendError::Forked(())),
            Err(NoTicket::Full) => Err(SendError::Full(())),
        }
    }

    /// Frees the memory that is kept for the next burst.
    pub fn trim(&self) {
        self.shared.chunks.trim();
    }

    /// Messages that were sent, or are being sent, and not received. A moment old.
    pub fn len(&self) -> usize {
        super::len(&self.shared)
    }

    /// Whether everything was received. A moment old.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ceiling, in messages; null if there is none.
    pub fn capacity(&self) -> Option<usize> {
        self.shared.limit.map(|limit| limit.messages as usize)
    }

    /// Whether the receiver is gone.
    pub fn is_disconnected(&self) -> bool {
        self.shared.tail.load(Ordering::Acquire) & CLOSED != 0
    }

    /// The most messages that were ever under way, as far as senders have looked: one does so once in every chunk of messages.
    pub fn high_water_mark(&self) -> usize {
        self.shared.look_after_mark(ticket(self.shared.tail.load(Ordering::Relaxed)));
        self.shared.high_water.load(Ordering::Relaxed) as usize
    }

    /// Messages that were dropped at the ceiling.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Draws so many tickets; returns the tail as it was.
    #[inline(always)]
    fn draw(&self, count: u64, until: Until) -> Result<u64, NoTicket> {
        if self.shared.limit.is_some() {
            return self.draw_below_ceiling(count, until);
        }
        // One read-modify-write that tells the ticket, whether the receiver sleeps, and whether it is gone. Acquire: see
        // `chunks`. Release: so that it is part of every chain of draws that `note_cutoff` ends.
        let drawn = self.shared.tail.fetch_add(count * TICKET, mutate!(draw, AcqRel));
        match drawn & mutate!(see_closed, ALIVE | CLOSED => ALIVE) {
            ALIVE => Ok(drawn),
            0 => Err(NoTicket::Forked),
            _ => Err(NoTicket::Disconnected),
        }
    }

    #[cold]
    fn draw_below_ceiling(&self, count: u64, until: Until) -> Result<u64, NoTicket> {
        let shared = &*self.shared;
        let Some(Limit { messages, policy }) = shared.limit else {
            return Err(NoTicket::Full);
        };
        if count > messages {
            // Never: but that the receiver is gone matters more to whoever tries again.
            return Err(match shared.tail.load(Ordering::Relaxed) & (ALIVE | CLOSED) {
                ALIVE => NoTicket::Full,
                0 => NoTicket::Forked,
                _ => NoTicket::Disconnected,
            });
        }
        let drawn = draw_if_room(&shared.tail, &shared.taken, count, messages);
        if let Err(NoTicket::Full) = drawn {
            shared.look_after_mark(ticket(shared.tail.load(Ordering::Relaxed)));
        }
        match (drawn, until) {
            (Err(NoTicket::Full), Until::Policy(deadline)) => match policy {
                Ceiling::Refuse => Err(NoTicket::Full),
                Ceiling::Drop => {
                    shared.dropped.fetch_add(count, Ordering::Relaxed);
                    Err(NoTicket::Dropped)
                }
                Ceiling::Wait => self.wait_for_ticket(count, deadline),
            },
            (drawn, _) => drawn,
        }
    }

    fn wait_for_ticket(&self, count: u64, deadline: Option<Instant>) -> Result<u64, NoTicket> {
        let shared = &*self.shared;
        let messages = shared.limit.map_or(u64::MAX, |limit| limit.messages);
        let waited = wait::<W, _>(shared.sleeper(SENDERS), deadline, by_barrier, |_| {
            match draw_if_room(&shared.tail, &shared.taken, count, messages) {
                Err(NoTicket::Full) => None,
                drawn => Some(drawn),
            }
        });
        match waited {
            Waited::Found(drawn) => drawn,
            Waited::Late => Err(NoTicket::Full),
            Waited::Forked => Err(NoTicket::Forked),
        }
    }

    #[inline(always)]
    fn put(&self, drawn: u64, message: T) {
        let shared = &*self.shared;
        let ticket = ticket(drawn);
        // SAFETY: drawn by us, and nothing was put there.
        let chunk = unsafe { shared.chunks.find(ticket, &shared.tail) };
        if Chunk::<T>::index_of(ticket) == Chunk::<T>::SLOTS / 2 {
            // So that nobody has to at the end of the chunk.
            shared.chunks.next(std::ptr::from_ref(chunk).cast_mut());
        }
        if Chunk::<T>::begins_line(ticket) {
            // SAFETY: as above.
            unsafe { chunk.fetch(ticket, AHEAD.min(Chunk::<T>::SLOTS)) };
        }
        // SAFETY: as above. Nothing of the chunk is touched after this.
        unsafe { chunk.slot(ticket).put(ticket, message) };
        if drawn & PARKED != 0 {
            shared.wake_receiver();
        }
        if Chunk::<T>::index_of(ticket) == Chunk::<T>::SLOTS / 2 {
            shared.look_after_mark(ticket + 1);
        }
    }
}

/// The place of one message; see [`Sender::claim`].
///
/// Forgotten (`mem::forget`), it holds up everything behind it for ever.
#[derive(Debug)]
#[must_use = "everything behind it waits"]
pub struct Claim<'a, T, W: Wait = Adaptive> {
    sender: &'a Sender<T, W>,
    /// Null where the message will be dropped at the ceiling.
    drawn: Option<u64>,
}

impl<T, W: Wait> Claim<'_, T, W> {
    /// Sends the message from its place.
    pub fn send(mut self, message: T) {
        if let Some(drawn) = self.drawn.take() {
            self.sender.put(drawn, message);
        }
    }
}

impl<T, W: Wait> Drop for Claim<'_, T, W> {
    fn drop(&mut self) {
        let Some(drawn) = self.drawn.take() else { return };
        let shared = &*self.sender.shared;
        let ticket = ticket(drawn);
        // SAFETY: drawn by us, and nothing was put there.
        unsafe { shared.chunks.find(ticket, &shared.tail) }.slot(ticket).void(ticket);
        if mutate!(wake_by_claim, drawn & PARKED != 0 => false) {
            shared.wake_receiver();
        }
    }
}

/// Draws tickets if so many more messages stay below the ceiling.
fn draw_if_room(tail: &AtomicU64, taken: &AtomicU64, count: u64, ceiling: u64) -> Result<u64, NoTicket> {
    let mut seen = tail.load(Ordering::Relaxed);
    loop {
        match seen & (ALIVE | CLOSED) {
            ALIVE => {}
            0 => return Err(NoTicket::Forked),
            _ => return Err(NoTicket::Disconnected),
        }
        // Acquire: so that what the receiver did before it made room has happened.
        let under_way = ticket(seen).saturating_sub(taken.load(Ordering::Acquire));
        if under_way.saturating_add(count) > ceiling {
            return Err(NoTicket::Full);
        }
        match tail.compare_exchange_weak(seen, seen + count * TICKET, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(drawn) => return Ok(drawn),
            Err(other) => seen = other,
        }
    }
}

impl<T, W: Wait> Clone for Sender<T, W> {
    fn clone(&self) -> Self {
        // Relaxed: as for the count of an `Arc`, whoever clones has one.
        self.shared.senders.fetch_add(1, Ordering::Relaxed);
        Sender::new(Arc::clone(&self.shared))
    }
}

impl<T, W: Wait> Drop for Sender<T, W> {
    fn drop(&mut self) {
        // AcqRel: the last one to go has seen what all others did.
        if self.shared.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            let tail = self.shared.tail.fetch_or(NO_SENDERS, Ordering::AcqRel);
            if mutate!(wake_by_last_sender, tail & PARKED != 0 => false) {
                self.shared.wake_receiver();
            }
        }
    }
}

impl<T, W: Wait> fmt::Debug for Sender<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("len", &self.len()).finish_non_exhaustive()
    }
}
