//! Tasks that are spawned from other threads on a current-thread runtime of `tokio`: each brings a
//! message to the thread that runs it. This is how state that one thread owns is changed in async
//! code.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::ptr::NonNull;
use std::task::{Poll, Waker};

use threadtoll_lab::queue::{Capacity, Message};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::peer::peer;

peer! {
    package: "tokio";
    spawned: {
        name: "tokio-spawn",
        sentence: "a tokio task per message, spawned on a current-thread runtime from outside",
        capacity: Capacity::Unbounded,
        open: |_| open(),
    };
    many_senders: (Spawns<M>, Runs<M>);
    calls: {
        try_send: |sender, message| {
            sender.spawn(message);
            true
        },
        try_receive: |receiver| receiver.look(),
        send: |sender, message| sender.spawn(message),
        receive: |receiver| receiver.next(),
    }
}

/// What the tasks have brought, and the waker of the thread that waits for it.
struct Brought<M> {
    messages: VecDeque<M>,
    waker: Option<Waker>,
}

/// Used by the tasks and by `Runs`, all of which run on the thread of the runtime.
struct Place<M>(NonNull<UnsafeCell<Brought<M>>>);

// SAFETY: only the thread that runs the runtime uses the place, and the messages may be sent there.
unsafe impl<M: Send> Send for Place<M> {}
// SAFETY: as above: a reference is of no use to another thread.
unsafe impl<M: Send> Sync for Place<M> {}

impl<M> Clone for Place<M> {
    fn clone(&self) -> Self {
        Place(self.0)
    }
}

impl<M> Place<M> {
    /// # Safety
    ///
    /// The caller must be on the runtime's thread, while `Runs` lives, and must not call this in
    /// `body`.
    unsafe fn with<R>(&self, body: impl FnOnce(&mut Brought<M>) -> R) -> R {
        // SAFETY: `Runs` keeps the place.
        let place = unsafe { self.0.as_ref() };
        // SAFETY: this is the only reference.
        body(unsafe { &mut *place.get() })
    }
}

struct Spawns<M> {
    runtime: Handle,
    place: Place<M>,
}

impl<M> Clone for Spawns<M> {
    fn clone(&self) -> Self {
        Spawns { runtime: self.runtime.clone(), place: self.place.clone() }
    }
}

impl<M: Message> Spawns<M> {
    #[inline(always)]
    fn spawn(&self, message: M) {
        let place = self.place.clone();
        drop(self.runtime.spawn(async move {
            // SAFETY: tasks run on the runtime's thread, and `Runs` drops the runtime first.
            let waker = unsafe {
                place.with(|brought| {
                    brought.messages.push_back(message);
                    brought.waker.take()
                })
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        }));
    }
}

struct Runs<M> {
    /// `None` while this value is dropped.
    runtime: Option<Runtime>,
    place: Place<M>,
}

impl<M: Message> Runs<M> {
    fn pop(&mut self) -> Option<M> {
        // SAFETY: this is the runtime's thread, and no task runs.
        unsafe { self.place.with(|brought| brought.messages.pop_front()) }
    }

    /// Runs tasks that are ready, if no message is there.
    fn look(&mut self) -> Option<M> {
        self.pop().or_else(|| {
            self.runtime.as_ref()?.block_on(tokio::task::yield_now());
            self.pop()
        })
    }

    #[inline(always)]
    fn next(&mut self) -> Option<M> {
        if let Some(message) = self.pop() {
            return Some(message);
        }
        let place = &self.place;
        self.runtime.as_ref()?.block_on(poll_fn(|context| {
            // SAFETY: this is the runtime's thread, and no task runs.
            let popped = unsafe {
                place.with(|brought| {
                    let popped = brought.messages.pop_front();
                    if popped.is_none() {
                        brought.waker = Some(context.waker().clone());
                    }
                    popped
                })
            };
            popped.map_or(Poll::Pending, |message| Poll::Ready(Some(message)))
        }))
    }
}

impl<M> Drop for Runs<M> {
    fn drop(&mut self) {
        // First the tasks.
        drop(self.runtime.take());
        // SAFETY: it came from a box, and no task is left to use it.
        drop(unsafe { Box::from_raw(self.place.0.as_ptr()) });
    }
}

fn open<M: Message>() -> (Spawns<M>, Runs<M>) {
    let runtime = Builder::new_current_thread().build();
    let runtime = runtime.unwrap_or_else(|error| panic!("tokio has no runtime: {error}"));
    let brought = Brought { messages: VecDeque::with_capacity(64), waker: None };
    let place = Place(NonNull::from(Box::leak(Box::new(UnsafeCell::new(brought)))));
    let spawns = Spawns { runtime: runtime.handle().clone(), place: place.clone() };
    (spawns, Runs { runtime: Some(runtime), place })
}
