//! The threads that send an owner work.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use super::ask::{Gone, ask};
use super::context::{Context, Work};
use super::shared::Shared;
use super::timers::{Body, Timer};
use crate::error::{AskError, AskTimeoutError, RecvTimeoutError, SendTimeoutError, TrySendError};
use crate::funnel::Sender;
use crate::oneshot;
use crate::sync::{Arc, Instant, mutate};

/// A handle by which threads and tasks send closures to an [owner](super::Owner).
///
/// Threads can share it or clone it. Once the last handle is dropped, the owner's
/// [`run`](super::Owner::run) returns when everything that was posted has run. So a handle in the
/// state itself, or in the closure of a timer, keeps the owner running until it is stopped.
pub struct Handle<T> {
    jobs: Sender<Work<T>>,
    shared: Arc<Shared>,
}

impl<T> Handle<T> {
    pub(super) fn new(jobs: Sender<Work<T>>, shared: Arc<Shared>) -> Self {
        Handle { jobs, shared }
    }

    /// Sends the owner a closure to run, and returns at once. If the owner is bounded and its queue
    /// is full, waits for room.
    ///
    /// Values that the closure captures, up to 48 bytes that are aligned to at most 8, travel in
    /// the queue; larger ones are put into a box.
    ///
    /// ```
    /// let (mut owner, handle) = threadtoll::owned::new(String::new());
    /// handle.post(|text, _| text.push_str("posted")).unwrap();
    /// drop(handle);
    /// assert_eq!(owner.run(), "posted");
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the closure: `Disconnected` if the owner has stopped or was dropped; `Full` if the
    /// owner is bounded and full, and this is its own thread, which would wait for itself.
    #[inline]
    pub fn post<F>(&self, body: F) -> Result<(), TrySendError<F>>
    where
        F: FnOnce(&mut T, &mut Context<T>) + Send + 'static,
    {
        // SAFETY: the job is made of this closure.
        self.send(Work::new(body)).map_err(|error| unsafe { give_back(error) })
    }

    /// Like [`Handle::post`], but never waits.
    ///
    /// ```
    /// let (_owner, handle) = threadtoll::owned::bounded(1, 0);
    /// assert!(handle.try_post(|count, _| *count += 1).is_ok());
    /// assert!(handle.try_post(|count, _| *count += 1).unwrap_err().is_full());
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the closure if the owner is bounded and full, has stopped, or was dropped.
    #[inline]
    pub fn try_post<F>(&self, body: F) -> Result<(), TrySendError<F>>
    where
        F: FnOnce(&mut T, &mut Context<T>) + Send + 'static,
    {
        // SAFETY: the job is made of this closure.
        self.jobs.try_send(Work::new(body)).map_err(|error| unsafe { give_back(error) })
    }

    /// Has the owner run this closure, and waits for what it returns. The closure may borrow,
    /// because this method returns only once the closure was run or dropped.
    ///
    /// Waits as the owner does: see [`Options::wait`](super::Options::wait). Allocates nothing if
    /// the thread spins; a thread that sleeps for the first time may allocate its own handle. It
    /// sleeps by [`std::thread::park`], so it may take a token that you have left for it by
    /// `unpark`, or leave one.
    ///
    /// ```
    /// let (handle, thread) = threadtoll::owned::spawn("words", || vec!["one", "two"]);
    /// let wanted = String::from("two");
    /// let place = handle.ask(|words, _| words.iter().position(|word| *word == wanted));
    /// assert_eq!(place, Ok(Some(1)));
    /// # drop(handle);
    /// # thread.join().unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// - `OwnThread` on the thread that last ran the owner, which would wait for itself: there,
    ///   use the state that the closure was given.
    /// - `Disconnected` if the owner has stopped or was dropped before it was asked.
    /// - `Unanswered` if the closure panicked; or was dropped, because the owner stopped or was
    ///   dropped.
    pub fn ask<R, F>(&self, body: F) -> Result<R, AskError>
    where
        R: Send,
        F: FnOnce(&mut T, &mut Context<T>) -> R + Send,
    {
        if self.shared.is_own_thread() && !self.is_disconnected() {
            return Err(AskError::OwnThread);
        }
        let send = |job| self.jobs.send(job).map_err(|_| Gone);
        match ask(self.shared.wait, body, send) {
            Ok(answer) => answer.ok_or(AskError::Unanswered),
            Err(Gone) => Err(AskError::Disconnected),
        }
    }

    /// Has the owner run this closure, and waits for what it returns for at most `timeout`. An
    /// answer that comes later is dropped.
    ///
    /// Takes one allocation, and waits as a [one-shot](crate::oneshot) does.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let (_owner, handle) = threadtoll::owned::new(1);
    /// let soon = Duration::from_millis(1);
    /// assert!(handle.ask_timeout(soon, |count, _| *count).unwrap_err().is_timeout());
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Handle::ask`]; and `Timeout` if there was no answer in time. The closure then may
    /// still run, except if there was no room for it in time.
    pub fn ask_timeout<R, F>(&self, timeout: Duration, body: F) -> Result<R, AskTimeoutError>
    where
        R: Send + 'static,
        F: FnOnce(&mut T, &mut Context<T>) -> R + Send + 'static,
    {
        if self.shared.is_own_thread() && !self.is_disconnected() {
            return Err(AskTimeoutError::OwnThread);
        }
        let began = Instant::now();
        let (job, mut answer) = with_reply(body);
        self.jobs.send_timeout(job, timeout).map_err(|error| match error {
            SendTimeoutError::Timeout(_) => AskTimeoutError::Timeout,
            SendTimeoutError::Disconnected(_) => AskTimeoutError::Disconnected,
        })?;
        let left = timeout.saturating_sub(Instant::now().saturating_duration_since(began));
        answer.recv_timeout(left).map_err(|error| match error {
            RecvTimeoutError::Timeout => AskTimeoutError::Timeout,
            RecvTimeoutError::Disconnected => AskTimeoutError::Unanswered,
        })
    }

    /// Has the owner run this closure, and returns a future of what it returns. The closure is
    /// posted at once, not when the future is first polled. If the future is dropped, the closure
    /// runs all the same. A closure of the owner must not block until the future is ready.
    ///
    /// ```
    #[doc = include_str!("../../docs/block_on.txt")]
    /// let (handle, thread) = threadtoll::owned::spawn("count", || 41);
    /// let answer = block_on(handle.ask_async(|count, _| *count + 1));
    /// assert_eq!(answer, Ok(42));
    /// # drop(handle);
    /// # thread.join().unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// `Disconnected` and `Unanswered` as for [`Handle::ask`]; `Full` if the owner is bounded and
    /// full, because a task cannot wait for room.
    pub fn ask_async<R, F>(&self, body: F) -> AskFuture<R>
    where
        R: Send + 'static,
        F: FnOnce(&mut T, &mut Context<T>) -> R + Send + 'static,
    {
        let (job, answer) = with_reply(body);
        AskFuture(match self.jobs.try_send(job) {
            Ok(()) => Ok(answer),
            Err(TrySendError::Full(_)) => Err(AskError::Full),
            Err(TrySendError::Disconnected(_)) => Err(AskError::Disconnected),
        })
    }

    /// Has the owner run this closure once this time has passed, unless the timer is cancelled.
    ///
    /// Does nothing if the owner has stopped or was dropped. Never waits: timers do not count
    /// towards the capacity of a bounded owner. Nor do they keep an owner running whose handles are
    /// gone, unless their closures have captured one.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let (mut owner, handle) = threadtoll::owned::new(0);
    /// handle.after(Duration::from_millis(1), |count, context| {
    ///     *count += 1;
    ///     context.stop();
    /// });
    /// assert_eq!(owner.run(), &1);
    /// ```
    pub fn after<F>(&self, delay: Duration, body: F) -> Timer
    where
        T: 'static,
        F: FnOnce(&mut T, &mut Context<T>) + Send + 'static,
    {
        self.set(delay, Body::Once(Box::new(body)))
    }

    /// Has the owner run this closure again and again, first once `period` has passed, until the
    /// timer is cancelled.
    ///
    /// If the owner is late, the times that it has missed are left out, and the next time is a
    /// whole number of periods after the first. See also [`Handle::after`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let (mut owner, handle) = threadtoll::owned::new(0);
    /// handle.every(Duration::from_millis(1), |count, context| {
    ///     *count += 1;
    ///     if *count == 3 {
    ///         context.stop();
    ///     }
    /// });
    /// assert_eq!(owner.run(), &3);
    /// ```
    ///
    /// # Panics
    ///
    /// If `period` is 0.
    pub fn every<F>(&self, period: Duration, body: F) -> Timer
    where
        T: 'static,
        F: FnMut(&mut T, &mut Context<T>) + Send + 'static,
    {
        assert!(!period.is_zero(), "a timer needs a period");
        self.set(period, Body::Every(period, Box::new(body)))
    }

    /// Number of closures that were posted and have not begun to run; a snapshot.
    ///
    /// ```
    /// let (_owner, handle) = threadtoll::owned::new(());
    /// handle.post(|(), _| ()).unwrap();
    /// assert_eq!(handle.queue_len(), 1);
    /// ```
    pub fn queue_len(&self) -> usize {
        self.jobs.len()
    }

    /// Largest [`queue_len`](Self::queue_len), or `None` if the owner is unbounded.
    pub fn capacity(&self) -> Option<usize> {
        self.jobs.capacity()
    }

    /// Stops the owner: after the closure that it runs now, it drops all others, with its timers
    /// and the ends that it serves, on its own thread. Then `run` returns.
    ///
    /// To have it run first what was posted before, post a closure that calls [`Context::stop`].
    ///
    /// ```
    /// let (handle, thread) = threadtoll::owned::spawn("idle", || ());
    /// handle.stop();
    /// thread.join().unwrap();
    /// assert!(handle.post(|(), _| ()).unwrap_err().is_disconnected());
    /// ```
    pub fn stop(&self) {
        if self.shared.stop() {
            // Wakes the owner. Even if it is full, it may be about to sleep.
            let wake = || drop(self.jobs.send_beyond_capacity(Work::new(|_, _| ())));
            mutate!(tell_stop, wake() => ());
        }
    }

    /// Returns `true` if the owner has stopped or was dropped, or if this is a forked child.
    pub fn is_disconnected(&self) -> bool {
        self.jobs.is_disconnected()
    }

    #[inline]
    fn send(&self, job: Work<T>) -> Result<(), TrySendError<Work<T>>> {
        if self.jobs.capacity().is_none() {
            return Ok(self.jobs.send(job)?);
        }
        match self.jobs.try_send(job) {
            Err(TrySendError::Full(job)) if !self.shared.is_own_thread() => {
                Ok(self.jobs.send(job)?)
            }
            sent => sent,
        }
    }

    fn set(&self, delay: Duration, body: Body<T, Context<T>>) -> Timer
    where
        T: 'static,
    {
        let due = Instant::now().checked_add(delay);
        let timer = Timer::new(&self.shared.cancelled);
        let token = timer.clone();
        let job = Work::new(move |_, context| context.set(due, token, body));
        // If the owner is gone, the timer is never due.
        drop(self.jobs.send_beyond_capacity(job));
        timer
    }
}

/// A job that sends what the closure returns to a one-shot.
fn with_reply<T, R, F>(body: F) -> (Work<T>, oneshot::Receiver<R>)
where
    R: Send + 'static,
    F: FnOnce(&mut T, &mut Context<T>) -> R + Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    let job = Work::new(move |state, context| {
        // Nobody may want the answer any more.
        drop(reply.send(body(state, context)));
    });
    (job, answer)
}

/// Takes the closure out of the job.
///
/// # Safety
///
/// The job must have been made of an `F`.
#[cold]
unsafe fn give_back<T, F>(error: TrySendError<Work<T>>) -> TrySendError<F> {
    let is_full = error.is_full();
    // SAFETY: the caller's promise.
    let closure = unsafe { error.into_inner().into_closure() };
    if is_full { TrySendError::Full(closure) } else { TrySendError::Disconnected(closure) }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        Handle { jobs: self.jobs.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<T> UnwindSafe for Handle<T> {}
impl<T> RefUnwindSafe for Handle<T> {}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("queue_len", &self.queue_len()).finish_non_exhaustive()
    }
}

/// The future of [`Handle::ask_async`].
#[must_use = "use `post` if you do not want the answer"]
pub struct AskFuture<R>(Result<oneshot::Receiver<R>, AskError>);

impl<R> Future for AskFuture<R> {
    type Output = Result<R, AskError>;

    /// Polled again after it was ready, it returns an error.
    fn poll(mut self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Ok(answer) => answer.poll_recv(context).map_err(|_| AskError::Unanswered),
            Err(error) => Poll::Ready(Err(*error)),
        }
    }
}

impl<R> fmt::Debug for AskFuture<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AskFuture").finish_non_exhaustive()
    }
}
