//! The funnel: a channel with many senders and one receiver (MPSC), bounded or unbounded.
//!
//! [`bounded`] makes its senders wait while it is full. [`unbounded`] never makes a sender wait,
//! and grows while its receiver falls behind. Waiting threads spin briefly and then sleep, unless
//! [`Options::wait`] says otherwise.
//!
//! With a single sender, a [pipe](crate::pipe) is faster, but a funnel takes less CPU time if the
//! receiver sleeps most of the time.
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
//! let mut received: Vec<i32> = receiver.iter().collect();
//! received.sort();
//! assert_eq!(received, [0, 1, 2, 3]);
//! ```
//!
//! # How it works
//!
//! A funnel is a linked list of *chunks* of *slots*. A send draws a *ticket* by one atomic
//! read-modify-write. The ticket is the number of the slot in which the send then stores its
//! message. The receiver reads the slots in order.
//!
//! # In async code
//!
//! [`Receiver::recv_async`] waits in a task of any executor. With the feature `stream`, a receiver
//! is a `futures_core::Stream`. Senders cannot wait in a task: use [`Sender::send`] if the funnel
//! is unbounded, and [`Sender::try_send`] if it is bounded, because a `send` that waits for room
//! stops the executor's thread.
//!
//! # What it does not do
//!
//! - **Deliver past a stopped sender.** A send first draws a ticket and then stores its message. If
//!   the sender is stopped in between, by the scheduler, a signal or a debugger, the receiver
//!   cannot deliver anything behind that ticket until the sender continues, because a funnel keeps
//!   the order of its messages. In the meantime, `recv` sleeps, and `try_recv` returns
//!   [`Empty`](crate::error::TryRecvError::Empty) although [`Receiver::len`] is not 0. Other
//!   senders can go on until a bounded funnel is full; an unbounded funnel grows in the meantime.
//! - **Serve waiting senders fairly.** Neither senders that wait for room nor senders that send at
//!   the same time are served in order. Under constant pressure, one of them may get almost nothing
//!   through.
//! - **Save memory if messages are large.** A chunk has at least 32 slots and a funnel starts with
//!   one chunk: 2 MiB for `[u8; 65536]`. Put large messages into a `Box`.
//! - **Return memory to the system.** Chunks that have been read are kept, up to
//!   [`Options::retain`] bytes, but at least two. The rest is returned to the allocator, which may
//!   keep it.
//!
//! # What it promises
//!
//! - Messages arrive in the order in which their tickets were drawn. So messages of one sender
//!   arrive in order, and a message whose send returned before another send began arrives first.
//! - An accepted message is received or dropped exactly once, even if destructors panic. A message
//!   that is not accepted is handed back.
//! - A send to an unbounded funnel waits neither for the receiver nor for another sender, not even
//!   for one that sends a large batch. It may call the allocator once per chunk, if no chunk has
//!   been kept. `try_recv`, `drain` and `peek` never wait.
//! - A sleeping receiver is woken when the next message is there, even if another thread was in the
//!   middle of sending it when the receiver went to sleep. Senders that sleep because the funnel is
//!   full are woken when there is room: as many as there are free slots.
//! - Dropping the receiver drops every message whose send has returned, even if its sender is
//!   alive, so that a thread that waits for a reply to such a message learns that none will come. A
//!   send in progress either returns its message or leaves it to the receiver to drop. In a batch
//!   in progress, the messages whose tickets were drawn count as accepted and are dropped.
//!
//! # What a send costs
//!
//! A send executes: one atomic read-modify-write, which draws the ticket and shows if the receiver
//! sleeps or is gone; two stores into the slot; and one load of a word that hardly ever changes. A
//! send makes a system call only to wake a sleeping thread. Every chunk (16 KiB of slots, and at
//! least 32 of them) costs four or five more read-modify-writes, or up to eight if two senders
//! reach its end together. The cost does not depend on the number of waiting messages, apart from
//! page faults in memory that has never been touched. A bounded funnel draws tickets by
//! compare-and-swap, so senders that collide retry.
//!
//! A receiver usually goes to sleep by one compare-and-swap and interrupts nobody. In three cases,
//! unless [`Options::fence`] avoids it, an end calls `membarrier(2)`, which interrupts every CPU
//! that runs a thread of the process: if a receiver goes to sleep while a send is in progress; if a
//! sender goes to sleep because a bounded funnel is full; and if a receiver is dropped while a send
//! is in progress and messages have a destructor. As long as senders sleep often (more than once in
//! 64 messages), the receiver executes a fence for each message, and senders sleep without that
//! call.

mod chunk;
mod chunks;
mod receiver;
mod sender;
mod shared;
mod tail;
#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
mod tests;

pub use receiver::{IntoIter, Iter, Receiver, RecvFuture, TryIter};
pub use sender::{Sender, WeakSender};

use crate::sync::{Arc, Ordering};
use crate::wait::Wait;
use shared::Shared;

const RETAIN: usize = 256 << 10;

/// Creates a funnel that holds up to `capacity` messages.
///
/// Senders that wait for room are not served in order; if there are many, one may starve.
///
/// A receive wakes as many senders as it made room for. If a woken sender is stopped before it
/// takes its slot, another sleeping sender gets that slot with the next receive, or after the
/// receiver has waited for a message for a millisecond. If the receiver only polls an empty funnel
/// with `try_recv`, or waits in a task or by a [`Select`](crate::select::Select), that other sender
/// sleeps until the stopped one continues.
///
/// If the process already has other threads, creating its first queue takes some milliseconds,
/// unless [`prepare`](crate::prepare) was called.
///
/// ```
/// let (sender, mut receiver) = threadtoll::funnel::bounded(1);
/// sender.send("first").unwrap();
/// assert!(sender.try_send("second").unwrap_err().is_full());
/// assert_eq!(receiver.recv(), Ok("first"));
/// ```
///
/// # Panics
///
/// If `capacity` is 0.
#[doc(alias("mpsc", "bounded channel", "sync_channel"))]
pub fn bounded<T: Send>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    Options::new().bounded(capacity)
}

/// Creates a funnel whose senders never wait.
///
/// ```
/// let (sender, mut receiver) = threadtoll::funnel::unbounded();
/// sender.clone().send("hello").unwrap();
/// assert_eq!(receiver.recv(), Ok("hello"));
/// ```
#[doc(alias("mpsc", "unbounded channel"))]
pub fn unbounded<T: Send>() -> (Sender<T>, Receiver<T>) {
    Options::new().unbounded()
}

/// Options of a funnel.
///
/// ```
/// use threadtoll::funnel;
/// use threadtoll::wait::Wait;
///
/// let (sender, receiver) = funnel::Options::new().wait(Wait::Park).bounded(1000);
/// sender.send("a line of the log").unwrap();
/// assert_eq!(receiver.len(), 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Options {
    wait: Wait,
    retain: usize,
    fence: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options::new()
    }
}

impl Options {
    /// The options that [`bounded`] and [`unbounded`] use.
    pub fn new() -> Self {
        Options { wait: Wait::default(), retain: RETAIN, fence: false }
    }

    /// Sets how the receiver waits for messages and senders wait for room: see
    /// [`wait`](crate::wait).
    pub fn wait(self, wait: Wait) -> Self {
        Options { wait, ..self }
    }

    /// Sets how many bytes of empty chunks the funnel may keep for the next burst. The default is
    /// 256 KiB. 0 keeps none; any other value keeps at least two chunks and at most 65,536 (1 GiB
    /// of small messages). The list of kept chunks is allocated at the start, with 8 bytes for each
    /// chunk that it can hold.
    pub fn retain(self, bytes: usize) -> Self {
        Options { retain: bytes, ..self }
    }

    /// Executes a fence in each send, and in each receive of a bounded funnel. In return, an end
    /// that goes to sleep interrupts no other thread.
    ///
    /// By default a sender that sleeps because the funnel is full may call `membarrier(2)`, which
    /// interrupts every CPU that runs a thread of the process. So may a receiver that goes to sleep
    /// or is dropped while a send is in progress: see
    /// [what a sleep costs others](crate::wait#what-a-sleep-costs-others).
    pub fn fence(self) -> Self {
        Options { fence: true, ..self }
    }

    /// Creates a funnel that holds up to `capacity` messages; see [`bounded`].
    ///
    /// # Panics
    ///
    /// If `capacity` is 0.
    pub fn bounded<T: Send>(self, capacity: usize) -> (Sender<T>, Receiver<T>) {
        assert!(capacity > 0, "a funnel needs a capacity of at least 1");
        self.build(Some(capacity as u64))
    }

    /// Creates a funnel whose senders never wait.
    pub fn unbounded<T: Send>(self) -> (Sender<T>, Receiver<T>) {
        self.build(None)
    }

    fn build<T: Send>(self, capacity: Option<u64>) -> (Sender<T>, Receiver<T>) {
        let shared = Arc::new(Shared::new(self.wait, self.retain, capacity, self.fence));
        (Sender::new(Arc::clone(&shared)), Receiver::new(shared))
    }
}

/// Memory that a funnel holds; see [`Receiver::memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes of chunks in use.
    pub used_bytes: usize,
    /// Bytes of empty chunks, kept for the next burst.
    pub kept_bytes: usize,
    /// Bytes of chunks that have been read but cannot be reused yet, because a sender may still
    /// access them.
    pub pinned_bytes: usize,
}

fn len<T>(shared: &Shared<T>) -> usize {
    // `taken` is read before the tail, so that the tail cannot be older than `taken`.
    let taken = shared.taken.load(Ordering::Acquire);
    let tail = shared.tail.word.load(Ordering::Acquire);
    // Tickets drawn after the receiver left carry no messages.
    if tail & tail::RECEIVER_GONE != 0 {
        0
    } else {
        tail::ticket(tail).saturating_sub(taken) as usize
    }
}
