//! Counting without a section: what the translators of *Locks aren't slow* answer to whoever takes
//! a lock to count.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::cache_padded::CachePadded;
use crate::mechanism::Unavailable;

use super::RawLock;

/// A number behind a mutex.
pub(super) struct Locked(Mutex<Cell<u64>>);

impl RawLock for Locked {
    type Seat = ();

    fn make(count: usize) -> Result<Vec<Self>, Unavailable> {
        Ok((0..count).map(|_| Locked(Mutex::new(Cell::new(0)))).collect())
    }

    fn seat(&self) {}

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        // Nothing that adds one panics.
        let number = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        number.set(number.get().wrapping_add(1));
        section()
    }
}

/// An atomic number.
pub(super) struct Atomic(AtomicU64);

impl RawLock for Atomic {
    type Seat = ();

    fn make(count: usize) -> Result<Vec<Self>, Unavailable> {
        Ok((0..count).map(|_| Atomic(AtomicU64::new(0))).collect())
    }

    fn seat(&self) {}

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        // Relaxed: a count orders nothing else.
        self.0.fetch_add(1, Ordering::Relaxed);
        section()
    }
}

/// A number for each thread.
pub(super) struct Sharded;

/// Atomic so that whoever sums can read it while it is counted; one thread alone writes it, so that
/// a load and a store are enough.
pub(super) type Shard = CachePadded<AtomicU64>;

impl RawLock for Sharded {
    type Seat = Box<Shard>;

    fn make(count: usize) -> Result<Vec<Self>, Unavailable> {
        Ok((0..count).map(|_| Sharded).collect())
    }

    fn seat(&self) -> Box<Shard> {
        Box::new(CachePadded(AtomicU64::new(0)))
    }

    #[inline(always)]
    fn hold<R>(&self, shard: &mut Box<Shard>, section: impl FnOnce() -> R) -> R {
        shard.0.store(shard.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        section()
    }
}
