//! A state that one thread owns, and to which others send closures: [`Owner`] and [`Handle`].
//!
//! Instead of a lock that threads take in turn, one thread has the state, and runs what the others
//! send it, one closure after the other. It can serve queues and run timers in between. This is
//! known as an actor, an event loop or a reactor, or as functors that are sent to a thread.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::time::Duration;
//!
//! use threadtoll::owned;
//!
//! // The state is made on its own thread, so it need not be `Send`.
//! let (handle, thread) = owned::spawn("book", BTreeMap::<u64, u64>::new);
//!
//! // Sends work, and does not wait for it.
//! handle.post(|book, _| _ = book.insert(101, 5)).unwrap();
//! // Waits for an answer.
//! let best = handle.ask(|book, _| book.keys().next().copied());
//! assert_eq!(best, Ok(Some(101)));
//! // Runs again and again.
//! let timer = handle.every(Duration::from_millis(5), |book, _| _ = book.pop_last());
//!
//! timer.cancel();
//! handle.stop();
//! thread.join().unwrap();
//! ```
//!
//! # When to use it
//!
//! - **The work is long or the lock is contended.** The state stays in the owner's cache, and
//!   threads that [`post`](Handle::post) go on at once.
//! - **The state cannot be shared:** it is not `Send`, or belongs to an event loop.
//! - **Not if the lock is mostly free.** [`ask`](Handle::ask) moves two cache lines to another CPU
//!   and back, and a lock that nobody holds moves none.
//!
//! # What it promises
//!
//! - A closure that was posted is run or dropped, exactly once, on the thread that runs or drops
//!   the owner. Closures of one thread run in the order in which that thread posted them; but posts
//!   of the owner's own thread by its [`Context`], and those by a handle, are two separate orders.
//! - One closure runs at a time, so it has the state to itself.
//! - In a round, an owner runs up to 64 posts, and up to 16 timers and messages of ends that it
//!   serves. So neither can keep the others waiting. Among posts, those from
//!   [inside](Context::post) and those from other threads take turns; so do timers, ends and
//!   sockets.
//! - `ask` from the owner's own thread, or of an owner that is gone, is an error. So is a `post`
//!   from that thread to a full owner.
//! - An owner with nothing to do sleeps, or spins, as [`Options::wait`] says.
//!
//! # Sockets
//!
//! With the feature `mio`, on Linux, an owner also serves sockets and everything else that `mio`
//! can wait for: see `Context::register`. While there are any, it sleeps in `epoll_wait(2)` and
//! does not spin, whatever its [`Wait`] is.
//!
//! # What it does not do
//!
//! - **Restart.** A panic in a closure unwinds out of [`Owner::run`], or ends the thread of
//!   [`spawn`]. The asker of that closure gets an error. The owner is intact, and may run again.
//! - **Interrupt a closure** that computes or waits for a long time: everything behind it waits.
//! - **Detect deadlocks between owners.** Two owners whose closures `ask` each other, or two full
//!   owners whose closures `post` to each other, wait forever: use
//!   [`ask_timeout`](Handle::ask_timeout) or [`try_post`](Handle::try_post), or post the answer.
//! - **Recognise its own thread before its first run.** An `ask`, or a `post` to a full owner, from
//!   a thread that is to run the owner later waits forever.
//! - **Overtake a stopped post.** If a thread is stopped in the middle of a post, everything behind
//!   it waits, a stop included: see [the funnel](crate::funnel#what-it-does-not-do).
//! - **Keep closures on one thread.** All of them must be `Send`, those from inside included, so
//!   that an owner can be sent to another thread. The state need not be.
//! - **Go on in a forked child.** There, an owner acts as if all handles were gone, and handles as
//!   if the owner were. A closure of an `ask` must not fork and return in the child.
//!
//! # How it works
//!
//! The owner is the receiver of a [funnel] of closures. A closure of up to 48 bytes lies in its
//! slot, which is one cache line. So a post costs what a send of 56 bytes does. The closure of an
//! `ask` brings a pointer to the asker's frame, and the answer comes there.

mod ask;
mod context;
mod handle;
mod job;
mod owner;
mod served;
mod shared;
#[cfg_attr(
    not(all(feature = "mio", target_os = "linux", not(any(threadtoll_loom, threadtoll_shuttle)))),
    path = "owned/no_sockets.rs"
)]
mod sockets;
mod timers;

use std::thread::JoinHandle;

pub use context::Context;
pub use handle::{AskFuture, Handle};
pub use owner::Owner;
pub use served::Serve;
pub use timers::Timer;

use context::Work;
use shared::Shared;

use crate::funnel::{self, Receiver};
use crate::sync::Arc;
use crate::wait::Wait;

/// Puts a state in the care of an owner, which its thread then [runs](Owner::run).
///
/// ```
/// let (mut owner, handle) = threadtoll::owned::new(0);
/// std::thread::spawn(move || handle.post(|count, _| *count += 1).unwrap());
/// assert_eq!(owner.run(), &1);
/// ```
pub fn new<T>(state: T) -> (Owner<T>, Handle<T>) {
    Options::new().build(state)
}

/// Like [`new`], but up to `capacity` closures wait: then [`Handle::post`] waits, and
/// [`Handle::try_post`] refuses.
///
/// # Panics
///
/// If `capacity` is 0.
pub fn bounded<T>(capacity: usize, state: T) -> (Owner<T>, Handle<T>) {
    Options::new().capacity(capacity).build(state)
}

/// Starts a thread with this name that makes the state and runs the owner until it is stopped or
/// the last handle is gone. The state need not be `Send`.
///
/// If `make` or a closure panics, the thread ends, and handles are disconnected.
///
/// ```
/// use std::cell::RefCell;
/// use std::rc::Rc;
///
/// let (handle, thread) = threadtoll::owned::spawn("tree", || Rc::new(RefCell::new(1)));
/// assert_eq!(handle.ask(|shared, _| *shared.borrow()), Ok(1));
/// drop(handle);
/// thread.join().unwrap();
/// ```
///
/// # Panics
///
/// If the system cannot start a thread, or if the name contains a null byte.
pub fn spawn<T, F>(name: &str, make: F) -> (Handle<T>, JoinHandle<()>)
where
    T: 'static,
    F: FnOnce() -> T + Send + 'static,
{
    Options::new().spawn(name, make)
}

/// Options of an owner.
///
/// ```
/// use threadtoll::owned;
/// use threadtoll::wait::Wait;
///
/// let options = owned::Options::new().wait(Wait::Park).capacity(1000);
/// let (handle, thread) = options.spawn("log", Vec::new);
/// handle.post(|lines, _| lines.push("started")).unwrap();
/// # drop(handle);
/// # thread.join().unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    wait: Wait,
    capacity: Option<usize>,
}

impl Options {
    /// The options that [`new`] and [`spawn`] use.
    pub fn new() -> Self {
        Options::default()
    }

    /// Sets how the owner waits for work, and how threads wait for answers and for room: see
    /// [`wait`](crate::wait).
    pub fn wait(self, wait: Wait) -> Self {
        Options { wait, ..self }
    }

    /// Sets how many closures may wait; see [`bounded`].
    ///
    /// # Panics
    ///
    /// If `capacity` is 0.
    pub fn capacity(self, capacity: usize) -> Self {
        assert!(capacity > 0, "an owner needs a capacity of at least 1");
        Options { capacity: Some(capacity), ..self }
    }

    /// Puts a state in the care of an owner; see [`new`].
    pub fn build<T>(self, state: T) -> (Owner<T>, Handle<T>) {
        let Parts { inbox, handle, shared } = self.parts();
        (Owner::new(inbox, Context::new(shared), state), handle)
    }

    /// Starts a thread that makes the state and runs the owner; see [`spawn`].
    ///
    /// # Panics
    ///
    /// As for [`spawn`].
    pub fn spawn<T, F>(self, name: &str, make: F) -> (Handle<T>, JoinHandle<()>)
    where
        T: 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let Parts { inbox, handle, shared } = self.parts();
        let run = move || _ = Owner::new(inbox, Context::new(shared), make()).run();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        (handle, thread.unwrap_or_else(|error| panic!("cannot start a thread: {error}")))
    }

    fn parts<T>(self) -> Parts<T> {
        let options = funnel::Options::new().wait(self.wait);
        let (jobs, inbox) = match self.capacity {
            Some(capacity) => options.bounded(capacity),
            None => options.unbounded(),
        };
        let shared = Arc::new(Shared::new(self.wait));
        Parts { inbox, handle: Handle::new(jobs, Arc::clone(&shared)), shared }
    }
}

struct Parts<T> {
    inbox: Receiver<Work<T>>,
    handle: Handle<T>,
    shared: Arc<Shared>,
}
