use threadtoll::lock::Mutex;

use super::{GrantPolicy, Lock, RawLock, Wrap, each};

pub(super) fn locks<W: Wrap>() -> [Lock; 2] {
    [
        Lock::ours::<W, _>(
            "threadtoll",
            GrantPolicy::Barging,
            "threadtoll::lock::Mutex: counts its waiters, of which none starves",
            each(|| Counted(Mutex::new(()))),
        )
        .that_counts_its_waiters()
        .with_own_bound(),
        Lock::ours::<W, _>(
            "threadtoll-fair",
            GrantPolicy::InOrder,
            "threadtoll::lock::Mutex, always handed to the thread that sleeps longest",
            each(|| Counted(Mutex::fair(()))),
        )
        .that_counts_its_waiters()
        .with_own_bound(),
    ]
}

struct Counted(Mutex<()>);

impl RawLock for Counted {
    type ThreadState = ();

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        let _held = self.0.lock();
        section()
    }

    #[inline(always)]
    fn hold_bounded<R>(&self, (): &mut (), bound: u32, section: impl FnOnce() -> R) -> Option<R> {
        let _held = self.0.lock_bounded(bound as usize).ok()?;
        Some(section())
    }

    #[inline(always)]
    fn queue_len(&self) -> Option<u64> {
        Some(self.0.queue_len() as u64)
    }
}
