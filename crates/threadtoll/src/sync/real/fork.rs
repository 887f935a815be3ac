//! Words that a forked child finds wiped.
//!
//! `fork(2)` copies memory but not threads: in the child, the other end of every queue is a copy that nobody moves, and
//! whoever waits for it waits for ever. So the words that both ends look at anyway lie on pages that the kernel gives to a
//! child as zeros (`MADV_WIPEONFORK`, Linux 4.14), and zero is a value that no living queue has: each end finds out by the
//! look that it takes anyway. Where the kernel cannot do that, an end still finds out before it waits, from the number of its
//! process.

use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use super::super::Alone;

/// Bytes of address space taken from the kernel at a time.
const SLAB: usize = 1 << 16;

/// Places that are not in use. They are never given back to the kernel: 128 bytes for each queue end that lived at the
/// same time.
static FREE: Mutex<Vec<Place>> = Mutex::new(Vec::new());

/// A line of its own on a page that is wiped on fork.
struct Place(NonNull<u8>);

// SAFETY: the address of memory that is never unmapped, and that nobody uses while it is a `Place`.
unsafe impl Send for Place {}

/// Whether the kernel has refused to wipe pages.
static NOT_WIPED: AtomicBool = AtomicBool::new(false);

/// The number of this process, to tell a child from its parent where pages are not wiped; 0 where they are.
pub(crate) fn process() -> u32 {
    if NOT_WIPED.load(Ordering::Relaxed) { std::process::id() } else { 0 }
}

/// Whether what [`process`] gave was another process than this; never where pages were wiped then, which tells by itself.
pub(crate) fn is_elsewhere(process: u32) -> bool {
    process != 0 && process != std::process::id()
}

/// The free places; null if they cannot be had soon. A child that was forked while another thread held the lock finds it
/// locked for ever.
fn free() -> Option<MutexGuard<'static, Vec<Place>>> {
    for _ in 0..1000 {
        match FREE.try_lock() {
            Ok(free) => return Some(free),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}

/// Atomics on a line of their own that a forked child finds as zeros. `T` is made of integers for which zero is a value.
pub(crate) struct Kept<T> {
    place: NonNull<Alone<T>>,
}

// SAFETY: owns a `T` and no more.
unsafe impl<T: Send> Send for Kept<T> {}
// SAFETY: gives out references to a `T` and no more.
unsafe impl<T: Sync> Sync for Kept<T> {}

impl<T> Kept<T> {
    pub(crate) fn new(value: T) -> Self {
        const { assert!(size_of::<Alone<T>>() == size_of::<Alone<u8>>(), "one line") };
        const { assert!(!std::mem::needs_drop::<T>()) };
        let mut free = free();
        let place = match free.as_mut().and_then(|free| free.pop()) {
            Some(place) => place,
            None => {
                let mut fresh = slab();
                let Some(place) = fresh.pop() else { unreachable!("a slab holds many") };
                if let Some(free) = &mut free {
                    free.append(&mut fresh);
                }
                place
            }
        };
        let place: NonNull<Alone<T>> = place.0.cast();
        // SAFETY: a line of its own, aligned to a line, mapped for good, and nobody else has it.
        unsafe { place.write(Alone(value)) };
        Kept { place }
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: written by `new`; wiped to zeros by a fork, which is a value of integers.
        unsafe { self.place.as_ref() }
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        // Otherwise a line is lost, which is better than to wait long in a destructor.
        if let Some(mut free) = free() {
            free.push(Place(self.place.cast()));
        }
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

/// Takes pages from the kernel and cuts them into lines.
fn slab() -> Vec<Place> {
    // SAFETY: asks for new pages and names none of ours.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            SLAB,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u8; SLAB]>());
    }
    // Where the kernel knows no such advice, an end looks at the process's number before it waits.
    // SAFETY: exactly the pages just mapped.
    if unsafe { libc::madvise(start, SLAB, libc::MADV_WIPEONFORK) } != 0 {
        NOT_WIPED.store(true, Ordering::Relaxed);
    }
    let line = size_of::<Alone<u8>>();
    (0..SLAB / line)
        // SAFETY: inside the mapping.
        .filter_map(|index| NonNull::new(unsafe { start.cast::<u8>().add(index * line) }))
        .map(Place)
        .collect()
}
