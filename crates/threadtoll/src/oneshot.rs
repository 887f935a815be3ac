//! The one-shot: a channel for one message, from a thread or a task to a thread or a task.
//!
//! Use it for the answer to a request, or for any other result that comes once. A one-shot is a
//! single small allocation, freed as soon as both ends are done with it. Sending takes the sender
//! along and never waits. The receiver can be waited for by a thread ([`Receiver::recv`]), or
//! awaited in a task of any executor, because it is a [`Future`].
//!
//! ```
//! use std::thread;
//!
//! use threadtoll::{funnel, oneshot};
//!
//! let (requests, mut inbox) = funnel::unbounded::<(u64, oneshot::Sender<u64>)>();
//! thread::spawn(move || {
//!     for (number, reply) in inbox.iter() {
//!         // Nobody waits for an answer that is no longer wanted.
//!         let _ = reply.send(number * 2);
//!     }
//! });
//! let (reply, mut answer) = oneshot::channel();
//! requests.send((21, reply)).unwrap();
//! assert_eq!(answer.recv(), Ok(42));
//! ```
//!
//! # What it does not do
//!
//! - **A second message.** If a thread asks another again and again, and does nothing else until it
//!   has the answer, a [call](crate::call) moves fewer cache lines and allocates nothing.
//! - **Tell a sleeping sender that its receiver is gone.** The sender learns it from
//!   [`Sender::send`] or [`Sender::is_disconnected`].
//! - **Choose how to wait.** A thread that waits for a one-shot spins for half a microsecond, and
//!   then for as long as a sleep would cost, as with [`Adaptive`](crate::wait::Wait::Adaptive) at a
//!   new queue. If this has not ended the thread's last four waits for one-shots, it sleeps after
//!   the half microsecond, and spins on in every 16th wait only. To spin without end, loop around
//!   [`Receiver::try_recv`].
//!
//! # What it promises
//!
//! - A message is received, dropped or handed back, exactly once. It is dropped at the latest when
//!   the receiver is.
//! - A waiting receiver is woken when the message is sent, and when the sender is dropped.
//! - Sending is wait-free: a single read-modify-write and, if the receiver waits, waking it.
//!   [`Receiver::try_recv`] and dropping either end are wait-free too. None of them waits for the
//!   other end, even if that is stopped in the middle of an operation, and none allocates. No end
//!   calls `membarrier(2)`.
//! - Receiving is cancel-safe: if a wait times out, or a future is dropped, the message stays in
//!   the channel until the receiver is dropped.
//! - A task may move to another thread or executor between two polls. The waker of the last poll
//!   is woken; earlier ones are dropped.
//!
//! # How it works
//!
//! The message lies next to a word that holds the state of both ends; in one cache line, if the
//! message has up to 8 bytes. A receiver that has to wait stores a wake-up hook (its thread or a
//! waker) and sets a bit of that word. The sender sets another bit, and if it finds the receiver's,
//! fires the hook. So both learn of each other by a read-modify-write of one word, and neither
//! needs a fence.
//!
//! A word for all states, and a bit that says who owns the waker, are well known, for example from
//! `tokio::sync::oneshot` and the `oneshot` crate. One thing is different here: while the sender
//! fires the hook, the receiver may already take the message and leave. The last of them frees the
//! channel, so neither ever waits for the other to finish.

mod receiver;
mod sender;
mod shared;

pub use receiver::Receiver;
pub use sender::Sender;

use shared::Shared;

/// Creates a channel for one message.
///
/// ```
/// let (sender, mut receiver) = threadtoll::oneshot::channel();
/// sender.send("done").unwrap();
/// assert_eq!(receiver.recv(), Ok("done"));
/// ```
#[doc(alias = "oneshot")]
pub fn channel<T: Send>() -> (Sender<T>, Receiver<T>) {
    let shared = Shared::allocate();
    (Sender::new(shared), Receiver::new(shared))
}
