//! Test-and-test-and-set (L. Rudolph and Z. Segall, 1984): a waiting thread reads until the lock
//! looks free, and only then tries to take it.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{GrantPolicy, Lock, RawLock, Wrap, each};

pub(super) fn locks<W: Wrap>() -> [Lock; 1] {
    [Lock::ours::<W, _>(
        "spin",
        GrantPolicy::BargingSpinning,
        "test-and-test-and-set: never sleeps, and serves whoever gets there first",
        each(Spin::default),
    )]
}

#[derive(Default)]
struct Spin(AtomicBool);

impl RawLock for Spin {
    type ThreadState = ();

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        // Acquire: pairs with the store below, so this section sees the writes of the previous one.
        while self.0.swap(true, Ordering::Acquire) {
            while self.0.load(Ordering::Relaxed) {
                spin_loop();
            }
        }
        let done = section();
        self.0.store(false, Ordering::Release);
        done
    }
}
