//! Interface to the standard library, loom or shuttle: atomics, cells, futexes, barriers, time.
//!
//! Everything that two threads access comes from here, so that a model checker sees it. A build
//! with `--cfg threadtoll_loom` or `--cfg threadtoll_shuttle` uses the checker's types.

#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
mod real;
#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
pub(crate) use real::*;

#[cfg(any(threadtoll_loom, threadtoll_shuttle))]
mod modelled;
#[cfg(any(threadtoll_loom, threadtoll_shuttle))]
pub(crate) use modelled::*;

/// A value on cache lines of its own: 128 bytes, because the adjacent-line prefetcher of x86, and
/// some AArch64 cores, move pairs of lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);

impl<T> std::ops::Deref for CachePadded<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}
