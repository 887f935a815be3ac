//! Alternatives to a lock around a counter, suggested by the translators of *Locks aren't slow*.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::cache_padded::CachePadded;

use super::{GrantPolicy, Lock, RawLock, Wrap, each};

pub(super) fn locks<W: Wrap>() -> [Lock; 3] {
    [
        Lock::ours::<W, _>(
            "counter-locked",
            GrantPolicy::Barging,
            "not a lock but a counter, guarded by a std::sync::Mutex",
            each(Locked::default),
        )
        .that_only_counts(),
        Lock::ours::<W, _>(
            "counter-atomic",
            GrantPolicy::NeverWaits,
            "not a lock but a counter, an atomic that all threads add to",
            each(Atomic::default),
        )
        .that_only_counts(),
        Lock::ours::<W, _>(
            "counter-sharded",
            GrantPolicy::NeverWaits,
            "not a lock but counters, one per thread, summed at the end",
            each(Sharded::default),
        )
        .that_only_counts(),
    ]
}

#[derive(Default)]
struct Locked(Mutex<Cell<u64>>);

impl RawLock for Locked {
    type ThreadState = ();

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        // An increment cannot panic.
        let number = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        number.set(number.get().wrapping_add(1));
        section()
    }
}

#[derive(Default)]
struct Atomic(AtomicU64);

impl RawLock for Atomic {
    type ThreadState = ();

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        // Relaxed: this is a counter, which orders nothing.
        self.0.fetch_add(1, Ordering::Relaxed);
        section()
    }
}

#[derive(Default)]
struct Sharded;

/// Each shard has only one writer, so a load and a store are enough. Atomic, so that another thread
/// could sum the shards meanwhile.
type Shard = CachePadded<AtomicU64>;

impl RawLock for Sharded {
    type ThreadState = Box<Shard>;

    #[inline(always)]
    fn hold<R>(&self, shard: &mut Box<Shard>, section: impl FnOnce() -> R) -> R {
        shard.0.store(shard.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        section()
    }
}
