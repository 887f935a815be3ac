//! The ping-pong of *Locks & Condition Variables - Latency Impact* (M. Thompson, 2011), for any
//! lock with condition variables: lock, set the value, signal, unlock; then lock, wait until the
//! echo is new, unlock.
//!
//! If the signal is sent under the lock, the woken thread blocks on the lock (C. Click's comment on
//! the article); the `after` form unlocks first.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::lanes::Lane;
use super::{Class, Ends, Exchange, Mechanism, Settings, Unavailable};

/// A lock with two condition variables, one for each direction.
pub(super) trait Monitor: Default + Send + Sync + 'static {
    /// Holds the lock until it is dropped.
    type Guard<'a>
    where
        Self: 'a;

    fn lock(&self) -> Self::Guard<'_>;
    fn signal(&self, condition: usize);
    /// Waits for the condition's signal; the lock is released meanwhile.
    fn wait<'a>(&'a self, condition: usize, guard: Self::Guard<'a>) -> Self::Guard<'a>;
}

/// The mechanism that signals while the lock is held, and the one that unlocks first.
pub(super) fn mechanisms<M: Monitor>(name: &str, what: &str) -> [Mechanism; 2] {
    let mechanism = |name: &str, when: &str, make: fn(&Settings) -> Result<Ends, Unavailable>| {
        Mechanism::new(name, Class::Sleep, format!("{what}, signalled {when}"), make)
    };
    [
        mechanism(name, "while the lock is held", make::<M, false>),
        mechanism(&format!("{name}-after"), "after unlocking", make::<M, true>),
    ]
}

fn make<M: Monitor, const AFTER: bool>(settings: &Settings) -> Result<Ends, Unavailable> {
    let monitor = Arc::new(M::default());
    let (lead, follow) = Lane::pair(settings);
    let end =
        |monitor, (to, from), signals| Guarded::<M, AFTER> { monitor, to, from, signals, seen: 0 };
    Ok(Ends::two(end(Arc::clone(&monitor), lead, 0), end(monitor, follow, 1)))
}

struct Guarded<M, const AFTER: bool> {
    monitor: Arc<M>,
    to: Lane,
    from: Lane,
    /// Condition that this end signals; it waits for the other condition.
    signals: usize,
    seen: u64,
}

// Relaxed throughout: the lock orders everything, and atomics are needed only to share a word in
// Rust.
impl<M: Monitor, const AFTER: bool> Exchange for Guarded<M, AFTER> {
    #[inline(always)]
    fn send(&mut self, seq: u64) {
        let guard = self.monitor.lock();
        // SAFETY: called in turn and under the lock.
        unsafe { self.to.write(seq) };
        self.to.store(seq, Ordering::Relaxed);
        if AFTER {
            drop(guard);
            self.monitor.signal(self.signals);
        } else {
            self.monitor.signal(self.signals);
            drop(guard);
        }
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        let mut guard = self.monitor.lock();
        while self.from.load(Ordering::Relaxed) == self.seen {
            guard = self.monitor.wait(1 - self.signals, guard);
        }
        let seq = self.from.load(Ordering::Relaxed);
        self.seen = seq;
        // SAFETY: the counter was read under the lock under which it was written, and the reply
        // comes later.
        let read = unsafe { self.from.read(seq) };
        drop(guard);
        read
    }
}
