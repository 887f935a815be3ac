//! The funnel: an MPSC channel, many senders and one receiver, bounded or unbounded.
//!
//! Before you use it, decide:
//!
//! - **Bounded or not?** [`unbounded`] never makes a sender wait: if the receiver falls behind,
//!   memory grows. [`bounded`] makes a sender wait for room, and [`Sender::try_send`] hands the
//!   message back. It draws tickets by compare-and-swap, so senders that collide try again. Nobody
//!   keeps the order in which senders wait for room: where many write as fast as they can, one of
//!   them may get next to nothing.
//! - **Waiting.** [`Options::wait`] takes one of the [ways of waiting](crate::wait), for the
//!   receiver and for senders that find no room. By default they spin for half a microsecond, or
//!   for as long as a sleep costs where most waits have been shorter than that, and then sleep.
//! - **Can a sender be stopped in the middle of a send**, by a signal handler, a debugger, or the
//!   scheduler on a busy machine? No other sender waits for it (but for a moment, where both were
//!   asleep: see [`bounded`]), but the receiver does: a funnel keeps the order of its messages, so
//!   nothing behind that message is delivered until the sender goes on.
//! - **Is an interruption of other threads bad?** The receiver of a funnel goes to sleep by a
//!   compare-and-swap and interrupts nobody. A sender that sleeps because a bounded funnel is full
//!   calls `membarrier(2)`, which interrupts each CPU that runs a thread of the process, unless
//!   [`Options::fence`] has the receiver pay instead. So does, once, a receiver that leaves while a
//!   sender is in the middle of a send, unless messages need no drop.
//!
//! For one sender, a [pipe](crate::pipe) is faster; a funnel takes less CPU time if its receiver
//! sleeps most of the time.
//!
//! ```
//! use std::thread;
//!
//! use threadtoll::funnel;
//!
//! let (sender, mut receiver) = funnel::unbounded();
//! for worker in 0..4 {
//!     let sender = sender.clone();
//!     thread::spawn(move || sender.send(worker).unwrap());
//! }
//! drop(sender);
//! let mut heard: Vec<i32> = receiver.iter().collect();
//! heard.sort();
//! assert_eq!(heard, [0, 1, 2, 3]);
//! ```
//!
//! # Promises
//!
//! - Messages arrive in the order in which their tickets were drawn. Those of one sender arrive in
//!   its order. A message whose send returned before another send began arrives first, whoever sent
//!   them.
//! - In an unbounded funnel, a send waits neither for the receiver nor for another sender (but for
//!   the allocator, once in a chunk, if no chunk is kept). `try_recv`, `drain` and `peek` never
//!   wait.
//! - A send is one read-modify-write, which draws the ticket and tells if the receiver sleeps or is
//!   gone, two stores into the slot that the ticket names, and, if messages need to be dropped, a
//!   look at a word that is hardly ever written. It executes no system call unless the receiver
//!   sleeps, and no other atomic read-modify-write but four or five in each chunk (16 KiB of slots,
//!   32 slots at least), or up to eight where two senders come to its end at once. Its instructions
//!   do not depend on the number of messages that wait; memory that was never touched costs page
//!   faults.
//! - A receiver that sleeps is woken, and so is a sender that sleeps for want of room: a receive
//!   wakes as many as it made room for.
//! - Each message that was accepted is received or dropped, once, even if destructors panic. When
//!   the receiver is dropped, so are all messages whose send had returned, while their senders
//!   still live: who waits for an answer to one of them learns that none will come. A message that
//!   was not accepted is handed back.
//! - A send that is under way while the receiver is dropped hands its message back, or the receiver
//!   drops it. A batch that is under way counts as accepted, and is dropped. The receiver does not
//!   wait for that sender; where it must not or cannot call `membarrier(2)`, it sleeps for a
//!   millisecond.
//!
//! # Not promised
//!
//! - **Progress behind a stopped sender.** While a sender is stopped between drawing its ticket and
//!   storing its message, the messages behind it wait, and so do their chunks. `try_recv` says
//!   [`Empty`](crate::error::TryRecvError::Empty), though [`Receiver::len`] is not 0. To deliver
//!   past it would cost each receive a look at every later message. A receiver that waits naps
//!   meanwhile, for 50 µs at first and 1 ms at most, since that sender cannot know that it should
//!   wake it.
//! - **Memory for the system.** Chunks that were read are kept for the next burst, up to
//!   [`Options::retain`] bytes, and the rest goes back to the allocator, which may keep it too:
//!   after a burst the process may stay as large as it was, although [`Receiver::memory`] is small.
//! - **Little memory for large messages.** A chunk has 32 slots at least, and a funnel has one from
//!   the start: 2 MiB for `[u8; 65536]`. Put large messages into a `Box`.
//! - **Fairness among senders** that wait for room, or that send at the same time.

mod chunk;
mod chunks;
mod receiver;
mod sender;
mod shared;
#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
mod tests;

use std::marker::PhantomData;

pub use receiver::{IntoIter, Iter, Receiver, TryIter};
pub use sender::{Sender, WeakSender};

use crate::sync::{Arc, Ordering};
use crate::wait::{Adaptive, Wait};
use shared::Shared;

/// Bytes of chunks that are kept by default.
const RETAIN: usize = 256 << 10;

/// A funnel that holds up to `capacity` messages; a sender that finds it full waits.
///
/// Senders that wait are not served in order, and one of many may starve; see [the module](self).
///
/// Each receive wakes as many as it made room for. If one of those is stopped before it takes its
/// place, another one that sleeps takes that place with the next receive, or when the receiver has
/// waited for a message for a millisecond. With a receiver that neither receives nor waits (it gets
/// [`Empty`](crate::error::TryRecvError::Empty) from `try_recv`), it sleeps until the first one
/// goes on.
///
/// ```
/// let (sender, mut receiver) = threadtoll::funnel::bounded(2);
/// sender.send("ask").unwrap();
/// assert_eq!(receiver.recv(), Ok("ask"));
/// ```
///
/// # Panics
///
/// If `capacity` is 0.
pub fn bounded<T: Send>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    Options::new().bounded(capacity)
}

/// A funnel whose senders never wait.
pub fn unbounded<T: Send>() -> (Sender<T>, Receiver<T>) {
    Options::new().unbounded()
}

/// Options of a new funnel.
///
/// ```
/// use threadtoll::funnel;
/// use threadtoll::wait::Park;
///
/// let (sender, receiver) = funnel::Options::new().wait(Park).bounded(1000);
/// sender.send("a line of the log").unwrap();
/// assert_eq!(receiver.len(), 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Options<W: Wait = Adaptive> {
    retain: usize,
    fence: bool,
    _wait: PhantomData<W>,
}

impl Options {
    /// The options of [`bounded`] and [`unbounded`].
    pub fn new() -> Self {
        Options { retain: RETAIN, fence: false, _wait: PhantomData }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options::new()
    }
}

impl<W: Wait> Options<W> {
    /// Sets the [way of waiting](crate::wait): for messages by the receiver, for room by senders.
    pub fn wait<V: Wait>(self, _: V) -> Options<V> {
        Options { retain: self.retain, fence: self.fence, _wait: PhantomData }
    }

    /// Most bytes of chunks that are kept for the next burst, or two chunks if these are larger; 0
    /// keeps none. The default is 256 KiB. More than 65,536 chunks (1 GiB of small messages) are
    /// never kept. Each that may be kept takes 8 bytes from the beginning.
    pub fn retain(self, bytes: usize) -> Self {
        Options { retain: bytes, ..self }
    }

    /// Makes the receiver fence, so that a sender that sleeps for want of room interrupts no other
    /// thread, nor does a receiver that leaves.
    ///
    /// Without this, such a sender calls `membarrier(2)`, which interrupts each CPU that runs a
    /// thread of the process. With it, each message that is received costs a full fence. An
    /// unbounded funnel needs neither, because its senders never sleep; nor does a receiver that
    /// sleeps. One that leaves while a sender is in the middle of a send calls it too; with this
    /// option it sleeps for a millisecond instead.
    pub fn fence(self) -> Self {
        Options { fence: true, ..self }
    }

    /// A funnel that holds up to `capacity` messages; a sender that finds it full waits.
    ///
    /// Tickets are drawn by compare-and-swap then, so that senders may have to try again.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0.
    pub fn bounded<T: Send>(self, capacity: usize) -> (Sender<T, W>, Receiver<T, W>) {
        assert!(capacity > 0, "a funnel for no messages");
        self.build(Some(capacity as u64))
    }

    /// A funnel whose senders never wait.
    pub fn unbounded<T: Send>(self) -> (Sender<T, W>, Receiver<T, W>) {
        self.build(None)
    }

    fn build<T: Send>(self, capacity: Option<u64>) -> (Sender<T, W>, Receiver<T, W>) {
        let shared = Arc::new(Shared::new::<W>(self.retain, capacity, self.fence));
        (Sender::new(Arc::clone(&shared)), Receiver::new(shared))
    }
}

/// Use of a funnel's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes of chunks that hold messages, or did a moment ago.
    pub used_bytes: usize,
    /// Bytes of chunks that are kept for the next burst.
    pub kept_bytes: usize,
    /// Bytes of those used chunks that were read but may still be looked at by a sender.
    pub pinned_bytes: usize,
}

fn len<T>(shared: &Shared<T>) -> usize {
    // In this order: what is taken was sent before.
    let taken = shared.taken.load(Ordering::Acquire);
    let tail = shared.tail.load(Ordering::Acquire);
    // Behind a receiver that has gone, tickets are drawn in vain.
    if tail & shared::RECEIVER_GONE != 0 {
        0
    } else {
        shared::ticket(tail).saturating_sub(taken) as usize
    }
}
