use std::sync::{Mutex, PoisonError};

use super::{GrantPolicy, Lock, RawLock, Wrap, each};

pub(super) fn locks<W: Wrap>() -> [Lock; 1] {
    [Lock::ours::<W, _>(
        "std-mutex",
        GrantPolicy::Barging,
        "std::sync::Mutex: spins briefly, then sleeps on a futex",
        each(StdMutex::default),
    )]
}

#[derive(Default)]
struct StdMutex(Mutex<()>);

impl RawLock for StdMutex {
    type ThreadState = ();

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        // Sections do not panic, and the mutex contains no data that could be left inconsistent.
        let _held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        section()
    }
}
