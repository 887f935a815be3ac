//! The standard library's `Mutex` and `Condvar`.

use std::sync::{Condvar, Mutex, PoisonError};

use super::condvar::{Monitor, ends};
use super::{Class, Ends, Mechanism, Settings, Unavailable};

pub(super) fn mechanisms() -> [Mechanism; 2] {
    [
        Mechanism::new(
            "std-condvar",
            Class::Sleep,
            "std Mutex and Condvar, signalled while the lock is held",
            make::<false>,
        ),
        Mechanism::new(
            "std-condvar-after",
            Class::Sleep,
            "std Mutex and Condvar, signalled after unlocking",
            make::<true>,
        ),
    ]
}

fn make<const AFTER: bool>(settings: &Settings) -> Result<Ends, Unavailable> {
    Ok(ends::<_, AFTER>(StdMonitor::default(), settings))
}

#[derive(Default)]
struct StdMonitor {
    lock: Mutex<()>,
    conditions: [Condvar; 2],
}

impl Monitor for StdMonitor {
    #[inline(always)]
    fn change(&self, condition: usize, after: bool, change: impl FnOnce()) {
        // Nothing panics under the lock, and the data would be consistent even if it did.
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        change();
        if after {
            drop(guard);
            self.conditions[condition].notify_one();
        } else {
            self.conditions[condition].notify_one();
            drop(guard);
        }
    }

    #[inline(always)]
    fn wait<T>(
        &self,
        condition: usize,
        mut ready: impl FnMut() -> bool,
        take: impl FnOnce() -> T,
    ) -> T {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while !ready() {
            guard = self.conditions[condition].wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        let taken = take();
        drop(guard);
        taken
    }
}
