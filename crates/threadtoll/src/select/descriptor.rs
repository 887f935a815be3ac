//! A descriptor that an event loop waits for: [`Descriptor`].

#![allow(clippy::disallowed_types, reason = "a waker is made of an `Arc` of the standard library")]

#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::{fmt, io, mem};

use super::Sources;
use super::watching::{Look, Watching, find_ready};
use crate::sync::{self, AtomicU32, EventFd, Ordering, mutate};
use crate::wait::Probe;

// Values of `Shared::state`. Relaxed operations are enough: what a source has published is ordered
// by the source's own words, and so is the store of `ARMED`, which comes before the source's bit is
// set.
/// Nobody has to be told.
const IDLE: u32 = 0;
/// The next wake-up writes to the descriptor.
const ARMED: u32 = 1;
/// A wake-up has written to the descriptor, or is about to.
const RUNG: u32 = 2;

struct Shared {
    state: AtomicU32,
    /// The [`sync::generation`] of the process that created the descriptor.
    generation: u32,
    event: EventFd,
}

/// A file descriptor that becomes readable once one of several [sources](super::Source) is ready,
/// for an event loop: `epoll`, `poll`, or `mio` and the like, which take its
/// [`AsRawFd`](std::os::fd::AsRawFd). On Linux only.
///
/// Call [`arm`](Self::arm) until it returns `None`; then wait for the descriptor, among others. Do
/// not read from it, and do not wait for it after `arm` has returned an index: it may be unreadable
/// although a source is ready. Register it as level-triggered or as edge-triggered: each wake-up
/// that is needed is a write after the last `arm`.
///
/// After `arm` has returned `None`, the end that makes a source ready writes to the descriptor, and
/// the next `arm` reads from it. Further messages in between write nothing: a sleep costs one write
/// and one read. Until the next `arm`, though, each send to a funnel takes its slow path.
///
/// A wait at a source, and any receive from a callee, ends this for that source: arm again before
/// you wait.
///
/// ```
/// use std::os::fd::{AsFd, AsRawFd};
///
/// use threadtoll::pipe;
/// use threadtoll::select::Descriptor;
///
/// fn sleep_until_readable(descriptor: &Descriptor) {
/// #   if cfg!(miri) { return std::thread::yield_now() } // Miri may lack `poll`.
///     let fd = descriptor.as_fd().as_raw_fd();
///     let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
///     // SAFETY: `poll` is valid, and it is one.
///     unsafe { libc::poll(&mut poll, 1, -1) };
/// }
///
/// let (mut sender, mut receiver) = pipe::unbounded();
/// let sending = std::thread::spawn(move || {
///     (0..100).for_each(|number| sender.send(number).unwrap());
/// });
/// let mut descriptor = Descriptor::new().unwrap();
/// let mut sum = 0;
/// 'events: loop {
///     while descriptor.arm((&mut receiver,)).is_some() {
///         match receiver.try_recv() {
///             Ok(number) => sum += number,
///             Err(_) => break 'events, // The sender is gone.
///         }
///     }
///     sleep_until_readable(&descriptor);
/// }
/// assert_eq!(sum, 4950);
/// # sending.join().unwrap();
/// ```
///
/// # What it does not do
///
/// - **Spin.** It has no [`Wait`](crate::wait::Wait), like a task.
/// - **Tell which source is ready** by the descriptor alone: the next `arm` does.
/// - **Close at once.** Sources that it was armed for keep the descriptor open until they wake it,
///   wait in another way or are dropped. Remove it from the event loop before you drop it.
/// - **Work on both sides of a fork.** Parent and child share the descriptor; make a new one in the
///   child.
///
/// If the kernel refuses `membarrier(2)` although it was there when the first queue was created,
/// the descriptor is readable at once each time, so that the event loop polls.
pub struct Descriptor {
    shared: Arc<Shared>,
    waker: Waker,
    /// The source at which the next call begins.
    next: usize,
    /// True if the last call has left its marks at the sources.
    armed: bool,
    /// Number of writes to the descriptor that were not read, some of which may be yet to come.
    unread: u64,
}

impl Descriptor {
    /// Creates a descriptor.
    ///
    /// # Errors
    ///
    /// If the process or the system has too many open files.
    pub fn new() -> io::Result<Self> {
        let (state, generation) = (AtomicU32::new(IDLE), sync::generation());
        let shared = Arc::new(Shared { state, generation, event: EventFd::new()? });
        let waker = Waker::from(Arc::clone(&shared));
        Ok(Descriptor { shared, waker, next: 0, armed: false, unread: 0 })
    }

    /// Returns the index of a source that is ready, like
    /// [`Select::try_ready`](super::Select::try_ready). If there is none, returns `None`, and the
    /// descriptor becomes readable once there is. The descriptor may also become readable for no
    /// reason.
    ///
    /// Does not wait for a source. If it finds none at first, it may call `membarrier(2)`, as a
    /// sleep does. That call [disturbs other threads](crate::wait#what-a-sleep-costs-others), and
    /// returns once all of them have executed a barrier: after some microseconds, and since Linux
    /// 6.9 also after the calls of other threads.
    ///
    /// Pass all sources each time: those of the last call that are missing may still make the
    /// descriptor readable.
    ///
    /// # Panics
    ///
    /// If a task has left a waker at a source that panics when it is dropped.
    pub fn arm(&mut self, mut sources: impl Sources) -> Option<usize> {
        let found = self.find_or_arm(&mut sources)?;
        self.next = found + 1;
        Some(found)
    }

    fn find_or_arm(&mut self, sources: &mut dyn Sources) -> Option<usize> {
        self.disarm();
        let found = find_ready(sources, self.next);
        let watched = if mem::take(&mut self.armed) { sources.count() } else { 0 };
        if found.is_some() && watched == 0 {
            return found;
        }
        let mut watching = Watching::resume(sources, &self.waker, self.next, watched);
        if let Some(found) = found.or_else(|| watching.settle()) {
            return Some(found);
        }
        self.shared.state.store(ARMED, Ordering::Relaxed);
        loop {
            let settled = watching.announce_at_once();
            match watching.look(Probe::Fenced) {
                Some(Look::Ready(found)) => {
                    drop(watching);
                    self.disarm();
                    return Some(found);
                }
                Some(Look::Outdated) => {}
                None if settled => break,
                None => {
                    // Nobody may know of this wait, so the event loop has to poll.
                    drop(watching);
                    self.waker.wake_by_ref();
                    return None;
                }
            }
        }
        watching.keep();
        self.armed = true;
        None
    }

    /// Makes the descriptor unreadable.
    fn disarm(&mut self) {
        let state = &self.shared.state;
        if state.load(Ordering::Relaxed) != IDLE && state.swap(IDLE, Ordering::Relaxed) == RUNG {
            self.unread += 1;
        }
        if self.unread > 0 {
            // A write that is yet to come is read by the next call.
            let read = self.shared.event.read();
            self.unread = mutate!(read_later, self.unread.saturating_sub(read) => 0);
        }
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.generation != sync::generation() {
            // A forked child shares the descriptor, but not the state.
            return;
        }
        let relaxed = Ordering::Relaxed;
        if self.state.compare_exchange(ARMED, RUNG, relaxed, relaxed).is_ok() {
            mutate!(write_event, self.event.write() => ());
        }
    }
}

#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.event.as_fd()
    }
}

#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

#[cfg(all(test, any(threadtoll_loom, threadtoll_shuttle)))]
impl Descriptor {
    /// Sleeps until the descriptor is readable.
    pub(crate) fn poll(&self) {
        self.shared.event.poll();
    }

    pub(crate) fn is_readable(&self) -> bool {
        self.shared.event.is_readable()
    }
}

impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Descriptor").finish_non_exhaustive()
    }
}
