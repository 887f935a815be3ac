//! The locks of `parking_lot`: its mutex with default and with fair unlocking, and its
//! reader-writer lock.

use parking_lot::{Mutex, MutexGuard, RwLock};

use super::{GrantPolicy, Lock, RawLock, Wrap, each};

pub(super) fn locks<W: Wrap>() -> [Lock; 3] {
    [
        Lock::ours::<W, _>(
            "parking-lot",
            GrantPolicy::Barging,
            "parking_lot::Mutex: spins and yields, then parks; fair now and then",
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

/// Released with `unlock_fair`: a sleeping thread is given the lock before it wakes up, so that no
/// other thread can take it in the meantime.
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
