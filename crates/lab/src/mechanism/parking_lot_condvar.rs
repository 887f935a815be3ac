//! The `parking_lot` crate's `Mutex` and `Condvar`.

use parking_lot::{Condvar, Mutex};

use super::condvar::{Monitor, ends};
use super::{Class, Ends, Mechanism, Settings, Unavailable};

pub(super) fn mechanisms() -> [Mechanism; 2] {
    [
        Mechanism::new(
            "parking-lot-condvar",
            Class::Sleep,
            "parking_lot Mutex and Condvar, signalled while the lock is held",
            make::<false>,
        ),
        Mechanism::new(
            "parking-lot-condvar-after",
            Class::Sleep,
            "parking_lot Mutex and Condvar, signalled after unlocking",
            make::<true>,
        ),
    ]
}

fn make<const AFTER: bool>(settings: &Settings) -> Result<Ends, Unavailable> {
    Ok(ends::<_, AFTER>(ParkingLot::default(), settings))
}

#[derive(Default)]
struct ParkingLot {
    lock: Mutex<()>,
    conditions: [Condvar; 2],
}

impl Monitor for ParkingLot {
    #[inline(always)]
    fn change(&self, condition: usize, after: bool, change: impl FnOnce()) {
        let guard = self.lock.lock();
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
        let mut guard = self.lock.lock();
        while !ready() {
            self.conditions[condition].wait(&mut guard);
        }
        take()
    }
}
