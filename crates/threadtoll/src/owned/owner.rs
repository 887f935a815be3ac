//! The thread that owns the state.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use super::context::{Context, Work};
use super::served::{Ends, Served};
use super::timers::{Body, Entry, next_time};
use crate::error::{RecvTimeoutError, TryRecvError};
use crate::first_panic::FirstPanic;
use crate::funnel::Receiver;
use crate::select::Select;
use crate::sync::{Instant, mutate};

/// Jobs in a round.
const POSTS: usize = 64;
/// Number of jobs in a round after which the owner counts as behind, so that there will be more.
const BEHIND: usize = 4;
/// An owner that is behind prefetches the job that comes this many after the next.
const AHEAD: u64 = 3;
/// Timers and messages of served ends in a round.
const EVENTS: usize = 16;

/// A state, and the closures that wait for it. See the [module](super).
///
/// Dropping it drops the closures, and then the state.
pub struct Owner<T> {
    work: Waiting<T>,
    state: T,
}

/// The closures that wait for the state, and the queues that bring them.
struct Waiting<T> {
    /// `None` once the owner has stopped, or all handles are gone and their jobs have run.
    inbox: Option<Receiver<Work<T>>>,
    served: Vec<Box<dyn Served<T, Context<T>>>>,
    /// Takes served ends in turn.
    turns: Select,
    /// Waits for the inbox and the served ends.
    sleep: Select,
    context: Context<T>,
}

impl<T> Waiting<T> {
    /// Drops all closures.
    #[cold]
    fn close(&mut self) {
        let Context { later, timers, sockets, new_ends, .. } = &mut self.context;
        let mut panics = FirstPanic::default();
        panics.drop(self.inbox.take());
        let ends = self.served.drain(..).chain(new_ends.drain(..));
        ends.for_each(|end| panics.drop(end));
        later.drain(..).for_each(|job| panics.drop(job));
        timers.take().for_each(|timer| panics.drop(timer));
        sockets.close(&mut panics);
        panics.resume();
    }
}

impl<T> Drop for Waiting<T> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<T> Owner<T> {
    pub(super) fn new(inbox: Receiver<Work<T>>, context: Context<T>, state: T) -> Self {
        let wait = context.shared.wait;
        let work = Waiting {
            inbox: Some(inbox),
            served: Vec::new(),
            turns: Select::with_wait(wait),
            sleep: Select::with_wait(wait),
            context,
        };
        Owner { work, state }
    }

    /// Runs closures until the owner is stopped, or until its last handle is gone, everything that
    /// was posted has run, and nothing is left that it serves. Returns the state.
    ///
    /// # Panics
    ///
    /// If a closure does. The closures behind it run in the next call of `run` or
    /// [`run_once`](Self::run_once). What runs again and again stays: a periodic timer, an end, and
    /// a socket.
    pub fn run(&mut self) -> &mut T {
        while self.turn(None) {}
        &mut self.state
    }

    /// Waits for at most `timeout` until there is something to do, and then does some of it: up to
    /// 64 posts, and up to 16 timers and messages of what it serves. Returns `false` if
    /// [`run`](Self::run) would return.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let (mut owner, handle) = threadtoll::owned::new(0);
    /// handle.post(|count, _| *count += 1).unwrap();
    /// assert!(owner.run_once(Duration::ZERO));
    /// assert_eq!(owner.state(), &1);
    /// ```
    ///
    /// # Panics
    ///
    /// As for [`run`](Self::run).
    pub fn run_once(&mut self, timeout: Duration) -> bool {
        self.turn(Some(timeout))
    }

    /// The state.
    pub fn state(&self) -> &T {
        &self.state
    }

    /// The state, to change it outside a closure.
    pub fn state_mut(&mut self) -> &mut T {
        &mut self.state
    }

    /// Drops all closures, and returns the state.
    ///
    /// # Panics
    ///
    /// If the destructor of something that a closure has captured does.
    pub fn into_state(self) -> T {
        let Owner { work, state } = self;
        drop(work);
        state
    }

    /// Does a round. If there is nothing to do, waits first. Returns `false` once it is over.
    #[inline]
    fn turn(&mut self, timeout: Option<Duration>) -> bool {
        self.work.context.shared.is_run_here();
        // A stopped owner does not wait, because nothing would wake it.
        if !self.is_stopped() && !self.round() && !self.is_over() && !self.wait(timeout) {
            // A timer may be due, or an end ready.
            self.round();
        }
        if self.is_stopped() {
            self.work.close();
        }
        !self.is_over()
    }

    fn is_over(&self) -> bool {
        let Context { later, new_ends, sockets, .. } = &self.work.context;
        self.work.inbox.is_none()
            && self.work.served.is_empty()
            && later.is_empty()
            && new_ends.is_empty()
            && !sockets.is_open()
    }

    fn is_stopped(&self) -> bool {
        self.work.context.shared.is_stopped()
    }

    /// Does what is ready, up to the limits. Returns `true` if there was something.
    #[inline]
    fn round(&mut self) -> bool {
        let posts = self.run_posts();
        self.work.served.append(&mut self.work.context.new_ends);
        let Context { timers, sockets, .. } = &self.work.context;
        if self.work.served.is_empty() && timers.is_empty() && !sockets.is_open() {
            return posts > 0;
        }
        let busy = posts + self.run_events() > 0;
        if busy {
            // Otherwise the wait, which is next, asks the kernel.
            self.work.context.sockets.look();
        }
        busy
    }

    /// Runs jobs from inside and from outside in turn, so that neither keeps the other waiting.
    #[inline]
    fn run_posts(&mut self) -> usize {
        let mut count = 0;
        // What is posted from inside meanwhile is left to the next round.
        let mut from_inside = self.work.context.later.len();
        while count < POSTS {
            let before = count;
            if from_inside > 0 && !self.is_stopped() {
                from_inside -= 1;
                if let Some(job) = self.work.context.later.pop_front() {
                    count += 1;
                    job.run(&mut self.state, &mut self.work.context);
                }
            }
            if count < POSTS
                && !self.is_stopped()
                && let Some(job) = self.next_post()
            {
                count += 1;
                if count > BEHIND
                    && let Some(inbox) = &self.work.inbox
                {
                    inbox.prefetch(AHEAD);
                }
                job.run(&mut self.state, &mut self.work.context);
            }
            if count == before {
                break;
            }
        }
        count
    }

    #[inline]
    fn next_post(&mut self) -> Option<Work<T>> {
        match self.work.inbox.as_mut()?.try_recv() {
            Ok(job) => Some(job),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.work.inbox = None;
                None
            }
        }
    }

    /// Runs timers and serves ends and sockets in turn, so that none keeps the others waiting.
    fn run_events(&mut self) -> usize {
        let mut count = 0;
        let now = (!self.work.context.timers.is_empty()).then(Instant::now);
        while count < EVENTS {
            let before = count;
            if let Some(now) = now
                && !self.is_stopped()
            {
                count += usize::from(self.fire(now));
            }
            if count < EVENTS && !self.is_stopped() {
                count += usize::from(self.serve());
            }
            if count < EVENTS && !self.is_stopped() {
                count += usize::from(self.serve_socket());
            }
            if count == before {
                break;
            }
        }
        count
    }

    /// Runs the first timer if it is due.
    fn fire(&mut self, now: Instant) -> bool {
        let Some((due, Entry { timer, body })) = self.work.context.timers.pop_due(now) else {
            return false;
        };
        match body {
            Body::Once(body) if timer.begin() => body(&mut self.state, &mut self.work.context),
            // It was cancelled just now.
            Body::Once(_) => self.work.context.timers.forget(1),
            Body::Every(period, mut body) => {
                let run = AssertUnwindSafe(|| body(&mut self.state, &mut self.work.context));
                // The timer stays even if its closure panics.
                let ran = catch_unwind(run);
                let due = next_time(due, period, Instant::now());
                self.work.context.set(due, timer, Body::Every(period, body));
                if let Err(panic) = ran {
                    resume_unwind(panic);
                }
            }
        }
        true
    }

    /// Serves one end that is ready.
    fn serve(&mut self) -> bool {
        let ends = Ends { inbox: None, served: &mut self.work.served };
        let Some(index) = self.work.turns.try_ready(ends) else { return false };
        let served = self.work.served[index].serve(&mut self.state, &mut self.work.context);
        if served == Err(TryRecvError::Disconnected) {
            drop(self.work.served.remove(index));
        }
        true
    }

    /// Handles one event of a socket.
    fn serve_socket(&mut self) -> bool {
        let Some((event, mut body)) = self.work.context.sockets.next() else { return false };
        let run = AssertUnwindSafe(|| body(&mut self.state, &mut self.work.context, &event));
        // The source stays registered even if its closure panics.
        let ran = catch_unwind(run);
        self.work.context.sockets.give_back(&event, body);
        if let Err(panic) = ran {
            resume_unwind(panic);
        }
        true
    }

    /// Waits until there is something to do, or until the deadline. Returns `false` if another
    /// round may find something.
    #[cold]
    fn wait(&mut self, timeout: Option<Duration>) -> bool {
        let open = self.work.context.sockets.is_open();
        if timeout.is_some_and(|timeout| timeout.is_zero()) && !open {
            // The round that has come before has found nothing.
            return true;
        }
        // If the clock cannot represent the deadline, there is no limit.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let timer = mutate!(wake_for_timer, self.work.context.timers.next_due() => None);
        let until = deadline.into_iter().chain(timer).min();
        if open || !self.work.served.is_empty() {
            let ends = Ends { inbox: self.work.inbox.as_mut(), served: &mut self.work.served };
            if open {
                self.work.context.sockets.wait(ends, until);
            } else {
                self.work.sleep.ready_until(ends, until);
            }
            return false;
        }
        // Waits by the inbox's own wait, which is cheaper.
        match self.work.inbox.as_mut().map(|inbox| inbox.recv_until(until)) {
            Some(Ok(job)) if !self.is_stopped() => {
                job.run(&mut self.state, &mut self.work.context);
                return true;
            }
            Some(Err(RecvTimeoutError::Disconnected)) => self.work.inbox = None,
            Some(Ok(_) | Err(RecvTimeoutError::Timeout)) | None => {}
        }
        false
    }
}

impl<T> fmt::Debug for Owner<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner").finish_non_exhaustive()
    }
}
