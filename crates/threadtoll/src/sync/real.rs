//! The real thing: what the standard library offers everywhere, and the seam to the operating
//! system.
//!
//! `linux.rs` asks the kernel to sleep, to order and to tell a forked child; `portable.rs` does
//! without. A build with `--cfg threadtoll_portable` takes the second one on Linux too, so that all
//! tests can run on it.

#[cfg(threadtoll_tsan)]
mod gated;
#[cfg(all(target_os = "linux", not(threadtoll_portable)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(threadtoll_portable))))]
mod portable;
#[cfg(test)]
mod tests;

pub(crate) use std::hint::spin_loop;
#[cfg(not(threadtoll_tsan))]
pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::thread::yield_now;
pub(crate) use std::time::Instant;

#[cfg(threadtoll_tsan)]
pub(crate) use gated::Arc;
#[cfg(all(target_os = "linux", not(threadtoll_portable)))]
pub(crate) use linux::*;
#[cfg(not(all(target_os = "linux", not(threadtoll_portable))))]
pub(crate) use portable::*;

use std::sync::atomic::compiler_fence;
use std::time::Duration;

/// A cell whose content is reached through closures, as loom wants it.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, body: impl FnOnce(*mut T) -> R) -> R {
        body(self.0.get())
    }
}

/// Moves a value to a place of its own.
pub(crate) fn boxed<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// Frees what came from [`boxed`].
///
/// # Safety
///
/// As for [`Box::from_raw`].
pub(crate) unsafe fn free_boxed<T>(place: *mut T) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(place) });
}

/// A place that the models can break, to check that they would notice: `docs/verification.md` lists
/// them. `mutate!(name, Release)` is `Ordering::Release`, which a model can make `Relaxed`;
/// `mutate!(name, shipped => broken)` is `shipped`.
macro_rules! mutate {
    ($name:ident, $ordering:ident) => {
        crate::sync::Ordering::$ordering
    };
    ($name:ident, $shipped:expr => $broken:expr) => {
        $shipped
    };
}
pub(crate) use mutate;

/// The cheap half of an asymmetric barrier: only the compiler keeps the order of the store before
/// it and the load after it. [`heavy_barrier`] on the other side makes the CPU keep it, at that
/// side's expense. Where [`senders_must_fence`], a full fence follows.
#[inline(always)]
pub(crate) fn light_barrier() {
    compiler_fence(Ordering::SeqCst);
}

/// Asks for a cache line in order to read it soon.
#[inline(always)]
pub(crate) fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address affects nothing but the caches.
    unsafe {
        std::arch::asm!("prefetcht0 [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}

/// Asks for a cache line in order to write to it soon.
#[inline(always)]
pub(crate) fn prefetch_to_write<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address affects nothing but the caches; CPUs without the
    // instruction treat it as a nop.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}

/// Sleeps for that long.
pub(crate) fn nap(time: Duration) {
    std::thread::sleep(time);
}

/// Returns `true` if `process`, as returned by [`process`], is not this process. Always `false`
/// where the kernel wipes memory on a fork, or where nothing forks.
pub(crate) fn is_other_process(process: u32) -> bool {
    process != 0 && process != std::process::id()
}
