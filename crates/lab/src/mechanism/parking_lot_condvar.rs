//! The `parking_lot` crate's `Mutex` and `Condvar`.

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Mechanism;
use super::condvar::{self, Monitor};

pub(super) fn mechanisms() -> [Mechanism; 2] {
    condvar::mechanisms::<ParkingLot>("parking-lot-condvar", "parking_lot Mutex and Condvar")
}

#[derive(Default)]
struct ParkingLot {
    lock: Mutex<()>,
    conditions: [Condvar; 2],
}

impl Monitor for ParkingLot {
    type Guard<'a> = MutexGuard<'a, ()>;

    #[inline(always)]
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock()
    }

    #[inline(always)]
    fn signal(&self, condition: usize) {
        self.conditions[condition].notify_one();
    }

    #[inline(always)]
    fn wait<'a>(&'a self, condition: usize, mut guard: MutexGuard<'a, ()>) -> MutexGuard<'a, ()> {
        self.conditions[condition].wait(&mut guard);
        guard
    }
}
