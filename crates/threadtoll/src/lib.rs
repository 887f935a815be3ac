//! Channels between threads for low latency: an SPSC [`pipe`], an MPSC [`funnel`], and a [`call`]
//! that asks and waits for its answer.
//!
//! # Decide
//!
//! **Which one**, by who sends and who receives:
//!
//! | you have | take | what a message costs its sender |
//! |---|---|---|
//! | one sender, one receiver | [`pipe`] | the message, one more store and one load: no locked instruction and no fence |
//! | many senders, one receiver | [`funnel`] | the message, one more store and one atomic read-modify-write |
//! | a thread that asks another one and waits for the answer | [`call`] | the request, one more store and one load; the answer comes in the same cache line |
//!
//! A send that need not wait makes a system call only to wake a receiver that sleeps (the allocator
//! may make others). A send that enters a new cache line or takes memory costs more: each module
//! says what.
//!
//! **Bounded or not.** A `bounded` queue makes its senders wait while it is full, or hands the
//! message back (`try_send`). An `unbounded` one never makes them wait, and takes memory while its
//! receiver is behind.
//!
//! **Waiting.** An end that finds nothing to do spins for a while where most waits have been short,
//! and sleeps where they have not. [`wait`] has the alternatives, as types. An end that goes to
//! sleep may interrupt every CPU that runs a thread of the process (`membarrier(2)`): that is why a
//! send needs no fence. The receiver of a pipe does so only where many messages come between two
//! sleeps, the receiver of a funnel never ([who does when](wait#what-a-sleep-costs-others)). Where
//! other threads must not be interrupted, take a wait that never sleeps, or `Options::fence`.
//!
//! ```
//! use std::thread;
//!
//! use threadtoll::pipe;
//!
//! let (mut sender, mut receiver) = pipe::bounded(1024);
//! let reader = thread::spawn(move || receiver.iter().sum::<u64>());
//! sender.send(1).unwrap();
//! sender.send_slice(&[2, 3, 4]).unwrap();
//! drop(sender);
//! assert_eq!(reader.join().unwrap(), 10);
//! ```
//!
//! # Promises
//!
//! Those of all queues; each module adds its own.
//!
//! - A message is any `T: Send`: of size 0, large, aligned to more than a cache line, or with a
//!   destructor that panics.
//! - A message that was accepted is received or dropped, once. A message that was not accepted is
//!   handed back in the error.
//! - Messages of one sender arrive in the order in which they were sent. A message that was sent is
//!   visible at once: none is held back for the sake of throughput.
//! - An end that sleeps is woken when there is something to do, and when the other end leaves.
//! - Steady traffic allocates nothing, as long as what waits fits into the memory that is kept.
//!   Large messages take more memory from the start: [pipe], [funnel].
//!
//! # Wait-free or lock-free?
//!
//! | | |
//! |---|---|
//! | `try_send` and `try_recv` of a bounded pipe | wait-free (a bounded number of steps, whatever the other end does) and without the allocator, once both ends have come to the ring that holds the capacity (the receiver frees the smaller one as it leaves it): from the start with [`reserve`](pipe::Options::reserve) |
//! | `send` of an unbounded pipe, `try_recv` of any queue | never waits for another thread, but may call the allocator |
//! | `send` of an unbounded funnel, `try_send` of a bounded one | lock-free, not wait-free: it may go through work of other senders, or try again when they collide. It may call the allocator |
//! | delivery by a funnel | not lock-free: a sender that is stopped in the middle of a send holds back all that was sent after it |
//! | a [`call`] | waits for the other thread by nature |
//!
//! In each of these rows, waking an end that sleeps is a system call. Ends that only use `try_`
//! verbs, or wait by [`Spin`](wait::Spin), never sleep.
//!
//! # A child after fork
//!
//! A child process has the memory of its parent's queues, but none of the threads at their other
//! ends. On Linux, a child finds each queue that it inherited disconnected: every verb that sends
//! or receives returns an error, none waits, and none hands out a message, also where the fork was
//! in the midst of one. (An end that the child drops drops the child's copies of messages, as
//! dropping a `Vec` would; and a pipe's `Sender::len` counts them.) Queues that the child makes
//! work as usual.
//!
//! On other systems, and before Linux 4.14, a child is told only where it would wait: `recv` on an
//! empty queue and `send` on a full one return the error, while verbs that need not wait work on
//! the child's copy. It may then receive, or drop, copies of messages that its parent receives too.
//! Have a child use none of the queues that it inherited, and leave by `exec` or `_exit` there.
//!
//! # Platforms
//!
//! Linux is what it is made and measured for, on x86-64. There, senders leave out their fence,
//! since `membarrier(2)` makes up for it. Where that call is missing (before Linux 4.14, or under a
//! sandbox that refuses it) and on other systems, the ends of pipes and calls (but for the receiver
//! of an unbounded pipe) and the receiver of a bounded funnel fence for each message. Where it is
//! refused after a queue was made, an end sleeps for at most a millisecond at a time.
//!
//! On other systems than Linux, threads sleep by [`std::thread::park`], and both going to sleep and
//! waking a sleeper take a lock for a moment. A thread that is stopped while it holds that lock
//! also stops those that sleep or wake meanwhile, of this queue and of others; the table above is
//! then true only of ends that never sleep. The target must have atomics of 64 bits. Tests run on
//! this path too, but on Linux; for Windows and macOS the crate is type-checked only.
//!
//! # What it is not for
//!
//! More than one receiver, async tasks, two processes that share memory, signal handlers, `no_std`.
//!
//! # Measured
//!
#![doc = include_str!("../docs/measured.md")]
//!
//! # How it is checked
//!
//! Every protocol runs in model checkers (loom, shuttle), with places in the code that are broken
//! on purpose to see that the models notice. The barrier that they cannot model is checked state by
//! state, and on real cores. Bugs that other queues have had, and the test that would notice each
//! here:
//!
#![doc = include_str!("../docs/known-bugs.md")]

pub mod call;
pub mod error;
mod first_panic;
pub mod funnel;
#[cfg(all(test, any(threadtoll_loom, threadtoll_shuttle)))]
mod models;
pub mod pipe;
mod sync;
pub mod wait;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The version of this crate.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
