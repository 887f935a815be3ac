//! The ping-pong of *Locks & Condition Variables - Latency Impact* (M. Thompson, 2011), for any
//! lock with condition variables: lock, set the value, signal, unlock; then lock, wait until the
//! echo is new, unlock.
//!
//! Signalling under the lock makes the woken thread block on it (C. Click's comment on the
//! article); the `after` form unlocks first.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::lanes::Lane;
use super::{Ends, Exchange, Settings};

/// A lock with two condition variables, one per direction.
pub(super) trait Monitor: Send + Sync + 'static {
    /// Runs `change` under the lock and signals the condition, before or after unlocking.
    fn change(&self, condition: usize, after: bool, change: impl FnOnce());
    /// Waits under the lock until `ready` returns `true`, then runs `take`, still under the lock.
    fn wait<T>(&self, condition: usize, ready: impl FnMut() -> bool, take: impl FnOnce() -> T)
    -> T;
}

pub(super) fn ends<M: Monitor, const AFTER: bool>(monitor: M, settings: &Settings) -> Ends {
    let monitor = Arc::new(monitor);
    let (lead, follow) = Lane::pair(settings);
    Ends::two(
        Guarded::<M, AFTER> {
            monitor: Arc::clone(&monitor),
            to: lead.0,
            from: lead.1,
            signals: 0,
            seen: 0,
        },
        Guarded::<M, AFTER> { monitor, to: follow.0, from: follow.1, signals: 1, seen: 0 },
    )
}

struct Guarded<M, const AFTER: bool> {
    monitor: Arc<M>,
    to: Lane,
    from: Lane,
    /// Condition that this end signals; it waits on the other.
    signals: usize,
    seen: u64,
}

// Relaxed throughout: the lock orders everything, and atomics are needed only to share a word in
// Rust.
impl<M: Monitor, const AFTER: bool> Exchange for Guarded<M, AFTER> {
    #[inline(always)]
    fn send(&mut self, seq: u64) {
        self.monitor.change(self.signals, AFTER, || {
            // SAFETY: called in turn and under the lock.
            unsafe { self.to.write(seq) };
            self.to.store(seq, Ordering::Relaxed);
        });
    }

    #[inline(always)]
    fn receive(&mut self) -> u64 {
        let (from, seen) = (&self.from, self.seen);
        let (seq, read) = self.monitor.wait(
            1 - self.signals,
            || from.load(Ordering::Relaxed) != seen,
            || {
                let seq = from.load(Ordering::Relaxed);
                // SAFETY: the counter was read under the lock under which it was written, and the
                // reply comes later.
                (seq, unsafe { from.read(seq) })
            },
        );
        self.seen = seq;
        read
    }
}
