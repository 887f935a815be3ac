//! Call: one thread asks another and waits for the answer, through one cache line.
//!
//! Take a call where the asking thread has nothing to do until the answer is there. There is one
//! call at a time; to have several under way, take two [pipes](crate::pipe), or a
//! [funnel](crate::funnel) if several threads ask. What to decide:
//!
//! - **Time limit.** [`Caller::call`] waits as long as the callee takes, and for ever if it hangs.
//!   [`Caller::call_timeout`] and [`Caller::call_deadline`] give up, but a request cannot be
//!   withdrawn: the callee may still serve it, and the next call waits for that first.
//! - **Waiting**, by [`Options::wait`]. By default an end spins for half a microsecond, or for as
//!   long as a sleep costs where most waits have been shorter than that, and then sleeps. Each time
//!   an end goes to sleep, every CPU that runs a thread of this process is interrupted
//!   (`membarrier(2)`), so that calls which find the other end awake need no fence. If other
//!   threads must not be interrupted, choose [`Spin`](crate::wait::Spin) or
//!   [`SpinYield`](crate::wait::SpinYield), which never sleep, or [`Options::fence`].
//!
//! Request, answer and the word that says whose turn it is lie side by side, and a waiting end asks
//! for the line *in order to write* (`prefetchw`): it comes over once, ready to be answered in. A
//! round trip is two transfers of the line. A pair of queues needs four or more, because a waiting
//! reader's copy must be invalidated before the line can be written again.
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
//! # Guarantees
//!
//! - Every request is received, handed back or dropped, once; every answer is returned or dropped,
//!   once. What one end cannot take any more is dropped when the other leaves, except for a late
//!   answer: see below. (If the kernel has stopped providing `membarrier(2)` since the line was
//!   made, an end that leaves a late answer behind may wait a millisecond for it.)
//! - A call returns if its callee leaves, declines, or panics while it [serves](Callee::serve). An
//!   end that sleeps is woken.
//! - A request that the callee never saw comes back if the callee leaves.
//!
//! # Limits
//!
//! - A callee that computes for long while its caller spins loses the line to it once, and gets it
//!   back for its answer.
//! - A late answer stays in the line until the caller's next call, or until the caller leaves, also
//!   if the callee has left.

mod callee;
mod caller;
mod shared;

use std::marker::PhantomData;

pub use callee::Callee;
pub use caller::Caller;

use crate::sync::Arc;
use crate::wait::{Adaptive, Wait};
use shared::Shared;

/// Makes a line between one caller and one callee.
pub fn line<Q: Send, R: Send>() -> (Caller<Q, R>, Callee<Q, R>) {
    Options::new().line()
}

/// Options of a line.
///
/// ```
/// use threadtoll::call;
/// use threadtoll::wait::Spin;
///
/// let (caller, callee) = call::Options::new().wait(Spin).line::<u64, u64>();
/// # drop((caller, callee));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Options<W: Wait = Adaptive> {
    fence: bool,
    _wait: PhantomData<W>,
}

impl Options {
    /// The options of [`line()`].
    pub fn new() -> Self {
        Options { fence: false, _wait: PhantomData }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options::new()
    }
}

impl<W: Wait> Options<W> {
    /// Sets how both ends wait. An end that sleeps interrupts other threads: see [the
    /// choice](crate::call), and [`Options::fence`], which avoids it.
    pub fn wait<V: Wait>(self, _: V) -> Options<V> {
        Options { fence: self.fence, _wait: PhantomData }
    }

    /// Lets ends fence, so that going to sleep interrupts no other thread.
    ///
    /// Each request and each answer then executes a full fence, behind which its end waits until
    /// its store is visible: see [what a sleep costs
    /// others](crate::wait#what-a-sleep-costs-others). Choose it where ends sleep often and other
    /// threads of the process must not be disturbed.
    ///
    /// ```
    /// use threadtoll::call;
    /// use threadtoll::wait::Park;
    ///
    /// let (caller, callee) = call::Options::new().wait(Park).fence().line::<u64, u64>();
    /// # drop((caller, callee));
    /// ```
    pub fn fence(self) -> Self {
        Options { fence: true, ..self }
    }

    /// Makes a line between one caller and one callee.
    pub fn line<Q: Send, R: Send>(self) -> (Caller<Q, R, W>, Callee<Q, R, W>) {
        let shared = Arc::new(Shared::new::<W>(self.fence));
        (Caller::new(Arc::clone(&shared)), Callee::new(shared))
    }
}
