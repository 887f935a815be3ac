//! Waiting for several receiving ends at once, of any kinds and message types: [`Select`].
//!
//! A [`Select`] tells which end is ready; its owner then receives from that end as usual. It
//! borrows the ends only while it waits.
//!
//! An actor that serves two channels:
//!
//! ```
//! use std::thread;
//!
//! use threadtoll::select::Select;
//! use threadtoll::{funnel, pipe};
//!
//! enum Command {
//!     Double,
//!     Stop,
//! }
//!
//! let (deposits, mut amounts) = funnel::unbounded::<u64>();
//! let (mut control, mut commands) = pipe::bounded::<Command>(8);
//! let actor = thread::spawn(move || {
//!     let mut select = Select::new();
//!     let mut total = 0;
//!     loop {
//!         match select.ready((&mut amounts, &mut commands)) {
//!             0 => match amounts.try_recv() {
//!                 Ok(amount) => total += amount,
//!                 Err(_) => return total, // All senders are gone.
//!             },
//!             _ => match commands.try_recv() {
//!                 Ok(Command::Double) => total *= 2,
//!                 Ok(Command::Stop) | Err(_) => return total + amounts.try_iter().sum::<u64>(),
//!             },
//!         }
//!     }
//! });
//! deposits.send(20).unwrap();
//! deposits.clone().send(1).unwrap();
//! control.send(Command::Double).unwrap();
//! control.send(Command::Stop).unwrap();
//! # let total =
//! actor.join().unwrap();
//! # assert!([21, 41, 42].contains(&total), "{total}");
//! ```
//!
//! A thread that waits for sockets or timers, too, uses a [`Descriptor`] in its event loop.
//!
//! # What it promises
//!
//! - An end that is reported as ready can be received from without waiting: `try_recv` returns a
//!   message or [`Disconnected`](crate::error::TryRecvError::Disconnected), never
//!   [`Empty`](crate::error::TryRecvError::Empty).
//! - **Fairness.** Each call looks at the sources in turn, beginning after the one that the last
//!   call returned. So while n sources are ready, each of them is returned once in n calls. This
//!   holds as long as each call has the same sources at the same indices: use one `Select` for each
//!   set of sources. There are no priorities: to prefer an end, call its `try_recv` first.
//! - A wait that ends, in whatever way, loses no message: messages stay where they are until they
//!   are received. The ends may be received from in all other ways before and after.
//! - A `Select` that sleeps is woken when there is a message, and when the other side of an end
//!   leaves. Sends are not slower because of it: an end at which a `Select` sleeps looks to senders
//!   like one at which a thread sleeps.
//! - After [`Select::new`], a wait itself allocates nothing. Looking at a funnel, or at a reader of
//!   a ring, may allocate or free memory, as receiving from them may.
//!
//! # What it does not do
//!
//! - **Receive.** It takes no message, so a source that is not received from is returned again.
//! - **Leave out ends that are disconnected.** They stay ready. Put an end into an `Option`, and
//!   set it to `None` once it is disconnected: `None` is never ready.
//! - **Decline requests.** A [callee](crate::call::Callee) that has not answered its last request
//!   is not ready, because it cannot get another. So an actor may keep a request while it waits for
//!   other messages.
//! - **Wait for room**, or in a task: it blocks. There, await `recv_async` of several receivers at
//!   once, by any means of your executor.
//! - **Share an end with a task.** A wait, and arming a [`Descriptor`], may replace the waker that
//!   a task has left at an end, and the task is then not woken.
//! - **Wake up past a sender that is stopped.** A sender that is stopped after it has claimed the
//!   wake-up, but before it has called the kernel, holds back the wake-ups by all other ends.
//! - **Wake only those who wait for an event of a ring.** Whoever wakes a `Select` at a reader of a
//!   ring wakes those at all its readers. Others find nothing and sleep again.
//! - **Scale to thousands of sources.** Each call looks at the sources one by one, and a sleep
//!   marks all of them.
//!
//! # What a sleep costs
//!
//! It [waits](crate::wait) as [`Select::with_wait`] says, whatever the [`Wait`] of the queues is.
//! Before it sleeps, it marks every source, and executes at most one barrier for all of them:
//! `membarrier(2)` if one of the sources needs it (see [what a sleep costs
//! others](crate::wait#what-a-sleep-costs-others)), otherwise a fence or nothing. Afterwards it
//! removes the marks, except those of rings: the next event finds them, and wakes nobody.
//!
//! # How it works
//!
//! The sources' own wake-up hooks, by which tasks wait, lead to one word on which the `Select`
//! sleeps.

mod bell;
#[cfg(target_os = "linux")]
mod descriptor;
mod watching;

use std::cell::RefCell;
use std::fmt;
use std::time::Duration;

use bell::Bell;
#[cfg(target_os = "linux")]
pub use descriptor::Descriptor;
use watching::{Look, Watching, find_ready, settle};

use crate::sync::Instant;
use crate::wait::{Wait, WaitOutcome, Watch, wait};
use crate::{call, funnel, oneshot, pipe, ring};

const NO_SOURCE: &str = "a `Select` needs a source to wait for";

/// A receiving end for which a [`Select`] can wait. This trait is sealed.
pub trait Source: Watch {}

impl<T> Source for pipe::Receiver<T> {}
impl<T> Source for funnel::Receiver<T> {}
/// Ready if there is a request, and if the caller is gone. Not ready while it owes an answer.
impl<Q, R> Source for call::Callee<Q, R> {}
/// Ready if the message was sent, if the sender was dropped, and after the message was received.
impl<T> Source for oneshot::Receiver<T> {}
/// Ready if there are events, and if the writer is gone and everything was read.
impl<T> Source for ring::Reader<T> {}
impl<S: Source + ?Sized> Source for &mut S {}
/// `None` is never ready.
impl<S: Source> Source for Option<S> {}

/// Several [sources](Source), which a [`Select`] knows by their indices, from 0. This trait
/// is sealed.
///
/// Up to eight sources of different types are a tuple of references. Any number of sources is a
/// slice; if their types differ, it is one of `&mut dyn Source`.
///
/// ```
/// use threadtoll::pipe;
/// use threadtoll::select::{Select, Source};
///
/// let (mut senders, mut lanes): (Vec<_>, Vec<_>) = (0..64).map(|_| pipe::unbounded()).unzip();
/// senders[7].send(1).unwrap();
/// assert_eq!(Select::new().ready(&mut lanes[..]), 7);
///
/// let (_other, mut words) = pipe::unbounded::<&str>();
/// let mut sources: Vec<&mut dyn Source> = vec![&mut words];
/// sources.extend(lanes.iter_mut().map(|lane| lane as &mut dyn Source));
/// assert_eq!(Select::new().ready(&mut sources[..]), 8);
/// ```
pub trait Sources {
    /// Number of sources.
    #[doc(hidden)]
    fn count(&self) -> usize;

    /// The source with this index.
    #[doc(hidden)]
    fn source(&mut self, index: usize) -> &mut dyn Watch;
}

impl<S: Source> Sources for &mut [S] {
    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn source(&mut self, index: usize) -> &mut dyn Watch {
        &mut self[index]
    }
}

macro_rules! tuples {
    ($($count:literal: $($source:ident $index:tt),+;)+) => {$(
        impl<$($source: Source),+> Sources for ($(&mut $source,)+) {
            #[inline]
            fn count(&self) -> usize {
                $count
            }

            #[inline]
            fn source(&mut self, index: usize) -> &mut dyn Watch {
                match index {
                    $($index => self.$index,)+
                    _ => unreachable!("there is no source {index}"),
                }
            }
        }
    )+};
}

tuples! {
    1: A 0;
    2: A 0, B 1;
    3: A 0, B 1, C 2;
    4: A 0, B 1, C 2, D 3;
    5: A 0, B 1, C 2, D 3, E 4;
    6: A 0, B 1, C 2, D 3, E 4, F 5;
    7: A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
}

/// Waits for several receiving ends at once; see the [module](self).
///
/// It keeps nothing of a call but the index at which the next call begins, so it may be used for
/// other sources each time. Its fairness needs the same sources each time, though: make one for
/// each set of sources, and keep it.
///
/// ```
/// use threadtoll::select::Select;
/// use threadtoll::{oneshot, pipe};
///
/// let (mut sender, mut numbers) = pipe::unbounded::<u64>();
/// let (reply, mut answer) = oneshot::channel::<&str>();
/// let mut select = Select::new();
/// assert_eq!(select.try_ready((&mut numbers, &mut answer)), None);
/// sender.send(1).unwrap();
/// reply.send("yes").unwrap();
/// assert_eq!(select.ready((&mut numbers, &mut answer)), 0);
/// assert_eq!(select.ready((&mut numbers, &mut answer)), 1);
/// assert_eq!((numbers.try_recv(), answer.try_recv()), (Ok(1), Ok("yes")));
/// ```
#[doc(alias = "select!")]
pub struct Select {
    bell: Bell,
    /// The source at which the next call begins.
    next: usize,
}

impl Default for Select {
    fn default() -> Self {
        Select::new()
    }
}

impl Select {
    /// Creates a `Select` that waits as [`Wait::Adaptive`] does: it spins briefly, and then sleeps.
    pub fn new() -> Self {
        Select::with_wait(Wait::default())
    }

    /// Creates a `Select` that waits in this way.
    ///
    /// ```
    /// use threadtoll::select::Select;
    /// use threadtoll::wait::Wait;
    ///
    /// let select = Select::with_wait(Wait::Spin);
    /// # drop(select);
    /// ```
    pub fn with_wait(wait: Wait) -> Self {
        Select { bell: Bell::new(wait), next: 0 }
    }

    /// Waits until a source is ready, and returns its index.
    ///
    /// Waits forever if no source can become ready: all of them are `None` or callees that owe an
    /// answer.
    ///
    /// # Panics
    ///
    /// If there is no source; also if a task has left a waker at a source that panics when it is
    /// dropped.
    #[inline]
    pub fn ready(&mut self, mut sources: impl Sources) -> usize {
        assert!(sources.count() > 0, "{NO_SOURCE}");
        loop {
            // Without a deadline, nothing can time out.
            if let Some(index) = self.find(&mut sources, || None) {
                return index;
            }
        }
    }

    /// Returns the index of a source that is ready, or `None` if there is none. Never waits.
    #[inline]
    pub fn try_ready(&mut self, mut sources: impl Sources) -> Option<usize> {
        let found = find_ready(&mut sources, self.next)?;
        self.next = found + 1;
        Some(found)
    }

    /// Waits until a source is ready, for at most `timeout`. Returns its index, or `None` if none
    /// was ready in time.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use threadtoll::pipe;
    /// use threadtoll::select::Select;
    ///
    /// let (_sender, mut receiver) = pipe::unbounded::<u64>();
    /// let soon = Duration::from_millis(1);
    /// assert_eq!(Select::new().ready_timeout((&mut receiver,), soon), None);
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no source and the clock cannot represent the deadline, because the wait would
    /// last forever; also if a task has left a waker at a source that panics when it is dropped.
    pub fn ready_timeout(&mut self, mut sources: impl Sources, timeout: Duration) -> Option<usize> {
        let count = sources.count();
        self.find(&mut sources, || {
            // If the clock cannot represent the deadline, there is no limit.
            let deadline = Instant::now().checked_add(timeout);
            assert!(deadline.is_some() || count > 0, "{NO_SOURCE}");
            deadline
        })
    }

    /// Waits until a source is ready, or until `deadline`; see [`Select::ready_timeout`].
    ///
    /// # Panics
    ///
    /// If a task has left a waker at a source that panics when it is dropped.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub fn ready_deadline(&mut self, sources: impl Sources, deadline: Instant) -> Option<usize> {
        self.ready_until(sources, Some(deadline))
    }

    /// Waits until a source is ready, or until the deadline, if there is one.
    pub(crate) fn ready_until(
        &mut self,
        mut sources: impl Sources,
        deadline: Option<Instant>,
    ) -> Option<usize> {
        self.find(&mut sources, || deadline)
    }

    #[inline]
    fn find<S: Sources>(
        &mut self,
        sources: &mut S,
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> Option<usize> {
        let found = match find_ready(sources, self.next) {
            Some(found) => found,
            None => self.wait(sources, deadline())?,
        };
        self.next = found + 1;
        Some(found)
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, sources: &mut dyn Sources, deadline: Option<Instant>) -> Option<usize> {
        if let Some(found) = settle(sources, self.next) {
            return Some(found);
        }
        self.bell.reset();
        // Both closures use this, but never at the same time.
        let watching = RefCell::new(Watching::new(sources, &self.bell.waker, self.next));
        loop {
            let announce = |_| watching.borrow_mut().announce();
            let look = |probe| watching.borrow_mut().look(probe);
            match wait(self.bell.parker(), deadline, announce, look) {
                WaitOutcome::Found(Look::Ready(found)) => return Some(found),
                WaitOutcome::Found(Look::Outdated) => {}
                WaitOutcome::TimedOut | WaitOutcome::Forked => return None,
            }
        }
    }
}

impl fmt::Debug for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Select").finish_non_exhaustive()
    }
}
