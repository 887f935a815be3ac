//! The locks of `parking_lot`: its mutex as it comes and always fair, and its lock for readers and
//! writers.

use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::mechanism::Unavailable;

use super::RawLock;

pub(super) struct ParkingLot(Mutex<()>);

impl RawLock for ParkingLot {
    type Seat = ();

    fn make(count: usize) -> Result<Vec<Self>, Unavailable> {
        Ok((0..count).map(|_| ParkingLot(Mutex::new(()))).collect())
    }

    fn seat(&self) {}

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        let _held = self.0.lock();
        section()
    }
}

/// Let go of with `unlock_fair`: a sleeping thread is handed the lock before it wakes, and nobody
/// can take it meanwhile.
pub(super) struct Fair(Mutex<()>);

impl RawLock for Fair {
    type Seat = ();

    fn make(count: usize) -> Result<Vec<Self>, Unavailable> {
        Ok((0..count).map(|_| Fair(Mutex::new(()))).collect())
    }

    fn seat(&self) {}

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        let held = self.0.lock();
        let done = section();
        MutexGuard::unlock_fair(held);
        done
    }
}

pub(super) struct Readers(RwLock<()>);

impl RawLock for Readers {
    type Seat = ();

    fn make(count: usize) -> Result<Vec<Self>, Unavailable> {
        Ok((0..count).map(|_| Readers(RwLock::new(()))).collect())
    }

    fn seat(&self) {}

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        let _held = self.0.write();
        section()
    }

    #[inline(always)]
    fn share<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        let _held = self.0.read();
        section()
    }
}
