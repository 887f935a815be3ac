//! The real thing.

mod fork;
#[cfg(tsan)]
mod gated;
#[cfg(test)]
mod litmus;
mod membarrier;

pub(crate) use std::hint::spin_loop;
#[cfg(not(tsan))]
pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub(crate) use std::thread::yield_now;
pub(crate) use std::time::Instant;

pub(crate) use fork::{Kept, is_elsewhere, process};
#[cfg(tsan)]
pub(crate) use gated::Arc;
pub(crate) use membarrier::{heavy_barrier, senders_must_fence};

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

/// A place that the models can break, to see whether they would notice: `docs/verification.md` lists them.
/// `mutate!(name, Release)` is `Ordering::Release`, which a model can make `Relaxed`; `mutate!(name, shipped => broken)` is
/// `shipped`.
macro_rules! mutate {
    ($name:ident, $ordering:ident) => {
        crate::sync::Ordering::$ordering
    };
    ($name:ident, $shipped:expr => $broken:expr) => {
        $shipped
    };
}
pub(crate) use mutate;

/// The cheap half of the asymmetric barrier of `membarrier(2)`: only the compiler keeps the order of the store before it and
/// the load after it. The CPU is made to keep it by [`heavy_barrier`] of the other side, at that side's expense.
#[inline(always)]
pub(crate) fn light_barrier() {
    compiler_fence(Ordering::SeqCst);
}

/// Asks for a cache line in order to write to it soon.
#[inline(always)]
pub(crate) fn prefetch_to_write<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address has no effect but on the caches; CPUs without the instruction treat it as a nop.
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

/// Sleeps while `word` has the value `expected`, for at most `timeout`; returns early for any reason. `futex(2)`.
pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
    let limit = timeout.map(|timeout| libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: word and limit are valid for the whole call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            limit,
        )
    };
}

/// Wakes every thread that sleeps on `word`.
pub(crate) fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word is valid for the whole call.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, i32::MAX)
    };
}

/// The only CPU on which the calling thread may run, if there is only one.
pub(crate) fn only_cpu() -> Option<u32> {
    // SAFETY: a cpu_set_t is plain bits, for which all zeros is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is valid, and its size is told. Machines with more CPUs than it holds refuse, and have more than one.
    let failed = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) } != 0;
    // SAFETY: the set was filled in.
    if failed || unsafe { libc::CPU_COUNT(&set) } != 1 {
        return None;
    }
    // SAFETY: the set was filled in, and the index is inside it.
    (0..libc::CPU_SETSIZE as u32).find(|cpu| unsafe { libc::CPU_ISSET(*cpu as usize, &set) })
}
