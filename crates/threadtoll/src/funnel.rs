//! The funnel: many senders, one receiver, no limit unless one is asked for.
//!
//! A send is one read-modify-write of one word — it draws the ticket and tells at the same time whether the receiver sleeps or is
//! gone — and two stores into the slot that the ticket names. Slots come in chunks; steady traffic goes round through a few chunks
//! that fit into the first-level cache.
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
//! # What is promised
//!
//! - Messages arrive in the order in which their tickets were drawn: those of one sender in its order, and a message whose send had
//!   returned before another's began comes before it, whoever sent them.
//! - A send never waits for the receiver or for another sender, and the funnel takes every message while the receiver lives, unless
//!   it has a [`Ceiling`]. `try_recv` never waits for anybody.
//! - What a send executes does not depend on how many messages are waiting; memory that was never touched before costs its page faults.
//! - A receiver that sleeps is woken. A send that finds nobody asleep executes no system call and no atomic read-modify-write beside
//!   the one that draws the ticket, but one in every chunk (16 KiB of slots), which links the next.
//! - Everything that a send took while the receiver lived is received or dropped, once, also if destructors panic. A message that could not be
//!   sent is handed back.
//!
//! # What is not
//!
//! - **A sender that is stopped in the midst of its send** (between drawing its ticket and storing its message) blocks no other sender, but
//!   the receiver does not go past its message: nothing behind it is delivered until it goes on. `try_recv` says
//!   [`Pending`](crate::error::TryRecvError::Pending) meanwhile. To deliver past it would need every later message to be checked against it
//!   for order, with each receive. The chunks behind it stay in memory.
//! - A receiver that waits while a sender is in the midst of its send cannot be woken by that sender: it naps and looks again,
//!   after 50 µs at first and 1 ms at the most.
//! - A receiver that is dropped waits a moment for senders in the midst of their send. The message of one that is stopped for longer is
//!   dropped when the last sender is.
//! - A receiver to which messages keep coming lets senders get ahead for up to four microseconds, as that of a [pipe](crate::pipe) does.
//! - Chunks that were read are kept for the next burst up to [`Options::retain`] bytes and freed beyond that.

mod chunk;
mod chunks;
mod receiver;
mod sender;
mod shared;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use std::marker::PhantomData;

pub use receiver::{IntoIter, Iter, Receiver, TryIter};
pub use sender::{Claim, Sender};

use crate::sync::{Arc, Ordering};
use crate::wait::{Adaptive, Wait};
use shared::{OnHighWater, Shared};

/// Bytes of chunks that are kept where nothing is said.
const RETAIN: usize = 256 << 10;

/// What happens to a message that finds the funnel at its ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ceiling {
    /// Its sender waits.
    Wait,
    /// It is handed back with an error. Only `send_timeout` waits for room.
    Refuse,
    /// It is dropped, and [`Sender::dropped`] counts it.
    Drop,
}

/// A ceiling and its policy.
#[derive(Clone, Copy, Debug)]
struct Limit {
    messages: u64,
    policy: Ceiling,
}

/// A funnel without a ceiling.
pub fn unbounded<T: Send>() -> (Sender<T>, Receiver<T>) {
    Options::new().build()
}

/// How a funnel is to be made.
///
/// ```
/// use threadtoll::funnel::{Ceiling, Options};
/// use threadtoll::wait::Park;
///
/// let (sender, receiver) = Options::new().wait(Park).ceiling(1000, Ceiling::Drop).build();
/// sender.send("a line of the log").unwrap();
/// assert_eq!(receiver.len(), 1);
/// ```
#[derive(Clone)]
pub struct Options<W: Wait = Adaptive> {
    retain: usize,
    ceiling: Option<(Size, Ceiling)>,
    on_high_water: Option<OnHighWater>,
    _wait: PhantomData<W>,
}

#[derive(Clone, Copy)]
enum Size {
    Messages(usize),
    Bytes(usize),
}

impl Options {
    /// As [`unbounded`] makes one.
    pub fn new() -> Self {
        Options { retain: RETAIN, ceiling: None, on_high_water: None, _wait: PhantomData }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options::new()
    }
}

impl<W: Wait> Options<W> {
    /// How the receiver waits, and senders at a ceiling.
    pub fn wait<V: Wait>(self, _: V) -> Options<V> {
        Options {
            retain: self.retain,
            ceiling: self.ceiling,
            on_high_water: self.on_high_water,
            _wait: PhantomData,
        }
    }

    /// How many bytes of chunks are kept for the next burst, at most. The default is 256 KiB; more than 65 536 chunks (1 GiB of small
    /// messages) are never kept. Each that may be kept takes 8 bytes from the beginning.
    pub fn retain(self, bytes: usize) -> Self {
        Options { retain: bytes, ..self }
    }

    /// No more messages than this are under way.
    ///
    /// With a ceiling, tickets are drawn by compare-and-swap, so that senders may have to try again.
    pub fn ceiling(self, messages: usize, policy: Ceiling) -> Self {
        Options { ceiling: Some((Size::Messages(messages), policy)), ..self }
    }

    /// No more messages are under way than fit into so many bytes of slots.
    pub fn ceiling_bytes(self, bytes: usize, policy: Ceiling) -> Self {
        Options { ceiling: Some((Size::Bytes(bytes), policy)), ..self }
    }

    /// Calls `callback` from within a send that finds more messages under way than ever before; senders look once in every
    /// chunk of messages.
    pub fn on_high_water(self, callback: impl Fn(usize) + Send + Sync + 'static) -> Self {
        // The standard library's: a model checker's holds no closures.
        #[allow(unused_qualifications)]
        let callback = std::sync::Arc::new(callback);
        Options { on_high_water: Some(callback), ..self }
    }

    /// The funnel.
    ///
    /// # Panics
    ///
    /// If its ceiling leaves no room for a message.
    pub fn build<T: Send>(self) -> (Sender<T, W>, Receiver<T, W>) {
        let limit = self.ceiling.map(|(size, policy)| {
            let messages = match size {
                Size::Messages(messages) => messages,
                Size::Bytes(bytes) => bytes / size_of::<chunk::Slot<T>>(),
            };
            assert!(messages > 0, "a funnel for no messages");
            Limit { messages: messages as u64, policy }
        });
        let shared = Arc::new(Shared::new::<W>(self.retain, limit, self.on_high_water));
        (Sender::new(Arc::clone(&shared)), Receiver::new(shared))
    }
}

impl<W: Wait> std::fmt::Debug for Options<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("retain", &self.retain).finish_non_exhaustive()
    }
}

/// What the memory of a funnel is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes of chunks that hold messages or did so a moment ago.
    pub used_bytes: usize,
    /// Bytes of chunks that are kept for the next burst.
    pub kept_bytes: usize,
    /// Of the used ones, bytes of chunks that were read and are not given back yet, because a sender may still be about to look
    /// at them.
    pub pinned_bytes: usize,
}

fn len<T>(shared: &Shared<T>) -> usize {
    // In this order: what is taken was sent before.
    let taken = shared.taken.load(Ordering::Acquire);
    let tail = shared.tail.load(Ordering::Acquire);
    // Behind a receiver that has gone, tickets are drawn in vain.
    if tail & shared::CLOSED != 0 { 0 } else { shared::ticket(tail).saturating_sub(taken) as usize }
}
