//! The standard library's `Mutex` and `Condvar`.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::Mechanism;
use super::condvar::{self, Monitor};

pub(super) fn mechanisms() -> [Mechanism; 2] {
    condvar::mechanisms::<StdMonitor>("std-condvar", "std Mutex and Condvar")
}

#[derive(Default)]
struct StdMonitor {
    lock: Mutex<()>,
    conditions: [Condvar; 2],
}

// Poisoning is ignored: nothing panics under the lock, and the lock guards no data.
impl Monitor for StdMonitor {
    type Guard<'a> = MutexGuard<'a, ()>;

    #[inline(always)]
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline(always)]
    fn signal(&self, condition: usize) {
        self.conditions[condition].notify_one();
    }

    #[inline(always)]
    fn wait<'a>(&'a self, condition: usize, guard: MutexGuard<'a, ()>) -> MutexGuard<'a, ()> {
        self.conditions[condition].wait(guard).unwrap_or_else(PoisonError::into_inner)
    }
}
