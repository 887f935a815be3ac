use std::sync::{PoisonError, RwLock};

use super::{GrantPolicy, Lock, RawLock, Wrap, each};

pub(super) fn locks<W: Wrap>() -> [Lock; 1] {
    [Lock::ours::<W, _>(
        "std-rwlock",
        GrantPolicy::Barging,
        "std::sync::RwLock: readers share it",
        each(StdRwLock::default),
    )
    .with_readers()]
}

#[derive(Default)]
struct StdRwLock(RwLock<()>);

impl RawLock for StdRwLock {
    type ThreadState = ();

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        // Sections do not panic, and the lock contains no data that could be left inconsistent.
        let _held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        section()
    }

    #[inline(always)]
    fn hold_shared<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        let _held = self.0.read().unwrap_or_else(PoisonError::into_inner);
        section()
    }
}
