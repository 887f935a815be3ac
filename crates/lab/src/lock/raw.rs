//! What a lock has to be able to do in order to be measured.

/// Something that lets one thread at a time run a section of code.
pub trait RawLock: Send + Sync + Sized + 'static {
    /// State that each thread brings along, such as its node in the queue of waiting threads.
    type ThreadState: Default + Send + 'static;

    /// Runs the section while no other thread runs one.
    fn hold<R>(&self, state: &mut Self::ThreadState, section: impl FnOnce() -> R) -> R;

    /// Runs the section while no other thread runs one that it [holds](Self::hold); where the lock
    /// knows readers, others may run theirs.
    fn hold_shared<R>(&self, state: &mut Self::ThreadState, section: impl FnOnce() -> R) -> R {
        self.hold(state, section)
    }
}
