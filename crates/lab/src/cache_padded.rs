//! Values on cache lines of their own.

use std::ops::Deref;

/// A value that has its cache lines to itself: 128 bytes, because neighbouring lines are fetched in
/// pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);

impl<T> Deref for CachePadded<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}
