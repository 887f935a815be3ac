//! The end that receives.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use super::chunks::Reading;
use super::shared::{ALIVE, BELL_ALIVE, CLOSED, NO_SENDERS, PARKED, RECEIVER, SENDERS_SLEEP, Shared, ticket};
use crate::error::{RecvError, RecvTimeoutError, TryRecvError};
use crate::sync::{Arc, Instant, Ordering, light_barrier, mutate, spin_loop};
use crate::wait::{Adaptive, Announced, Certainty, Pace, Sleeper, Wait, Waited, wait};

/// A receiver that waits looks at the tail, which costs the senders a line's transfer, once in so many looks.
const LOOKS_PER_TAIL: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 1024 };
/// Where a sender is in the midst of its send, the receiver cannot be woken by it: it naps, this long at first…
const SHORTEST_NAP: Duration = Duration::from_micros(50);
/// …and twice as long each time, up to this.
const LONGEST_NAP: Duration = Duration::from_millis(1);
/// Looks before the first nap: most senders that are in the midst of a send are through in no time.
const LOOKS_BEFORE_NAP: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 64 };

/// What a look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Message,
    Closed,
}

/// The receiving end of a funnel. Dropping it disconnects: what was not received is dropped.
#[repr(align(128))]
pub struct Receiver<T, W: Wait = Adaptive> {
    reading: Reading<T>,
    pace: Pace,
    shared: Arc<Shared<T>>,
    _wait: PhantomData<W>,
}

// SAFETY: the only receiver of values that may be sent to other threads; its pointers lead to chunks that `shared` keeps.
unsafe impl<T: Send, W: Wait> Send for Receiver<T, W> {}

impl<T, W: Wait> Receiver<T, W> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        Receiver {
            reading: Reading::new(&shared.chunks),
            pace: Pace::new::<W>(u64::MAX),
            shared,
            _wait: PhantomData,
        }
    }

    /// Receives the next message, waiting for it if there is none.
    ///
    /// # Errors
    ///
    /// If all senders are gone and everything was received; in a forked child.
    #[inline]
    pub fn recv(&mut self) -> Result<T, RecvError> {
        match self.find(None) {
            Waited::Found(Found::Message) => self.take(),
            Waited::Found(Found::Closed) => Err(RecvError::Disconnected),
            Waited::Forked | Waited::Late => Err(RecvError::Forked),
        }
    }

    /// Receives the next message if it is there. Never waits for anybody.
    ///
    /// # Errors
    ///
    /// If there is none; if a sender is in the midst of its send and nothing before its message is there; if all senders are gone and
    /// everything was received; in a forked child.
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        if self.look() {
            return Ok(self.take()?);
        }
        self.tell_passed();
        Err(self.nothing())
    }

    /// Why there is nothing. Only the tail can prove that nothing was sent.
    fn nothing(&self) -> TryRecvError {
        // Acquire: what was sent before the last sender left is seen.
        let tail = self.shared.tail.load(Ordering::Acquire);
        if tail & ALIVE == 0 {
            TryRecvError::Forked
        } else if ticket(tail) != self.reading.head {
            TryRecvError::Pending
        } else if tail & NO_SENDERS != 0 {
            TryRecvError::Disconnected
        } else {
            TryRecvError::Empty
        }
    }

    /// Receives the next message, waiting for at most `timeout`.
    ///
    /// # Errors
    ///
    /// If none came in time; if all senders are gone and everything was received; in a forked child.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        // A time that no clock will ever show is no limit.
        self.recv_until(Instant::now().checked_add(timeout))
    }

    /// Receives the next message, waiting until `deadline` at the latest.
    ///
    /// # Errors
    ///
    /// If none came in time; if all senders are gone and everything was received; in a forked child.
    #[cfg(not(any(loom, shuttle)))]
    pub fn recv_deadline(&mut self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.recv_until(Some(deadline))
    }

    fn recv_until(&mut self, deadline: Option<Instant>) -> Result<T, RecvTimeoutError> {
        match self.find(deadline) {
            Waited::Found(Found::Message) => Ok(self.take()?),
            Waited::Found(Found::Closed) => Err(RecvTimeoutError::Disconnected),
            Waited::Late => Err(RecvTimeoutError::Timeout),
            Waited::Forked => Err(RecvTimeoutError::Forked),
        }
    }

    /// Waits for messages, and moves all those that are there, but no more than `most`, to the end of `messages`. Returns how many.
    ///
    /// # Errors
    ///
    /// If all senders are gone and everything was received; in a forked child.
    pub fn recv_many(&mut self, messages: &mut Vec<T>, most: usize) -> Result<usize, RecvError> {
        match self.find(None) {
            Waited::Found(Found::Message) => {}
            Waited::Found(Found::Closed) => return Err(RecvError::Disconnected),
            Waited::Forked | Waited::Late => return Err(RecvError::Forked),
        }
        match self.drain(most, |message| messages.push(message)) {
            // There was one: only a fork keeps it from us.
            0 if most > 0 => Err(RecvError::Forked),
            count => Ok(count),
        }
    }

    /// Gives each message that is there to `body`, but no more than `most`. Waits for nothing. Returns how many.
    ///
    /// If `body` panics, what it was given counts as received.
    #[inline]
    pub fn drain(&mut self, most: usize, mut body: impl FnMut(T)) -> usize {
        if self.shared.bell.load(Ordering::Relaxed) & BELL_ALIVE == 0 {
            return 0;
        }
        let mut count = 0;
        while count < most && self.look() {
            count += 1;
            let message = self.reading.take();
            // Before the body, which may wait for a sender that waits for this room. A fork is told by the next receive.
            let _ = self.took();
            body(message);
        }
        self.tell_passed();
        count
    }

    /// The next message if it is there, without receiving it.
    #[cfg(not(any(loom, shuttle)))]
    pub fn peek(&mut self) -> Option<&T> {
        // SAFETY: it is there until it is received, for which `self` is borrowed.
        self.look().then(|| unsafe { &*self.reading.place() })
    }

    /// Receives messages until all senders are gone, waiting for each.
    pub fn iter(&mut self) -> Iter<'_, T, W> {
        Iter(self)
    }

    /// Receives what is there, waiting for nothing.
    pub fn try_iter(&mut self) -> TryIter<'_, T, W> {
        TryIter(self)
    }

    /// Messages that were sent, or are being sent, and not received. A moment old.
    pub fn len(&self) -> usize {
        ticket(self.shared.tail.load(Ordering::Acquire)).saturating_sub(self.reading.head) as usize
    }

    /// Whether nothing was sent that was not received. A moment old.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ceiling, in messages; null if there is none.
    pub fn capacity(&self) -> Option<usize> {
        self.shared.limit.map(|limit| limit.messages as usize)
    }

    /// Whether all senders are gone. Messages may still be there.
    pub fn is_disconnected(&self) -> bool {
        self.shared.tail.load(Ordering::Acquire) & NO_SENDERS != 0
    }

    /// The most messages that were ever under way, as far as senders have looked: one does so once in every chunk of messages.
    pub fn high_water_mark(&self) -> usize {
        self.shared.high_water.load(Ordering::Relaxed) as usize
    }

    /// What the funnel's memory is used for.
    pub fn memory(&self) -> super::MemoryUse {
        super::MemoryUse {
            used_bytes: self.shared.chunks.used_bytes(),
            kept_bytes: self.shared.chunks.kept_bytes(),
            pinned_bytes: self.reading.pinned_bytes(),
        }
    }

    /// Frees the memory that is kept for the next burst.
    pub fn trim(&mut self) {
        self.shared.chunks.trim();
    }

    #[inline(always)]
    fn look(&mut self) -> bool {
        self.reading.look(&self.shared.chunks, &self.shared.tail)
    }

    /// Waits until a look finds something.
    #[inline(always)]
    fn find(&mut self, deadline: Option<Instant>) -> Waited<Found> {
        if self.look() {
            return Waited::Found(Found::Message);
        }
        self.tell_passed();
        self.pace.lag(self.reading.head);
        let shared = &*self.shared;
        // Both closures read where the receiver is; only one of them moves it.
        let reading = std::cell::RefCell::new(&mut self.reading);
        let mut nap = SHORTEST_NAP;
        let mut looks = 0u32;
        let parked = std::cell::Cell::new(false);
        let waited = wait::<W, _>(
            Sleeper { glances: self.pace.glances(), ..shared.sleeper(RECEIVER) },
            deadline,
            || {
                let mut reading = reading.borrow_mut();
                if park(shared, reading.head) {
                    parked.set(true);
                    return Announced::Surely;
                }
                for _ in 0..LOOKS_BEFORE_NAP {
                    if reading.look(&shared.chunks, &shared.tail) {
                        break;
                    }
                    spin_loop();
                }
                let announced = Announced::ForNoLongerThan(nap);
                nap = (nap * 2).min(LONGEST_NAP);
                announced
            },
            |certainty| {
                let mut reading = reading.borrow_mut();
                if reading.look(&shared.chunks, &shared.tail) {
                    return Some(Found::Message);
                }
                if mutate!(tell_passed, shared.taken.load(Ordering::Relaxed) != reading.head => false) {
                    tell(shared, reading.head);
                }
                looks = looks.wrapping_add(1);
                if certainty == Certainty::Certain || looks.is_multiple_of(LOOKS_PER_TAIL) {
                    // Acquire: what was sent before the last sender left is seen.
                    let tail = shared.tail.load(Ordering::Acquire);
                    if tail & NO_SENDERS != 0 && ticket(tail) == reading.head {
                        return Some(Found::Closed);
                    }
                }
                None
            },
        );
        if parked.get() {
            // Until here, every sender that came tried to wake us. Relaxed: nothing depends on when they stop.
            shared.tail.fetch_and(!PARKED, Ordering::Relaxed);
        }
        waited
    }

    #[inline(always)]
    fn take(&mut self) -> Result<T, RecvError> {
        let message = self.reading.take();
        if let Err(forked) = self.took() {
            // It stays where it is, like all that a child finds in its copy.
            std::mem::forget(message);
            self.reading.head -= 1;
            return Err(forked);
        }
        Ok(message)
    }

    /// Tells the senders that messages were taken.
    #[inline(always)]
    fn took(&mut self) -> Result<(), RecvError> {
        if tell(&self.shared, self.reading.head) { Ok(()) } else { Err(RecvError::Forked) }
    }

    /// Tells the senders about tickets that were given up and passed over, if there were any.
    fn tell_passed(&mut self) {
        if self.shared.taken.load(Ordering::Relaxed) != self.reading.head {
            tell(&self.shared, self.reading.head);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl<T, W: Wait> Receiver<T, W> {
    /// Goes on as if so many messages had been sent and received. No message may have been sent yet.
    pub(super) fn begin_at(&mut self, count: u64) {
        self.reading.begin_at(count);
        self.shared.taken.store(count, Ordering::Relaxed);
        self.shared.tail.store((count * super::shared::TICKET) | ALIVE, Ordering::Relaxed);
    }
}

/// Tells the senders how far the receiver has come. False in a forked child.
#[inline(always)]
fn tell<T>(shared: &Shared<T>, head: u64) -> bool {
    // Release: the partner of the acquire in `draw_if_room`.
    shared.taken.store(head, Ordering::Release);
    // Between the store above and the load below stands the barrier of a sender that goes to sleep for want of room.
    mutate!(barrier_in_funnel_recv, light_barrier() => ());
    shared.bell.load(Ordering::Relaxed) == BELL_ALIVE || attend(shared)
}

/// Somebody sleeps, must be fenced for, or this is a forked child.
#[cold]
fn attend<T>(shared: &Shared<T>) -> bool {
    let bell = shared.bell_after_publishing();
    if bell & SENDERS_SLEEP != 0 {
        shared.wake_senders();
    }
    bell & BELL_ALIVE != 0
}

/// Marks the receiver as parked, unless a ticket was drawn whose message it has not received: that sender would not see the mark.
fn park<T>(shared: &Shared<T>, head: u64) -> bool {
    let mut tail = shared.tail.load(Ordering::Acquire);
    loop {
        if mutate!(park_at_head, ticket(tail) != head => false) {
            return false;
        }
        // AcqRel: whoever finds the mark has seen the bell's bit, which was set before it.
        match shared.tail.compare_exchange_weak(tail, tail | PARKED, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return true,
            Err(other) => tail = other,
        }
    }
}

impl<T, W: Wait> Drop for Receiver<T, W> {
    fn drop(&mut self) {
        debug_assert_eq!(self.shared.tail.load(Ordering::Relaxed) & CLOSED, 0);
        let empty = Reading::nowhere();
        self.shared.leave(std::mem::replace(&mut self.reading, empty));
    }
}

impl<T, W: Wait> fmt::Debug for Receiver<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("taken", &self.reading.head).finish_non_exhaustive()
    }
}

/// Messages until all senders are gone.
#[derive(Debug)]
pub struct Iter<'a, T, W: Wait = Adaptive>(&'a mut Receiver<T, W>);

impl<T, W: Wait> Iterator for Iter<'_, T, W> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

/// Messages that are there.
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

/// Messages until all senders are gone.
#[derive(Debug)]
pub struct IntoIter<T, W: Wait = Adaptive>(Receiver<T, W>);

impl<T, W: Wait> Iterator for IntoIter<T, W> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T, W: Wait> IntoIterator for Receiver<T, W> {
    type Item = T;
    type IntoIter = IntoIter<T, W>;

    fn into_iter(self) -> IntoIter<T, W> {
        IntoIter(self)
    }
}
