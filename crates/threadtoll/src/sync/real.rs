//! The standard library's types, and the interface to the operating system.
//!
//! `linux.rs` uses the kernel to sleep, to execute barriers and to recognise a forked child;
//! `portable.rs` does all that without the kernel. On Linux, too, it is used by Miri, which knows
//! few system calls, and by a build with `--cfg threadtoll_portable`, so that the tests cover it.

#[cfg(target_os = "linux")]
mod eventfd;
#[cfg(all(target_os = "linux", not(any(threadtoll_portable, miri))))]
mod linux;
#[cfg(not(all(target_os = "linux", not(any(threadtoll_portable, miri)))))]
mod portable;
#[cfg(test)]
mod tests;
#[cfg(all(target_os = "linux", feature = "mio"))]
mod timerfd;

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::thread::{Thread, current as current_thread, yield_now};
pub(crate) use std::time::Instant;

#[cfg(target_os = "linux")]
pub(crate) use eventfd::EventFd;
#[cfg(all(target_os = "linux", not(any(threadtoll_portable, miri))))]
pub(crate) use linux::*;
#[cfg(not(all(target_os = "linux", not(any(threadtoll_portable, miri)))))]
pub(crate) use portable::*;
#[cfg(all(target_os = "linux", feature = "mio"))]
pub(crate) use timerfd::TimerFd;

use std::cell::Cell;
use std::sync::atomic::compiler_fence;
use std::time::Duration;

/// A cell with loom's interface.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    #[inline(always)]
    pub(crate) fn with<R>(&self, body: impl FnOnce(*const T) -> R) -> R {
        body(self.0.get())
    }

    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, body: impl FnOnce(*mut T) -> R) -> R {
        body(self.0.get())
    }
}

/// Allocates a value; see [`free_boxed`].
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

/// Says that nothing uses this word from now on. Models check it.
#[inline(always)]
pub(crate) fn retire(_: &AtomicU32) {}

/// Marks code that a model can break on purpose, to check that the model notices;
/// `docs/dev/verification.md` lists the names. `mutate!(name, Release)` is `Ordering::Release`, or
/// `Relaxed` if broken. `mutate!(name, shipped => broken)` is `shipped`, or `broken` if broken.
macro_rules! mutate {
    ($name:ident, $ordering:ident) => {
        crate::sync::Ordering::$ordering
    };
    ($name:ident, $shipped:expr => $broken:expr) => {
        $shipped
    };
}
pub(crate) use mutate;

/// Makes a function `const`, except in models: a checker cannot create its atomics at compile time.
macro_rules! constant {
    ($(#[$meta:meta])* $vis:vis fn $($rest:tt)*) => {
        $(#[$meta])* $vis const fn $($rest)*
    };
}
pub(crate) use constant;

/// The cheap side of an asymmetric barrier. It only keeps the compiler from reordering the store
/// before it and the load after it. The other side calls [`request_barrier`], which makes the CPU
/// keep their order. If [`senders_must_fence`] returns `true`, the caller executes a full fence
/// next.
#[inline(always)]
pub(crate) fn light_barrier() {
    compiler_fence(Ordering::SeqCst);
}

#[inline(always)]
pub(crate) fn prefetch<T>(place: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch of any address affects only the caches.
    unsafe {
        std::arch::asm!("prefetcht0 [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: a prefetch of any address affects only the caches.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = place;
}

#[inline(always)]
pub(crate) fn prefetch_to_write<T>(place: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch of any address affects only the caches; CPUs without the instruction treat
    // it as a nop.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: a prefetch of any address affects only the caches.
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = place;
}

/// A number that no other thread has or had; not 0.
#[inline]
pub(crate) fn this_thread() -> usize {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static NUMBER: Cell<usize> = const { Cell::new(0) });
    if NUMBER.get() == 0 {
        NUMBER.set(LAST.fetch_add(1, Ordering::Relaxed) + 1);
    }
    NUMBER.get()
}

/// Sleeps until [`unpark_thread`] is called for this thread, which is the current one. May return
/// earlier.
pub(crate) fn park_thread(_: &Thread) {
    std::thread::park();
}

pub(crate) fn unpark_thread(thread: Thread) {
    thread.unpark();
}

pub(crate) fn nap(time: Duration) {
    std::thread::sleep(time);
}

/// Returns `true` if `process`, from [`process`], is not this process. Always `false` if the kernel
/// wipes memory on a fork, or if the system has no fork.
pub(crate) fn is_other_process(process: u32) -> bool {
    process != 0 && process != std::process::id()
}
