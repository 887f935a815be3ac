//! Sockets and other event sources of `mio` that an owner waits for, with its queues and timers.
//!
//! The owner sleeps in `epoll_wait(2)`. Queues wake it by the [`Descriptor`] of a `Select`, with
//! one write per sleep; timers by `timerfd(2)`, because `epoll_wait` rounds to milliseconds.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use mio::event::Source;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

pub(super) use mio::event::Event;

use crate::first_panic::FirstPanic;
use crate::select::{Descriptor, Sources};
use crate::sync::{self, Instant, TimerFd};

/// Tokens of the descriptor and of the timer. Sources are numbered from 0.
const BELL: Token = Token(usize::MAX);
const TIMER: Token = Token(usize::MAX - 1);
/// Events that one call of the kernel returns.
const EVENTS: usize = 64;

/// The closure of a source. It is given a `T` and a `C`.
pub(super) type Body<T, C> = Box<dyn FnMut(&mut T, &mut C, &Event) + Send>;

/// The sources of an owner. It opens nothing before there is one.
pub(super) struct Sockets<T, C> {
    event_loop: Option<EventLoop>,
    /// `None` while the closure runs.
    bodies: HashMap<Token, Option<Body<T, C>>>,
    next_token: usize,
    /// Events that have come and were not handled.
    pending: VecDeque<Event>,
}

struct EventLoop {
    poll: Poll,
    events: Events,
    bell: Descriptor,
    timer: TimerFd,
    timer_is_set: bool,
    /// The [`sync::generation`] of the process that opened it.
    generation: u32,
}

impl EventLoop {
    fn open() -> io::Result<Self> {
        let (poll, bell, timer) = (Poll::new()?, Descriptor::new()?, TimerFd::new()?);
        let registry = poll.registry();
        registry.register(&mut SourceFd(&bell.as_raw_fd()), BELL, Interest::READABLE)?;
        registry.register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)?;
        let (events, generation) = (Events::with_capacity(EVENTS), sync::generation());
        Ok(EventLoop { poll, events, bell, timer, timer_is_set: false, generation })
    }

    /// Returns `true` in a forked child, which shares the kernel's list of sources with its parent.
    fn is_inherited(&self) -> bool {
        self.generation != sync::generation()
    }
}

fn inherited_error() -> io::Error {
    io::Error::other("the sources of this owner are those of the parent process")
}

impl<T, C> Sockets<T, C> {
    pub(super) fn new() -> Self {
        let (bodies, pending) = (HashMap::new(), VecDeque::new());
        Sockets { event_loop: None, bodies, next_token: 0, pending }
    }

    pub(super) fn register<S: Source + ?Sized>(
        &mut self,
        source: &mut S,
        interests: Interest,
        body: Body<T, C>,
    ) -> io::Result<Token> {
        let event_loop = match &mut self.event_loop {
            Some(inherited) if inherited.is_inherited() => return Err(inherited_error()),
            Some(open) => open,
            none => none.insert(EventLoop::open()?),
        };
        let token = Token(self.next_token);
        event_loop.poll.registry().register(source, token, interests)?;
        self.next_token += 1;
        self.bodies.insert(token, Some(body));
        Ok(token)
    }

    pub(super) fn reregister<S: Source + ?Sized>(
        &mut self,
        source: &mut S,
        token: Token,
        interests: Interest,
    ) -> io::Result<()> {
        match &self.event_loop {
            Some(inherited) if inherited.is_inherited() => Err(inherited_error()),
            Some(event_loop) if self.bodies.contains_key(&token) => {
                event_loop.poll.registry().reregister(source, token, interests)
            }
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn deregister<S: Source + ?Sized>(
        &mut self,
        source: &mut S,
        token: Token,
    ) -> io::Result<()> {
        let Some(body) = self.bodies.remove(&token) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        // Its destructor may panic.
        let _body = body;
        match &self.event_loop {
            Some(open) if !open.is_inherited() => open.poll.registry().deregister(source),
            _ => Err(inherited_error()),
        }
    }

    /// Returns `true` if there are sources, unless they are those of a parent process.
    pub(super) fn is_open(&self) -> bool {
        !self.bodies.is_empty() && self.event_loop.as_ref().is_some_and(|it| !it.is_inherited())
    }

    /// Asks the kernel for events, if none are pending. Does not wait.
    pub(super) fn look(&mut self) {
        if self.pending.is_empty() && self.is_open() {
            self.poll(Some(Duration::ZERO));
        }
    }

    /// Waits until there is an event, a queue is ready, or the time has come.
    pub(super) fn wait(&mut self, queues: impl Sources, until: Option<Instant>) {
        let Some(event_loop) = &mut self.event_loop else { return };
        if event_loop.bell.arm(queues).is_some() {
            return;
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return self.poll(Some(Duration::ZERO));
        }
        if left.is_some() || event_loop.timer_is_set {
            event_loop.timer.set(left);
            event_loop.timer_is_set = left.is_some();
        }
        self.poll(None);
    }

    fn poll(&mut self, timeout: Option<Duration>) {
        let Some(EventLoop { poll, events, .. }) = &mut self.event_loop else { return };
        // It fails only if a signal interrupts it. The owner then looks around and comes back.
        if poll.poll(events, timeout).is_ok() {
            let sources = events.iter().filter(|event| ![BELL, TIMER].contains(&event.token()));
            self.pending.extend(sources.cloned());
        }
    }

    /// The next event, with the closure that handles it. Give the closure back afterwards.
    pub(super) fn next(&mut self) -> Option<(Event, Body<T, C>)> {
        if !self.is_open() {
            return None;
        }
        loop {
            let event = self.pending.pop_front()?;
            // Otherwise the source is no longer registered.
            if let Some(body) = self.bodies.get_mut(&event.token()).and_then(Option::take) {
                return Some((event, body));
            }
        }
    }

    /// Takes a closure back, and drops it if it has ended its own registration.
    pub(super) fn give_back(&mut self, event: &Event, body: Body<T, C>) {
        if let Some(place) = self.bodies.get_mut(&event.token()) {
            *place = Some(body);
        }
    }

    /// Closes everything, and drops the closures.
    pub(super) fn close(&mut self, panics: &mut FirstPanic) {
        self.event_loop = None;
        self.pending.clear();
        self.bodies.drain().for_each(|(_, body)| panics.drop(body));
    }
}
