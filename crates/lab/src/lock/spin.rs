//! Test-and-test-and-set (L. Rudolph and Z. Segall, 1984): a waiting thread reads until the lock
//! looks free, and only then tries to take it.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::mechanism::Unavailable;

use super::RawLock;

pub(super) struct Spin(AtomicBool);

impl RawLock for Spin {
    type Seat = ();

    fn make(count: usize) -> Result<Vec<Self>, Unavailable> {
        Ok((0..count).map(|_| Spin(AtomicBool::new(false))).collect())
    }

    fn seat(&self) {}

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        // Acquire: pairs with the store below, so that this section sees what the one before it
        // wrote.
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
