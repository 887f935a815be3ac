//! The ping-pong of M. Thompson's *Locks & Condition Variables - Latency Impact* (2011), for any
//! lock with condition variables. An end locks, sets the value, signals and unlocks; then it locks,
//! waits for the echo and unlocks.
//!
//! A thread woken by a signal that is sent under the lock blocks on the lock at once (C. Click's
//! comment on the article). The `after` form therefore unlocks before it signals.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::lanes::Lane;
use super::{Class, Ends, Exchange, Mechanism, Settings, Unavailable};

/// A lock with two condition variables, one for each direction.
pub(super) trait Monitor: Default + Send + Sync + 'static {
    type Guard<'a>
    where
        Self: 'a;

    fn lock(&self) -> Self::Guard<'_>;
    fn signal(&self, condition: usize);
    fn wait<'a>(&'a self, condition: usize, guard: Self::Guard<'a>) -> Self::Guard<'a>;
}

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
    /// Index of the condition that this end signals. This end waits for the other condition.
    signals: usize,
    seen: u64,
}

// Relaxed is enough: every access to a counter is under the lock.
impl<M: Monitor, const AFTER: bool> Exchange for Guarded<M, AFTER> {
    #[inline(always)]
    fn send(&mut self, seq: u64) {
        let guard = self.monitor.lock();
        // SAFETY: the ends take turns, and this end holds the lock.
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
        // SAFETY: the counter was written and read under the lock, and this end has not replied
        // yet.
        let read = unsafe { self.from.read(seq) };
        drop(guard);
        read
    }
}
