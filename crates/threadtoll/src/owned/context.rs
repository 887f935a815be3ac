//! The owner, as the closures that it runs see it.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use super::job::Job;
use super::served::{Serve, Served, WithBody, WithEvents};
use super::shared::Shared;
use super::sockets::Sockets;
use super::timers::{Body, Entry, Timer, Timers};
use crate::ring;
use crate::sync::{Arc, Instant};

/// A closure for an owner.
pub(super) type Work<T> = Job<T, Context<T>>;

/// The owner, as the closures that it runs see it.
pub struct Context<T> {
    pub(super) shared: Arc<Shared>,
    /// Jobs that were posted from inside.
    pub(super) later: VecDeque<Work<T>>,
    pub(super) timers: Timers<T, Context<T>>,
    pub(super) sockets: Sockets<T, Context<T>>,
    /// Ends that are served from the next round on.
    pub(super) new_ends: Vec<Box<dyn Served<T, Context<T>>>>,
}

impl<T> Context<T> {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let timers = Timers::new(Arc::clone(&shared.cancelled));
        let (later, sockets, new_ends) = (VecDeque::new(), Sockets::new(), Vec::new());
        Context { shared, later, timers, sockets, new_ends }
    }

    /// Runs a closure in a later round, so that other posts, timers and ends come in between.
    ///
    /// Posts from inside run in their order, and do not count towards the capacity of a bounded
    /// owner. An owner whose handles are gone keeps running until they have run.
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

    /// Serves a reader of a [ring](crate::ring) from the next round on: runs the closure with each
    /// event.
    ///
    /// Each event counts as read once its closure has returned. If it panics, readers that come
    /// after this one do not get the event, and an owner that runs again serves it again. The
    /// reader is dropped once the writer is gone and everything was read.
    ///
    /// ```
    /// use threadtoll::{owned, ring};
    ///
    /// let mut builder = ring::Builder::new(1024, || 0);
    /// let prices = builder.reader();
    /// let (handle, thread) = owned::spawn("highest", || 0);
    /// handle.post(|_, context| {
    ///     context.serve_ring(prices, |highest, _, price| *highest = *price.max(highest));
    /// }).unwrap();
    /// let mut writer = builder.start()?;
    /// for price in [7, 9, 8] {
    ///     writer.publish(|event| *event = price)?;
    /// }
    /// while handle.ask(|highest, _| *highest).unwrap() != 9 {}
    /// # drop((writer, handle));
    /// # thread.join().unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn serve_ring<E, F>(&mut self, reader: ring::Reader<E>, body: F)
    where
        E: Send + Sync + 'static,
        F: FnMut(&mut T, &mut Context<T>, &E) + Send + 'static,
    {
        self.new_ends.push(Box::new(WithEvents { reader, body }));
    }

    /// Stops the owner after this closure; see [`Handle::stop`](super::Handle::stop).
    pub fn stop(&mut self) {
        self.shared.stop();
    }
}

/// With the feature `mio`, on Linux.
#[cfg(all(feature = "mio", target_os = "linux", not(any(threadtoll_loom, threadtoll_shuttle))))]
impl<T> Context<T> {
    /// Serves a socket, or another event source of `mio`: runs the closure with each event. Returns
    /// the token by which events and the other methods name the source.
    ///
    /// Events are edge-triggered: the closure must read or write until it gets an error of the kind
    /// [`WouldBlock`](std::io::ErrorKind::WouldBlock), because unread bytes bring no other event.
    /// The source stays yours, for example in the state. [Deregister](Self::deregister) it before
    /// you drop it: otherwise the closure stays until the owner ends, and keeps the owner running.
    ///
    /// ```
    /// use std::io::Read;
    /// use std::os::unix::net::UnixStream as Blocking;
    ///
    /// use mio::Interest;
    /// use mio::net::UnixStream;
    /// use threadtoll::owned;
    ///
    /// struct Reader {
    ///     socket: UnixStream,
    ///     text: String,
    /// }
    ///
    /// let (mut there, here) = Blocking::pair().unwrap();
    /// here.set_nonblocking(true).unwrap();
    /// let reader = Reader { socket: UnixStream::from_std(here), text: String::new() };
    /// let (mut owner, handle) = owned::new(reader);
    /// handle.post(|reader, context| {
    ///     let readable = Interest::READABLE;
    ///     context.register(&mut reader.socket, readable, |reader, context, event| {
    ///         // `Ok` at the end of the stream, and otherwise `WouldBlock`.
    ///         if reader.socket.read_to_string(&mut reader.text).is_ok() {
    ///             context.deregister(&mut reader.socket, event.token()).unwrap();
    ///         }
    ///     }).unwrap();
    /// }).unwrap();
    /// drop(handle);
    /// # let there = &mut there;
    /// std::io::Write::write_all(there, b"hello").unwrap();
    /// there.shutdown(std::net::Shutdown::Both).unwrap();
    /// assert_eq!(owner.run().text, "hello");
    /// ```
    ///
    /// # Errors
    ///
    /// If `epoll`, or a descriptor that the owner needs with it, cannot be opened; if `epoll`
    /// refuses the source; or if the owner has sources already and this is a forked child.
    pub fn register<S, F>(
        &mut self,
        source: &mut S,
        interests: mio::Interest,
        body: F,
    ) -> std::io::Result<mio::Token>
    where
        S: mio::event::Source + ?Sized,
        F: FnMut(&mut T, &mut Context<T>, &mio::event::Event) + Send + 'static,
    {
        self.sockets.register(source, interests, Box::new(body))
    }

    /// Changes what a source is served for.
    ///
    /// # Errors
    ///
    /// If no source has this token (`NotFound`), or if `epoll` refuses the source.
    pub fn reregister<S>(
        &mut self,
        source: &mut S,
        token: mio::Token,
        interests: mio::Interest,
    ) -> std::io::Result<()>
    where
        S: mio::event::Source + ?Sized,
    {
        self.sockets.reregister(source, token, interests)
    }

    /// Stops serving a source, and drops its closure. Events that have come are not handled any
    /// more. A closure may do this for its own source.
    ///
    /// # Errors
    ///
    /// If no source has this token (`NotFound`), or if `epoll` refuses the source, whose closure is
    /// dropped all the same.
    pub fn deregister<S>(&mut self, source: &mut S, token: mio::Token) -> std::io::Result<()>
    where
        S: mio::event::Source + ?Sized,
    {
        self.sockets.deregister(source, token)
    }
}

impl<T> fmt::Debug for Context<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}
