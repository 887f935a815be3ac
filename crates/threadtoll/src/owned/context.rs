//! What a closure can ask of the owner that runs it.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use super::job::Job;
use super::served::{Serve, Served, WithBody};
use super::shared::Shared;
use super::timers::{Body, Entry, Timer, Timers};
use crate::sync::{Arc, Instant};

/// A closure for an owner.
pub(super) type Work<T> = Job<T, Context<T>>;

/// The owner, as the closures that it runs see it.
pub struct Context<T> {
    pub(super) shared: Arc<Shared>,
    /// Jobs that were posted from inside.
    pub(super) later: VecDeque<Work<T>>,
    pub(super) timers: Timers<T, Context<T>>,
    /// Ends that are served from the next round on.
    pub(super) new_ends: Vec<Box<dyn Served<T, Context<T>>>>,
}

impl<T> Context<T> {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let (later, timers, new_ends) = (VecDeque::new(), Timers::new(), Vec::new());
        Context { shared, later, timers, new_ends }
    }

    /// Runs a closure in a later round, so that other posts, timers and ends come in between.
    ///
    /// Posts from inside are run in their order. They do not count towards the capacity of a
    /// bounded owner, and do not keep one running whose handles are gone and that has nothing else
    /// to do: they are run first.
    ///
    /// ```
    /// use threadtoll::owned::{self, Context};
    ///
    /// fn count_down(count: &mut u64, context: &mut Context<u64>) {
    ///     *count -= 1;
    ///     if *count > 0 {
    ///         context.post(count_down);
    ///     }
    /// }
    ///
    /// let (mut owner, handle) = owned::new(1000);
    /// handle.post(count_down).unwrap();
    /// drop(handle);
    /// assert_eq!(owner.run(), &0);
    /// ```
    pub fn post<F>(&mut self, body: F)
    where
        F: FnOnce(&mut T, &mut Context<T>) + Send + 'static,
    {
        self.later.push_back(Job::new(body));
    }

    /// Runs a closure once this time has passed; see [`Handle::after`](super::Handle::after).
    pub fn after<F>(&mut self, delay: Duration, body: F) -> Timer
    where
        F: FnOnce(&mut T, &mut Context<T>) + Send + 'static,
    {
        let timer = Timer::new(&self.shared.cancelled);
        self.set(Instant::now().checked_add(delay), timer.clone(), Body::Once(Box::new(body)));
        timer
    }

    /// Runs a closure again and again; see [`Handle::every`](super::Handle::every).
    ///
    /// # Panics
    ///
    /// If `period` is 0.
    pub fn every<F>(&mut self, period: Duration, body: F) -> Timer
    where
        F: FnMut(&mut T, &mut Context<T>) + Send + 'static,
    {
        assert!(!period.is_zero(), "a timer needs a period");
        let timer = Timer::new(&self.shared.cancelled);
        let body = Body::Every(period, Box::new(body));
        self.set(Instant::now().checked_add(period), timer.clone(), body);
        timer
    }

    /// Sets a timer. It is never due if the clock cannot represent the time.
    pub(super) fn set(&mut self, due: Option<Instant>, timer: Timer, body: Body<T, Context<T>>) {
        if let Some(due) = due {
            self.timers.insert(due, Entry { timer, body });
        }
    }

    /// Serves a receiving end from the next round on: runs the closure with each message. What it
    /// returns is sent back if the end is a [callee](crate::call::Callee), and is `()` otherwise.
    ///
    /// An end whose other side is gone is dropped once all its messages were received.
    ///
    /// ```
    /// use threadtoll::{call, owned, pipe};
    ///
    /// let (handle, thread) = owned::spawn("total", || 0);
    /// let (mut amounts, receiver) = pipe::unbounded::<u64>();
    /// let (mut caller, callee) = call::line::<(), u64>();
    /// handle.post(|_, context| {
    ///     context.serve(receiver, |total, _, amount| *total += amount);
    ///     context.serve(callee, |total, _, ()| *total);
    /// }).unwrap();
    /// amounts.send(42).unwrap();
    /// while caller.call(()).unwrap() != 42 {}
    /// # drop((amounts, caller, handle));
    /// # thread.join().unwrap();
    /// ```
    pub fn serve<S, F>(&mut self, end: S, body: F)
    where
        S: Serve,
        F: FnMut(&mut T, &mut Context<T>, S::Message) -> S::Answer + Send + 'static,
    {
        self.new_ends.push(Box::new(WithBody { end, body }));
    }

    /// Stops the owner after this closure; see [`Handle::stop`](super::Handle::stop).
    pub fn stop(&mut self) {
        self.shared.stop();
    }
}

impl<T> fmt::Debug for Context<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}
