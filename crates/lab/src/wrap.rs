//! Types with which another crate wraps ends and locks, so that their loops are compiled in that
//! crate.

use crate::exchange::Exchange;
use crate::raw_lock::RawLock;

/// Types that wrap the ends or the lock of a row: the row's loops are compiled for these types
/// instead.
pub trait Wrap: 'static {
    /// An end of a mechanism.
    type End<E: Exchange + 'static>: Exchange + 'static;
    /// A lock.
    type Lock<L: RawLock>: RawLock;

    /// Wraps an end.
    fn end<E: Exchange + 'static>(end: E) -> Self::End<E>;

    /// Wraps a lock.
    fn lock<L: RawLock>(lock: L) -> Self::Lock<L>;
}

/// Uses ends and locks as they are, without a wrapper.
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
