/// Mutual exclusion for a section of code.
pub trait RawLock: Send + Sync + Sized + 'static {
    /// State owned by each thread, such as its node in the queue of waiting threads.
    type ThreadState: Default + Send + 'static;

    /// Runs the section under mutual exclusion.
    fn hold<R>(&self, state: &mut Self::ThreadState, section: impl FnOnce() -> R) -> R;

    /// Runs the section. If the lock supports readers, other shared sections may run at the same
    /// time, but never a section that [`hold`](Self::hold) runs.
    fn hold_shared<R>(&self, state: &mut Self::ThreadState, section: impl FnOnce() -> R) -> R {
        self.hold(state, section)
    }

    /// Runs the section under mutual exclusion, or returns `None` if `bound` threads wait already.
    /// Called only if the lock is [marked](crate::lock::Lock::with_own_bound) as one that refuses.
    fn hold_bounded<R>(
        &self,
        state: &mut Self::ThreadState,
        _bound: u32,
        section: impl FnOnce() -> R,
    ) -> Option<R> {
        Some(self.hold(state, section))
    }

    /// Number of threads that wait for the lock at this moment, if the lock itself counts them.
    #[inline(always)]
    fn queue_len(&self) -> Option<u64> {
        None
    }
}
