//! The pipe: a channel with one sender and one receiver (SPSC), bounded or unbounded.
//!
//! [`bounded`] makes its sender wait while it is full. [`unbounded`] never makes its sender wait,
//! and uses more memory while its receiver falls behind. Both ends [wait](crate::wait) by spinning
//! briefly and then sleeping, unless [`Options::wait`] says otherwise.
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
//! # How it works
//!
//! A pipe is a ring of cache lines. Each line holds a few messages and a count that says how many
//! are there, so a message and its count arrive together, in one transfer. The ring starts at 4
//! KiB, or less if the capacity needs less. It grows while the receiver falls behind, up to its
//! capacity or, if unbounded, to 256 KiB. An unbounded pipe then continues in chunks of that size,
//! and returns to its ring after the burst. A ring or chunk of an unbounded pipe holds at least 16
//! messages, so a pipe of `[u8; 65536]` takes 1 MiB from the start.
//!
//! # In async code
//!
//! [`Receiver::recv_async`] and [`Sender::send_async`] wait in a task of any executor. Threads and
//! tasks may use the same pipe, and the same end in turn. All other methods may be called in a task
//! as well, but those that wait stop the executor's thread. With the feature `stream`, a receiver
//! is a `futures_core::Stream`.
//!
//! # What it does not do
//!
//! - The ends cannot be cloned or shared. For several senders, use a [funnel](crate::funnel).
//! - The ring never shrinks. Memory for a burst beyond the ring is freed once it has been read,
//!   except for [`Options::retain`] bytes; the allocator may keep what is freed.
//! - Messages larger than 28 bytes do not share a cache line, and messages larger than 56 bytes
//!   take several lines. For those, multiples of 64 bytes are best: up to seven such messages share
//!   one line that holds their count.
//! - Dropping the receiver of a used pipe, while the sender is alive, calls `membarrier(2)` if the
//!   messages have a destructor. This interrupts every CPU that runs a thread of the process. A
//!   pipe with [`Options::fence`] does without this call, and so does a
//!   [one-shot](crate::oneshot), which is better for a single answer.
//!
//! # What it promises
//!
//! - Messages arrive in the order in which they were sent, each once. A message is visible when its
//!   `send` returns.
//! - Every accepted message is either received or dropped, at the latest when the receiver is
//!   dropped, even if destructors panic. A message that could not be sent is handed back.
//! - `try_send`, `try_recv`, and `send` on an unbounded pipe never wait for the other end. They may
//!   call the allocator: `send` when the ring grows or a chunk is needed, `try_recv` when it has
//!   read a chunk to its end.
//! - Steady traffic does not allocate as long as the waiting messages fit into the memory that the
//!   pipe keeps. With [`Options::reserve`] the ring has its full size from the start.
//! - A `send` that finds room and has nobody to wake executes no fence, no locked instruction and
//!   no system call, apart from those of the allocator. There are three exceptions. A pipe executes
//!   a locked instruction when it is first used, and up to two for each chunk of a burst. After
//!   the receiver has slept, each send executes a fence until the receiver has taken 64 messages
//!   without sleeping. With [`Options::fence`], or if the kernel lacks `membarrier(2)`, each send
//!   executes a fence.

mod reader;
mod receiver;
mod segment;
mod sender;
mod shared;
#[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
mod tests;
mod writer;

#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
pub use receiver::Batch;
pub use receiver::{IntoIter, Iter, Receiver, RecvFuture, TryIter};
#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
pub use sender::Claim;
pub use sender::{SendFuture, Sender};

use crate::memory;
use crate::sync::{Arc, Ordering};
use crate::wait::Wait;
use segment::{PipeLayout, SEGMENT_BYTES};
use shared::Shared;

const RETAIN: usize = 1 << 20;

/// Creates a pipe that holds up to `capacity` messages.
///
/// If the process already has other threads, creating its first queue takes some milliseconds,
/// unless [`prepare`](crate::prepare) was called.
///
/// ```
/// let (mut sender, mut receiver) = threadtoll::pipe::bounded(1);
/// sender.send("first").unwrap();
/// assert!(sender.try_send("second").unwrap_err().is_full());
/// assert_eq!(receiver.recv(), Ok("first"));
/// ```
///
/// # Panics
///
/// If `capacity` is 0.
#[doc(alias("spsc", "bounded channel", "ring buffer"))]
pub fn bounded<T: Send>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    Options::new().bounded(capacity)
}

/// Creates a pipe whose sender never waits.
///
/// If the process already has other threads, creating its first queue takes some milliseconds,
/// unless [`prepare`](crate::prepare) was called.
///
/// ```
/// let (mut sender, receiver) = threadtoll::pipe::unbounded();
/// sender.send_all(1..=3).unwrap();
/// drop(sender);
/// assert!(receiver.into_iter().eq([1, 2, 3]));
/// ```
#[doc(alias("spsc", "unbounded channel"))]
pub fn unbounded<T: Send>() -> (Sender<T>, Receiver<T>) {
    Options::new().unbounded()
}

/// Options of a pipe.
///
/// ```
/// use threadtoll::pipe;
/// use threadtoll::wait::Wait;
///
/// let (mut sender, mut receiver) = pipe::Options::new().wait(Wait::Spin).bounded(1024);
/// sender.send(1).unwrap();
/// assert_eq!(receiver.recv(), Ok(1));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Options {
    wait: Wait,
    segment: usize,
    retain: usize,
    reserve: bool,
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
        Options {
            wait: Wait::default(),
            segment: SEGMENT_BYTES,
            retain: RETAIN,
            reserve: false,
            fence: false,
        }
    }

    /// Sets how both ends [wait](crate::wait).
    pub fn wait(self, wait: Wait) -> Self {
        Options { wait, ..self }
    }

    /// For tests, which reach chunks sooner if they are small. Sets the size of an unbounded pipe's
    /// largest ring and of each chunk beyond it, in bytes; at least that of 16 messages. Has no
    /// effect on a bounded pipe.
    #[doc(hidden)]
    pub fn segment(self, bytes: usize) -> Self {
        Options { segment: bytes, ..self }
    }

    /// Sets how many bytes of empty chunks the pipe may keep for the next burst. The default is
    /// 1 MiB. A chunk larger than that is never kept.
    pub fn retain(self, bytes: usize) -> Self {
        Options { retain: bytes, ..self }
    }

    /// Allocates the ring at its full size and touches its pages, so that no message waits for the
    /// ring to grow or for a page fault. Chunks beyond the ring are not reserved.
    ///
    /// ```
    /// let (sender, _receiver) = threadtoll::pipe::Options::new().reserve().unbounded::<u64>();
    /// assert_eq!(sender.memory().ring_bytes, 256 << 10);
    /// ```
    pub fn reserve(self) -> Self {
        Options { reserve: true, ..self }
    }

    /// Makes each send, and in a bounded pipe each receive, execute a fence, so that an end that
    /// goes to sleep interrupts no other thread.
    ///
    /// By default an end that goes to sleep may interrupt every CPU that runs a thread of the
    /// process: see [what a sleep costs others](crate::wait#what-a-sleep-costs-others). Choose this
    /// if the process has threads that must not be interrupted. It is not needed with
    /// [`Wait::Spin`] or [`Wait::SpinYield`], which never sleep.
    pub fn fence(self) -> Self {
        Options { fence: true, ..self }
    }

    /// Creates a pipe that holds up to `capacity` messages.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0, or if the memory for [`reserve`](Options::reserve) exceeds the address
    /// space. If the allocator has no memory left, the process aborts, as with a `Vec`.
    pub fn bounded<T: Send>(self, capacity: usize) -> (Sender<T>, Receiver<T>) {
        assert!(capacity > 0, "a pipe needs a capacity of at least 1");
        self.make(PipeLayout::bounded::<T>(capacity))
    }

    /// Creates a pipe whose sender never waits.
    pub fn unbounded<T: Send>(self) -> (Sender<T>, Receiver<T>) {
        let layout = PipeLayout::unbounded::<T>(self.segment);
        self.make(layout)
    }

    fn make<T: Send>(self, layout: PipeLayout) -> (Sender<T>, Receiver<T>) {
        let layout = if self.reserve { layout.fully_grown() } else { layout };
        let (shared, write_cursor, read_cursor) =
            Shared::new(self.wait, layout, self.retain, self.reserve, self.fence);
        let shared = Arc::new(shared);
        (Sender::new(Arc::clone(&shared), write_cursor), Receiver::new(shared, read_cursor))
    }
}

/// Memory that a pipe holds; see [`Sender::memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes of the ring.
    pub ring_bytes: usize,
    /// Bytes of chunks in use.
    pub burst_bytes: usize,
    /// Bytes of empty chunks, kept for the next burst.
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
