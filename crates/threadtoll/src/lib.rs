//! Ways for threads to talk to each other that pay the least.
//!
//! # Which one?
//!
//! | you have | take | what a message costs its sender |
//! |---|---|---|
//! | one sender, one receiver | [`pipe::unbounded`], or [`pipe::bounded`] where the receiver may hold the sender back | two stores and two loads: no locked instruction, no fence, no system call, but where it [takes memory](pipe#what-is-promised) |
//! | many senders, one receiver | [`funnel::unbounded`], or one with a ceiling | the same and one `fetch_add` |
//! | one thread that asks another and waits for the answer | [`call::line`] | one store and two loads; the line comes back with the answer |
//!
//! Whoever waits does so [as the type says](wait): by default a thread spins for about as long as sleeping would cost on this machine, which
//! is learned, and then sleeps. That somebody may sleep costs the other side nothing but a look at a word that it looks at anyway.
//!
//! # A pipe
//!
//! ```
//! use std::thread;
//!
//! use threadtoll::pipe;
//!
//! let (mut sender, mut receiver) = pipe::unbounded();
//! let reader = thread::spawn(move || {
//!     let mut sum = 0u64;
//!     while let Ok(number) = receiver.recv() {
//!         sum += number;
//!     }
//!     sum
//! });
//! sender.send(1).unwrap();
//! sender.send_slice(&[2, 3, 4]).unwrap();
//! drop(sender);
//! assert_eq!(reader.join().unwrap(), 10);
//! ```
//!
//! # A funnel
//!
//! ```
//! use std::thread;
//!
//! use threadtoll::funnel;
//!
//! let (log, mut lines) = funnel::unbounded();
//! let workers: Vec<_> = (0..3)
//!     .map(|worker| {
//!         let log = log.clone();
//!         thread::spawn(move || log.send(format!("worker {worker} is done")).unwrap())
//!     })
//!     .collect();
//! drop(log);
//! assert_eq!(lines.iter().count(), 3);
//! # workers.into_iter().for_each(|worker| worker.join().unwrap());
//! ```
//!
//! # A call
//!
//! ```
//! use std::thread;
//!
//! use threadtoll::call;
//!
//! let (mut caller, mut callee) = call::line();
//! let server = thread::spawn(move || callee.serve(|word: &str| word.len()));
//! assert_eq!(caller.call("toll"), Ok(Some(4)));
//! drop(caller);
//! server.join().unwrap();
//! ```
//!
//! # What is promised, and what is not
//!
//! Each page says so for itself: [pipe], [funnel], [call], [wait]. For all of them:
//!
//! - Any `T: Send`: of no size, large, aligned more strictly than a cache line, with a destructor that panics.
//! - What was accepted while the receiver lived is received or dropped, once. What was not accepted is handed back.
//! - A child after `fork(2)` gets an error, not a hang.
//! - Where the kernel has no `membarrier(2)` (before Linux 4.14, or under a sandbox that refuses it), senders fence instead, which costs some
//!   nanoseconds a message; where it is taken away later, sleepers nap for at most a millisecond at a time.
//!
//! They are not for: more than one receiver; async tasks; two processes; a signal handler.
//!
//! # What was measured
//!
#![doc = include_str!("../docs/measured.md")]
//!
//! # Why trust it
//!
//! Every protocol is checked by model checkers, with places in the code that are broken on purpose to see that the models notice;
//! the barrier that they cannot model is checked state by state and on real cores. What other queues got wrong, and what would notice it here:
//!
#![doc = include_str!("../docs/known-bugs.md")]

pub mod call;
pub mod error;
pub mod funnel;
#[cfg(all(test, any(loom, shuttle)))]
mod models;
pub mod pipe;
mod sync;
mod unwound;
pub mod wait;

/// The version of this crate.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
