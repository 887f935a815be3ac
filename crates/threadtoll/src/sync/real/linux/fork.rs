//! Words that are wiped in a forked child.
//!
//! `fork(2)` copies memory but not threads. In the child, no thread uses the other end of an
//! inherited queue, so waiting for that end would never stop. Therefore, the words that both ends
//! read anyway are on pages that the kernel zeroes in a child (`MADV_WIPEONFORK`, Linux 4.14), and
//! no live queue has the value 0 there. On older kernels, an end compares process IDs before it
//! waits.

use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use crate::sync::CachePadded;

/// Size in bytes of a slab: the memory that is mapped at a time.
const SLAB: usize = 1 << 16;
const LINE: usize = size_of::<CachePadded<u8>>();
/// Number of words of a bitmap that has a bit for each line of a slab.
const WORDS: usize = SLAB / LINE / u64::BITS as usize;

/// True once the kernel has refused to wipe pages.
static NOT_WIPED: AtomicBool = AtomicBool::new(false);

/// The process ID if pages are not wiped, to distinguish a child from its parent; otherwise 0.
pub(crate) fn process() -> u32 {
    if NOT_WIPED.load(Ordering::Relaxed) { std::process::id() } else { 0 }
}

/// All slabs, the newest first. They are never unmapped, so they take 128 bytes times the largest
/// number of [`WipeOnFork`]s that were ever alive at the same time.
static SLABS: AtomicPtr<Slab> = AtomicPtr::new(ptr::null_mut());

/// The slab in which a line was last freed.
static LAST: AtomicPtr<Slab> = AtomicPtr::new(ptr::null_mut());

/// Pages that are wiped on fork, and a bitmap of their lines, which is not wiped.
///
/// There is no lock, because a thread could hold it while another one forks. Each step is a single
/// read-modify-write, so a child finds a consistent list and bitmap. The child leaks one line for
/// each thread of its parent that was creating or dropping an end, and each slab that was not in
/// the list yet.
struct Slab {
    lines: NonNull<u8>,
    /// A bit for each line, set while the line is in use.
    used: [AtomicU64; WORDS],
    next: *const Slab,
}

impl Slab {
    fn map() -> Self {
        // SAFETY: maps new pages and changes no existing mapping.
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
        let lines = NonNull::new(start.cast::<u8>()).filter(|_| start != libc::MAP_FAILED);
        let Some(lines) = lines else {
            std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u8; SLAB]>());
        };
        // If the kernel does not know this advice, ends compare process IDs before they wait.
        // SAFETY: exactly the pages just mapped.
        if unsafe { libc::madvise(start, SLAB, libc::MADV_WIPEONFORK) } != 0 {
            NOT_WIPED.store(true, Ordering::Relaxed);
        }
        Slab { lines, used: [const { AtomicU64::new(0) }; WORDS], next: ptr::null() }
    }

    /// Takes a free line, if there is one.
    fn take(&self) -> Option<NonNull<u8>> {
        for (index, word) in self.used.iter().enumerate() {
            let mut used = word.load(Ordering::Relaxed);
            while used != u64::MAX {
                let bit = used.trailing_ones();
                // Acquire: the previous owner is done with the line.
                used = word.fetch_or(1 << bit, Ordering::Acquire);
                if used & 1 << bit == 0 {
                    let line = index * u64::BITS as usize + bit as usize;
                    // SAFETY: there is a line for each bit.
                    return Some(unsafe { self.lines.add(line * LINE) });
                }
            }
        }
        None
    }

    fn give(&self, line: NonNull<u8>) {
        let line = (line.addr().get() - self.lines.addr().get()) / LINE;
        let (index, bit) = (line / u64::BITS as usize, line % u64::BITS as usize);
        // Release: the next owner overwrites what this one has read.
        self.used[index].fetch_and(!(1 << bit), Ordering::Release);
        // Release: as in `push`.
        LAST.store(ptr::from_ref(self).cast_mut(), Ordering::Release);
    }
}

/// Takes a line, and returns it with its slab.
fn take() -> (&'static Slab, NonNull<u8>) {
    // Acquire, here and below: the slab's content is visible.
    // SAFETY: null or a slab, and slabs are never freed.
    let last = unsafe { LAST.load(Ordering::Acquire).as_ref() };
    if let Some(slab) = last
        && let Some(line) = slab.take()
    {
        return (slab, line);
    }
    let mut next = SLABS.load(Ordering::Acquire).cast_const();
    // SAFETY: null or a slab, and slabs are never freed.
    while let Some(slab) = unsafe { next.as_ref() } {
        if let Some(line) = slab.take() {
            return (slab, line);
        }
        next = slab.next;
    }
    // If several threads get here at once, each adds a slab that all can use.
    let slab = Slab::map();
    let Some(line) = slab.take() else { unreachable!("a slab holds many") };
    (push(slab), line)
}

fn push(slab: Slab) -> &'static Slab {
    let slab = Box::into_raw(Box::new(slab));
    let mut first = SLABS.load(Ordering::Relaxed);
    loop {
        // SAFETY: just made, and not shared yet.
        unsafe { (*slab).next = first };
        // Release: a thread that finds the slab sees its contents. Slabs are never removed, so
        // there is no ABA problem.
        match SLABS.compare_exchange_weak(first, slab, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => break,
            Err(other) => first = other,
        }
    }
    LAST.store(slab, Ordering::Release);
    // SAFETY: never freed, and from now on changed only by atomics.
    unsafe { &*slab }
}

/// Atomics on a cache line of their own, which is zeroed in a forked child. Zero must be a valid
/// `T`.
pub(crate) struct WipeOnFork<T> {
    place: NonNull<CachePadded<T>>,
    slab: &'static Slab,
}

// SAFETY: this type owns a `T`.
unsafe impl<T: Send> Send for WipeOnFork<T> {}
// SAFETY: this type gives out references to a `T`.
unsafe impl<T: Sync> Sync for WipeOnFork<T> {}

impl<T> WipeOnFork<T> {
    pub(crate) fn new(value: T) -> Self {
        const { assert!(size_of::<CachePadded<T>>() == LINE, "one line") };
        const { assert!(!std::mem::needs_drop::<T>()) };
        let (slab, line) = take();
        let place: NonNull<CachePadded<T>> = line.cast();
        // SAFETY: an aligned line that stays mapped and is ours alone.
        unsafe { place.write(CachePadded(value)) };
        WipeOnFork { place, slab }
    }
}

impl<T> Deref for WipeOnFork<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: written by `new`, or zeroed by a fork, which is a valid value.
        unsafe { self.place.as_ref() }
    }
}

impl<T> Drop for WipeOnFork<T> {
    fn drop(&mut self) {
        self.slab.give(self.place.cast());
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for WipeOnFork<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Number of lines in use, over all slabs.
    fn used() -> u32 {
        let mut next = SLABS.load(Ordering::Acquire).cast_const();
        let mut used = 0;
        // SAFETY: null, or a slab, none of which is ever freed.
        while let Some(slab) = unsafe { next.as_ref() } {
            used +=
                slab.used.iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum::<u32>();
            next = slab.next;
        }
        used
    }

    #[test]
    fn a_line_has_one_owner_at_a_time() {
        const THREADS: u64 = 4;
        // Together more than a slab holds.
        const LINES: u64 = 300;
        thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    for round in 0..50 {
                        let number = |line| (thread << 32) + round * LINES + line;
                        let mut lines: Vec<_> = (0..LINES)
                            .map(|line| WipeOnFork::new(AtomicU64::new(number(line))))
                            .collect();
                        thread::yield_now();
                        // Half of them are freed before the others are checked.
                        lines.truncate(LINES as usize / 2);
                        for (line, kept) in (0..).zip(&lines) {
                            assert_eq!(kept.load(Ordering::Relaxed), number(line));
                        }
                    }
                });
            }
        });
        assert!(used() < (THREADS * LINES) as u32, "lines are lost: {}", used());
    }
}
