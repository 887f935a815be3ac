//! The pipe: an SPSC channel, bounded or unbounded. One sender, one receiver.
//!
//! **Decide two things.** [`unbounded`] never makes its sender wait, and takes memory while its
//! receiver is behind; [`bounded`] makes its sender wait when it is full. And [how the ends
//! wait](crate::wait): by default they spin for a little and then sleep.
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
//! A pipe is a ring buffer of cache lines. A message and the number that says it is there lie in
//! one line, so a hand-off costs the transfer of one line. The ring starts with 4 KiB (or what the
//! capacity needs) and grows while the receiver is behind, up to 256 KiB or the capacity; an
//! unbounded pipe then goes on in chunks, and comes back to its ring. An unbounded pipe's ring and
//! chunks take memory for 16 messages at least, so one of `[u8; 65536]` takes 1 MiB from the start;
//! where messages are that large, a bounded one has room for four more than its capacity.
//!
//! # What is promised
//!
//! - Messages arrive in the order in which they were sent, each once. A message is visible as soon
//!   as its `send` returns; none waits for the next one, or for a line to be full.
//! - `send` on an unbounded pipe never waits for the receiver. `try_recv` and `try_send` never
//!   wait. All of them may call the allocator: `send` when the ring grows or a chunk is needed,
//!   `try_recv` when a chunk has been read.
//! - A `send` that wakes nobody executes no fence and no locked instruction, except twice at the
//!   beginning of a pipe, up to twice for each chunk of a burst, and after a sleep of the receiver
//!   until that has taken 64 messages. It makes no system call, unless it has to wait or the
//!   allocator makes one. With [`Options::fence`], or where the kernel lacks `membarrier(2)`, each
//!   send executes a fence.
//! - A message accepted by `send` is received or, if the receiver is dropped, dropped by then;
//!   once, and also if destructors panic. A message that could not be sent is handed back.
//! - Steady traffic allocates nothing. [`Options::reserve`] has the memory ready from the start.
//!
//! # Not promised
//!
//! - The ends are not `Clone` and not `Sync`: for many senders take a [funnel](crate::funnel).
//! - Chunks of a burst are given back when the receiver has read them, except for
//!   [`Options::retain`] bytes: to the allocator, which may keep them. The ring stays as large as
//!   it has become.
//! - Dropping the receiver of a used pipe while its sender lives executes `membarrier(2)` if
//!   messages have a destructor: a system call that interrupts each CPU that runs a thread of the
//!   process. It is needed to drop a message that is being sent at that moment. A `bounded(1)` pipe
//!   that has carried its one answer does without, and so does one with [`Options::fence`].
//! - Messages of more than 56 bytes take lines of their own.

mod memory;
mod reader;
mod receiver;
mod segment;
mod sender;
mod shared;
#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
mod tests;
mod writer;

use std::marker::PhantomData;

#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
pub use receiver::Batch;
pub use receiver::{IntoIter, Iter, Receiver, TryIter};
#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
pub use sender::Claim;
pub use sender::Sender;

use crate::sync::{Arc, Ordering};
use crate::wait::{Adaptive, Wait};
use segment::{PipeLayout, SEGMENT_BYTES};
use shared::Shared;

/// Bytes of chunks that are kept unless an option says otherwise.
const RETAIN: usize = 1 << 20;

/// Makes a pipe that holds up to `capacity` messages; a sender that finds it full waits.
///
/// ```
/// let (mut sender, mut receiver) = threadtoll::pipe::bounded(2);
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

/// Makes a pipe whose sender never waits.
pub fn unbounded<T: Send>() -> (Sender<T>, Receiver<T>) {
    Options::new().unbounded()
}

/// Options of a pipe.
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
    reserve: bool,
    fence: bool,
    _wait: PhantomData<W>,
}

impl Options {
    /// The options of [`bounded`] and [`unbounded`].
    pub fn new() -> Self {
        Options {
            segment: SEGMENT_BYTES,
            retain: RETAIN,
            reserve: false,
            fence: false,
            _wait: PhantomData,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options::new()
    }
}

impl<W: Wait> Options<W> {
    /// Sets the [way of waiting](crate::wait) of both ends.
    pub fn wait<V: Wait>(self, _: V) -> Options<V> {
        let Options { segment, retain, reserve, fence, .. } = self;
        Options { segment, retain, reserve, fence, _wait: PhantomData }
    }

    /// Bytes up to which an unbounded pipe's ring grows, and of each chunk by which the pipe grows
    /// beyond that: memory for 16 messages at least. The default is 256 KiB. A bounded pipe's ring
    /// grows to what its capacity needs.
    pub fn segment(self, bytes: usize) -> Self {
        Options { segment: bytes, ..self }
    }

    /// Bytes of chunks that are kept for the next burst, at most. The default is 1 MiB. A chunk
    /// that takes more, as 16 messages of 64 KiB do, is not kept.
    pub fn retain(self, bytes: usize) -> Self {
        Options { retain: bytes, ..self }
    }

    /// Allocates the ring at its largest size and writes to all of it, so that no message waits for
    /// the ring to grow or for its pages. Chunks beyond the ring are not reserved. Without this a
    /// ring starts with 4 KiB, or with memory for 16 messages if they are larger than that, or with
    /// less if its capacity needs less.
    ///
    /// ```
    /// let (sender, _receiver) = threadtoll::pipe::Options::new().reserve().unbounded::<u64>();
    /// assert_eq!(sender.memory().ring_bytes, 256 << 10);
    /// ```
    pub fn reserve(self) -> Self {
        Options { reserve: true, ..self }
    }

    /// Has each send, and in a bounded pipe each receive, execute a full fence, so that an end that
    /// goes to sleep interrupts nobody.
    ///
    /// Without this, a receiver that goes to sleep after 64 messages or more, or begins to sleep
    /// more often, and a sender that sleeps because the pipe is full, make every CPU that runs a
    /// thread of this process execute a barrier (`membarrier(2)`), whatever that thread does:
    /// choose this where there are threads that nothing may interrupt. [`Spin`](crate::wait::Spin)
    /// and [`SpinYield`](crate::wait::SpinYield) never sleep. See [what a sleep costs
    /// others](crate::wait#what-a-sleep-costs-others).
    pub fn fence(self) -> Self {
        Options { fence: true, ..self }
    }

    /// Makes a pipe that holds up to `capacity` messages.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0; with [`reserve`](Options::reserve), if so much memory cannot be
    /// addressed. Memory that cannot be had aborts the process, as it does for a `Vec`.
    pub fn bounded<T: Send>(self, capacity: usize) -> (Sender<T, W>, Receiver<T, W>) {
        assert!(capacity > 0, "a pipe for no messages");
        self.make(PipeLayout::bounded::<T>(capacity))
    }

    /// Makes a pipe whose sender never waits.
    pub fn unbounded<T: Send>(self) -> (Sender<T, W>, Receiver<T, W>) {
        let layout = PipeLayout::unbounded::<T>(self.segment);
        self.make(layout)
    }

    fn make<T: Send>(self, layout: PipeLayout) -> (Sender<T, W>, Receiver<T, W>) {
        let layout = if self.reserve { layout.fully_grown() } else { layout };
        let (shared, write_cursor, read_cursor) =
            Shared::new::<W>(layout, self.retain, self.reserve, self.fence);
        let shared = Arc::new(shared);
        (Sender::new(Arc::clone(&shared), write_cursor), Receiver::new(shared, read_cursor))
    }
}

/// Bytes of memory that a pipe holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes of the ring.
    pub ring_bytes: usize,
    /// Bytes of chunks that hold messages or did so a moment ago.
    pub burst_bytes: usize,
    /// Bytes of chunks that are kept for the next burst.
    pub kept_bytes: usize,
}

fn memory_use<T>(shared: &Shared<T>) -> MemoryUse {
    MemoryUse {
        ring_bytes: segment::bytes::<T>(shared.ring_units.load(Ordering::Relaxed)),
        burst_bytes: shared.free_list.used_bytes(),
        kept_bytes: shared.free_list.kept_bytes(),
    }
}

fn capacity<T>(shared: &Shared<T>) -> Option<usize> {
    shared.layout.is_bounded().then_some(shared.layout.capacity as usize)
}
