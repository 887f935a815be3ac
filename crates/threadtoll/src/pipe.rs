//! The pipe: one sender, one receiver.
//!
//! A message and the word that says it is there lie in one cache line, so that a hand-off costs the transfer of one line. A
//! [`bounded`] pipe is a ring of such lines; an [`unbounded`] one starts with a ring of 256 KiB, which most cores' own caches hold, goes on in
//! large chunks while its receiver cannot keep up, and comes back.
//!
//! ```
//! use std::thread;
//!
//! use threadtoll::pipe;
//!
//! let (mut sender, receiver) = pipe::unbounded();
//! let sum = thread::spawn(move || receiver.into_iter().sum::<u64>());
//! for number in 1..=100u64 {
//!     sender.send(number).unwrap();
//! }
//! drop(sender);
//! assert_eq!(sum.join().unwrap(), 5050);
//! ```
//!
//! # What is promised
//!
//! - Messages arrive in the order in which they were sent, each once.
//! - `send` on an unbounded pipe never waits for anybody, and takes every message while the receiver lives. `try_recv` never waits
//!   for anybody.
//! - A receiver that sleeps is woken; no message waits for the next one to be noticed. A send that finds nobody asleep
//!   executes no system call, no fence and no locked instruction; but one in every chunk (256 KiB of messages), where the receiver is far
//!   behind, takes its next chunk by an atomic operation, or from the allocator.
//! - Everything that `send` took while the receiver lived is received or, if the receiver is dropped, dropped, once, also if destructors
//!   panic. A message that could not be sent is handed back.
//! - Steady traffic allocates nothing and meets no page for the first time: making a pipe writes to all of its ring.
//!
//! # What is not
//!
//! - The ends are not `Clone` and not `Sync`: for many senders take a [funnel](crate::funnel).
//! - Chunks of a burst are given back when the receiver has read them, except for [`Options::retain`] bytes; home stays.
//! - A receiver to which messages keep coming, sixteen or more at a time, lets its sender get ahead for half a microsecond when it finds none,
//!   and where that brings more, for longer: up to four, or about as long as a sender in a hurry takes to fill a bounded pipe. One that would
//!   sleep at once ([`Park`](crate::wait::Park)) goes on with it as long as sixteen come at a time; others look
//!   now and then whether as many come without. Whether it pays is tried now and then, and something may come half a microsecond late then: in one
//!   wait of 512 at first and of 4096 later, or in 8 waits of 40 and later of 264 where each brings 16 messages or more.
//! - A sender that waits for room may see it late: the receiver tells of it about once in a quarter of the pipe, at the end of a line or a
//!   slice, and when it waits; a sender that has looked in vain four times for each message that the pipe holds, or 4096 times, looks for
//!   itself.
//! - A message that is too large for the line of its header takes lines of its own, so sizes just over 60 bytes cost twice those just
//!   below.

mod cursor;
mod memory;
mod receiver;
mod segment;
mod sender;
mod shared;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use std::marker::PhantomData;

#[cfg(not(any(loom, shuttle)))]
pub use receiver::Batch;
pub use receiver::{IntoIter, Iter, Receiver, TryIter};
#[cfg(not(any(loom, shuttle)))]
pub use sender::Claim;
pub use sender::Sender;

use crate::sync::Arc;
use crate::wait::{Adaptive, Wait};
use segment::{Measures, SEGMENT_BYTES};
use shared::Shared;

/// Bytes of chunks that are kept where nothing is said.
const RETAIN: usize = 1 << 20;

/// A pipe that holds up to `capacity` messages; a sender that finds it full waits.
///
/// ```
/// let (mut sender, mut receiver) = threadtoll::pipe::bounded(2);
/// sender.send("ask").unwrap();
/// assert_eq!(receiver.recv(), Ok("ask"));
/// ```
///
/// # Panics
///
/// If `capacity` is 0 or does not fit into memory.
pub fn bounded<T: Send>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    Options::new().bounded(capacity)
}

/// A pipe whose sender never waits.
pub fn unbounded<T: Send>() -> (Sender<T>, Receiver<T>) {
    Options::new().unbounded()
}

/// How a pipe is to be made.
///
/// ```
/// use threadtoll::pipe;
/// use threadtoll::wait::Spin;
///
/// let (mut sender, mut receiver) = pipe::Options::new().wait(Spin).bounded(1024);
/// sender.send(1).unwrap();
/// assert_eq!(receiver.recv(), Ok(1));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Options<W: Wait = Adaptive> {
    segment: usize,
    retain: usize,
    _wait: PhantomData<W>,
}

impl Options {
    /// As [`bounded`] and [`unbounded`] make them.
    pub fn new() -> Self {
        Options { segment: SEGMENT_BYTES, retain: RETAIN, _wait: PhantomData }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options::new()
    }
}

impl<W: Wait> Options<W> {
    /// How its ends wait.
    pub fn wait<V: Wait>(self, _: V) -> Options<V> {
        Options { segment: self.segment, retain: self.retain, _wait: PhantomData }
    }

    /// How many bytes an unbounded pipe has in the ring in which it goes round while its receiver keeps up, and in each chunk by which it grows;
    /// never fewer than some messages take, and some lines more. The default, 256 KiB, lets streams go fastest; thousands of pipes may want less. A bounded
    /// pipe's ring is as large as its capacity wants it.
    ///
    /// ```
    /// let (mut sender, receiver) = threadtoll::pipe::Options::new().segment(4096).unbounded();
    /// sender.send('a').unwrap();
    /// assert!(receiver.memory().home_bytes < 8192);
    /// ```
    pub fn segment(self, bytes: usize) -> Self {
        Options { segment: bytes, ..self }
    }

    /// How many bytes of chunks are kept for the next burst, at most. The default is 1 MiB.
    pub fn retain(self, bytes: usize) -> Self {
        Options { retain: bytes, ..self }
    }

    /// A pipe that holds up to `capacity` messages.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0 or does not fit into memory.
    pub fn bounded<T: Send>(self, capacity: usize) -> (Sender<T, W>, Receiver<T, W>) {
        assert!(capacity > 0, "a pipe for no messages");
        self.make(Measures::bounded::<T>(capacity))
    }

    /// A pipe whose sender never waits.
    ///
    /// # Panics
    ///
    /// If a [segment](Options::segment) does not fit into memory.
    pub fn unbounded<T: Send>(self) -> (Sender<T, W>, Receiver<T, W>) {
        let measures = Measures::unbounded::<T>(self.segment);
        self.make(measures)
    }

    fn make<T: Send>(self, measures: Measures) -> (Sender<T, W>, Receiver<T, W>) {
        let shared = Arc::new(Shared::new::<W>(measures, self.retain));
        (Sender::new(Arc::clone(&shared)), Receiver::new(shared))
    }
}

/// What the memory of a queue is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes of the ring that is there as long as the queue.
    pub home_bytes: usize,
    /// Bytes of chunks that hold messages or did so a moment ago.
    pub burst_bytes: usize,
    /// Bytes of chunks that are kept for the next burst.
    pub kept_bytes: usize,
}

fn memory_use<T>(shared: &Shared<T>) -> MemoryUse {
    MemoryUse {
        home_bytes: shared.measures.home_units * memory::Geometry::<T>::UNIT,
        burst_bytes: shared.spares.used_bytes(),
        kept_bytes: shared.spares.kept_bytes(),
    }
}

fn capacity<T>(shared: &Shared<T>) -> Option<usize> {
    (shared.measures.chunk_units == 0).then_some(shared.measures.home as usize)
}
