#![doc = include_str!("../README.md")]
//!
//! # Progress guarantees
//!
//! - `try_send` and `try_recv` of a bounded [`pipe`] are wait-free: they take a bounded number of
//!   steps, whatever the other end does. They may call the allocator until both ends have moved to
//!   the ring of full capacity; with [`Options::reserve`](pipe::Options::reserve), they never do.
//! - `send` of an unbounded pipe, and `try_recv` of a pipe, a funnel or a callee, never wait for
//!   another thread. They may call the allocator.
//! - `send` of an unbounded [`funnel`] and `try_send` of a bounded one are lock-free, not
//!   wait-free: they may finish work that other senders began, or retry when senders collide. They
//!   may call the allocator.
//! - Delivery by a funnel is not lock-free: a sender that is stopped in the middle of a send holds
//!   back every later message.
//! - [`Caller::call`](call::Caller::call) waits for the callee.
//! - [`Select::try_ready`](select::Select::try_ready) is wait-free if its sources' `try_recv` is.
//! - `try_publish` and `try_recv_batch` of a [`ring`] never wait for another thread. They do not
//!   call the allocator, except that a reader may if one after which it comes has left.
//! - All methods of a [`oneshot`] that do not wait for its message are wait-free.
//! - A post to an unbounded [owner](owned) is a send to an unbounded funnel.
//!   [`Handle::ask`](owned::Handle::ask) waits for the owner.
//! - [`Mutex::try_lock`](lock::Mutex::try_lock) is lock-free, and so are a lock and an unlock for
//!   which nobody waits.
//!
//! In each of these queues, waking a sleeping thread takes a system call, and waking a task calls
//! its executor's waker. Threads that use only `try_` methods, or that wait with
//! [`Spin`](wait::Wait::Spin) or [`SpinYield`](wait::Wait::SpinYield), never sleep, except that
//! dropping a receiver may take a millisecond ([below](#without-membarrier)).
//!
//! # After a fork
//!
//! A child process inherits its parent's queues but not the threads at their other ends. On Linux,
//! every queue that a child inherits is disconnected: sending and receiving return an error, never
//! wait, and never return a message, even if the fork happened in the middle of an operation.
//! Queues that the child creates work as usual. Two details:
//!
//! - If the child drops an inherited end, it drops its own copies of the messages, as it would with
//!   a `Vec`.
//! - [`pipe::Sender::len`] still counts the messages that were in the pipe.
//!
//! A [`oneshot`] is different: the child may use its copies of both ends, and may receive a copy of
//! a message that its parent also receives. If there is no message, a wait for one and `try_recv`
//! say that the channel is disconnected, because the sender may be in the parent.
//!
//! A [`lock`] is not wiped: if a thread of the parent holds it when the child is forked, the child
//! finds it locked for ever.
//!
//! On other systems, and on Linux before 4.14, a child notices the fork only when it would wait:
//! `recv` on an empty queue and `send` on a full one return an error, but the other methods work on
//! the child's copy. The child may then receive or drop copies of messages that its parent also
//! receives. On these systems, a child should not touch inherited queues, and should end by `exec`
//! or `_exit`.
//!
//! # Without membarrier
//!
//! On Linux, senders need no fence because an end that goes to sleep calls `membarrier(2)`. That
//! call is missing before Linux 4.14, under a sandbox that refuses it or does not list it when
//! queried, on CPUs other than x86-64 and AArch64, and on other systems. Without it, these ends
//! execute a fence for each message: both ends of a call and of a bounded pipe, the sender of an
//! unbounded pipe, the senders of a funnel, and the receiver of a bounded funnel. All ends of a
//! ring do so for each publication and each batch. If a sandbox begins to refuse the call after the
//! first queue was created or [`prepare`] was called, ends sleep for at most a millisecond at a
//! time, and dropping an end may take a millisecond. If a sandbox begins to report success without
//! executing the call, the library cannot detect that, and wake-ups may be lost.
//!
//! On systems other than Linux, threads sleep by [`std::thread::park`]. Going to sleep and waking a
//! sleeper then briefly take a lock that all queues share. If a thread is stopped while it holds
//! this lock, it blocks the threads that try to sleep or wake others, so the guarantees above hold
//! only for ends that never sleep.
//!
//! # Coming from another channel
//!
#![doc = include_str!("../docs/coming-from.md")]
//!
//! # Measured
//!
#![doc = include_str!("../docs/measured.md")]
//!
//! # Bugs of other queues
//!
//! Bugs that other queues have had, and the tests that would detect each of them here:
//!
#![doc = include_str!("../docs/known-bugs.md")]

pub mod call;
#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
mod copy;
pub mod error;
mod first_panic;
#[doc(alias("mpsc", "bounded channel"))]
pub mod funnel;
pub mod lock;
mod memory;
#[cfg(all(test, any(threadtoll_loom, threadtoll_shuttle)))]
mod models;
#[cfg(doctest)]
mod must_not_compile;
#[doc(alias = "one-shot")]
pub mod oneshot;
#[doc(alias("actor", "reactor", "event loop", "functor"))]
pub mod owned;
#[doc(alias("spsc", "bounded channel", "ring buffer"))]
pub mod pipe;
#[doc(alias("disruptor", "broadcast", "multicast", "ring buffer", "fan-out"))]
pub mod ring;
pub mod select;
#[cfg(doctest)]
mod send_and_sync;
mod sync;
pub mod wait;

/// Does in advance the work of creating the process's first queue: asks the kernel for
/// `membarrier(2)` and times the CPU's pause hint.
///
/// Once a process has several threads, the kernel takes 4 to 15 ms to answer, and the thread that
/// creates the first queue waits for the answer. If you call this at the top of `main`, while there
/// is only one thread, it takes less than 0.1 ms. Calling it again does nothing. If the program
/// sets up a sandbox that refuses `membarrier(2)`, call this afterwards: see [without
/// membarrier](crate#without-membarrier).
///
/// ```
/// threadtoll::prepare();
/// let (sender, receiver) = threadtoll::pipe::bounded::<u64>(1024);
/// # drop((sender, receiver));
/// ```
pub fn prepare() {
    wait::calibrate_pause();
    sync::senders_must_fence();
}

/// The version of this crate.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
