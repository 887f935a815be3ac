//! The call: one thread asks another and waits for the answer, through one cache line.
//!
//! Use a call if the asking thread can do nothing until it has the answer. Each call belongs to a
//! *line*, which connects one caller and one callee. At best, a round trip moves one cache line to
//! the callee and back; a pair of queues needs at least four such transfers. See
//! [below](self#how-it-works).
//!
//! ```
//! use std::thread;
//!
//! use threadtoll::call;
//!
//! let (mut caller, mut callee) = call::line();
//! thread::spawn(move || {
//!     while let Ok(number) = callee.recv() {
//!         callee.answer(number * 2u64);
//!     }
//! });
//! assert_eq!(caller.call(21), Ok(42));
//! ```
//!
//! # What it does not do
//!
//! - **Several calls at once.** A line carries one call at a time. For more, use two
//!   [pipes](crate::pipe), or a [funnel](crate::funnel) if several threads ask.
//! - **Withdraw a request.** [`Caller::call`] waits until the callee answers, forever if it hangs.
//!   [`Caller::call_timeout`] and [`Caller::call_deadline`] give up, but the callee may still serve
//!   the request, and the next call first waits until the callee has answered or declined it.
//! - **Drop a late answer at once.** A late answer stays in the line until the caller calls again
//!   or is dropped.
//! - **Sleep without disturbing others.** An end that goes to sleep may interrupt every CPU that
//!   runs a thread of the process (`membarrier(2)`). In return, calls between ends that are awake
//!   need no fence. Ends that [sleep often](crate::wait#what-a-sleep-costs-others) execute fences
//!   instead. If other threads must not be interrupted, use [`Spin`](crate::wait::Wait::Spin) or
//!   [`SpinYield`](crate::wait::Wait::SpinYield), which never sleep, or [`Options::fence`].
//!
//! # What it promises
//!
//! - Each request is received, handed back or dropped exactly once. Each answer is returned or
//!   dropped exactly once.
//! - A call returns if its callee answers, declines (receives the next request without answering
//!   this one), is dropped, or panics while it [serves](Callee::serve). A sleeping end is woken
//!   when the other end asks, answers, declines or leaves.
//! - A request that the callee never received comes back if the callee is dropped.
//!
//! # How it works
//!
//! The request, the answer and a word that says whose turn it is are stored together, in one cache
//! line if they fit. A waiting end fetches that cache line *for writing* (`prefetchw`), so that it
//! need not fetch the line again before it writes. If the caller spins while the callee computes,
//! the line makes an extra trip: to the caller, and back before the callee writes the answer.

mod callee;
mod caller;
mod shared;

pub use callee::Callee;
pub use caller::Caller;

use crate::sync::Arc;
use crate::wait::Wait;
use shared::Shared;

/// Creates a line between one caller and one callee.
///
/// If the process already has other threads, creating its first line or queue takes some
/// milliseconds, unless [`prepare`](crate::prepare) was called.
///
/// ```
/// let (mut caller, mut callee) = threadtoll::call::line();
/// let server = std::thread::spawn(move || callee.serve(|number: u64| number + 1));
/// assert_eq!(caller.call(1), Ok(2));
/// drop(caller);
/// server.join().unwrap();
/// ```
pub fn line<Q: Send, R: Send>() -> (Caller<Q, R>, Callee<Q, R>) {
    Options::new().line()
}

/// Options of a line.
///
/// ```
/// use threadtoll::call;
/// use threadtoll::wait::Wait;
///
/// let (caller, callee) = call::Options::new().wait(Wait::Spin).line::<u64, u64>();
/// # drop((caller, callee));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    wait: Wait,
    fence: bool,
}

impl Options {
    /// The options that [`line()`] uses.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how both ends [wait](crate::wait).
    pub fn wait(self, wait: Wait) -> Self {
        Options { wait, ..self }
    }

    /// Makes each request and each answer execute a fence, so that an end that goes to sleep does
    /// not interrupt other threads.
    ///
    /// Choose this if ends sleep often and other threads of the process must not be interrupted:
    /// see [what a sleep costs others](crate::wait#what-a-sleep-costs-others).
    ///
    /// ```
    /// use threadtoll::call;
    /// use threadtoll::wait::Wait;
    ///
    /// let (caller, callee) = call::Options::new().wait(Wait::Park).fence().line::<u64, u64>();
    /// # drop((caller, callee));
    /// ```
    pub fn fence(self) -> Self {
        Options { fence: true, ..self }
    }

    /// Creates a line between one caller and one callee.
    pub fn line<Q: Send, R: Send>(self) -> (Caller<Q, R>, Callee<Q, R>) {
        let shared = Shared::new(self.wait, self.fence);
        (Caller::new(Arc::clone(&shared)), Callee::new(shared))
    }
}
