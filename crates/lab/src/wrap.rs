use crate::exchange::Exchange;
use crate::raw_lock::RawLock;

/// Wraps ends and locks in types of another crate, so that their loops are compiled in that crate.
pub trait Wrap: 'static {
    /// Wrapper of a mechanism's end.
    type End<E: Exchange + 'static>: Exchange + 'static;
    /// Wrapper of a lock.
    type Lock<L: RawLock>: RawLock;

    /// Wraps an end.
    fn end<E: Exchange + 'static>(end: E) -> Self::End<E>;

    /// Wraps a lock.
    fn lock<L: RawLock>(lock: L) -> Self::Lock<L>;
}

pub(crate) enum Unwrapped {}

impl Wrap for Unwrapped {
    type End<E: Exchange + 'static> = E;
    type Lock<L: RawLock> = L;

    #[inline(always)]
    fn end<E: Exchange + 'static>(end: E) -> E {
        end
    }

    #[inline(always)]
    fn lock<L: RawLock>(lock: L) -> L {
        lock
    }
}
