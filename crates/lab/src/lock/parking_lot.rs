use parking_lot::{Mutex, MutexGuard, RwLock};

use super::{GrantPolicy, Lock, RawLock, Wrap, each};

pub(super) fn locks<W: Wrap>() -> [Lock; 3] {
    [
        Lock::ours::<W, _>(
            "parking-lot",
            GrantPolicy::Barging,
            "parking_lot::Mutex: spins and yields, then parks; occasionally fair",
            each(ParkingLot::default),
        ),
        Lock::ours::<W, _>(
            "parking-lot-fair",
            GrantPolicy::InOrder,
            "parking_lot::Mutex, always handed to the longest waiter",
            each(Fair::default),
        ),
        Lock::ours::<W, _>(
            "parking-lot-rwlock",
            GrantPolicy::Barging,
            "parking_lot::RwLock: readers share it",
            each(Readers::default),
        )
        .with_readers(),
    ]
}

#[derive(Default)]
struct ParkingLot(Mutex<()>);

impl RawLock for ParkingLot {
    type ThreadState = ();

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        let _held = self.0.lock();
        section()
    }
}

/// `unlock_fair` gives the lock to a sleeping thread before that thread wakes up, so no other
/// thread can take the lock meanwhile.
#[derive(Default)]
struct Fair(Mutex<()>);

impl RawLock for Fair {
    type ThreadState = ();

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        let held = self.0.lock();
        let done = section();
        MutexGuard::unlock_fair(held);
        done
    }
}

#[derive(Default)]
struct Readers(RwLock<()>);

impl RawLock for Readers {
    type ThreadState = ();

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        let _held = self.0.write();
        section()
    }

    #[inline(always)]
    fn hold_shared<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        let _held = self.0.read();
        section()
    }
}
