//! Test-and-set that yields the CPU between attempts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::{GrantPolicy, Lock, RawLock, each};

pub(super) fn locks() -> [Lock; 1] {
    [Lock::new(
        "tas-yield",
        GrantPolicy::BargingSpinning,
        "test-and-set, yielding the CPU between attempts",
        each(TestAndSet::default),
    )]
}

#[derive(Default)]
struct TestAndSet(AtomicBool);

impl RawLock for TestAndSet {
    type ThreadState = ();

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        // Acquire: pairs with the release below.
        while self.0.swap(true, Ordering::Acquire) {
            thread::yield_now();
        }
        let done = section();
        self.0.store(false, Ordering::Release);
        done
    }
}
