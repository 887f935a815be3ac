//! Words that a forked child finds wiped.
//!
//! `fork(2)` copies memory but not threads: in the child, the other end of every queue is a copy
//! that no thread uses, and waiting for it would never end. So the words that both ends look at
//! anyway lie on pages that the kernel gives to a child as zeros (`MADV_WIPEONFORK`, Linux 4.14),
//! and zero is a value that no living queue has: each end finds out by the look that it takes
//! anyway. Where the kernel cannot do that, an end still finds out before it waits, from its
//! process ID.

use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use crate::sync::CachePadded;

/// Bytes of address space taken from the kernel at a time.
const SLAB: usize = 1 << 16;
const LINE: usize = size_of::<CachePadded<u8>>();
/// Words with a bit for each line of a slab.
const WORDS: usize = SLAB / LINE / u64::BITS as usize;

/// True once the kernel has refused to wipe pages.
static NOT_WIPED: AtomicBool = AtomicBool::new(false);

/// The ID of this process, to tell a child from its parent where pages are not wiped; 0 where they
/// are.
pub(crate) fn process() -> u32 {
    if NOT_WIPED.load(Ordering::Relaxed) { std::process::id() } else { 0 }
}

/// All slabs, the newest first. None is ever given back to the kernel: 128 bytes for each
/// [`WipeOnFork`] that lived at the same time.
static SLABS: AtomicPtr<Slab> = AtomicPtr::new(ptr::null_mut());

/// The slab in which a line has become free last.
static LAST: AtomicPtr<Slab> = AtomicPtr::new(ptr::null_mut());

/// Pages that are wiped on fork, and which of their lines are in use. This itself is not wiped.
///
/// There is no lock here, which a thread might hold while another one forks. Each step is one
/// read-modify-write, so a child finds a list and bits that it can go on with. It loses one line
/// for each thread of its parent that was making or dropping a queue end, and the address space of
/// each slab that was not in the list yet.
struct Slab {
    lines: NonNull<u8>,
    /// A bit for each line: set while somebody has it.
    used: [AtomicU64; WORDS],
    next: *const Slab,
}

impl Slab {
    /// Takes pages from the kernel.
    fn map() -> Self {
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
        let lines = NonNull::new(start.cast::<u8>()).filter(|_| start != libc::MAP_FAILED);
        let Some(lines) = lines else {
            std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u8; SLAB]>());
        };
        // Where the kernel knows no such advice, an end looks at the process's number before it
        // waits.
        // SAFETY: exactly the pages just mapped.
        if unsafe { libc::madvise(start, SLAB, libc::MADV_WIPEONFORK) } != 0 {
            NOT_WIPED.store(true, Ordering::Relaxed);
        }
        Slab { lines, used: [const { AtomicU64::new(0) }; WORDS], next: ptr::null() }
    }

    /// A line that nobody else has, if there is one.
    fn take(&self) -> Option<NonNull<u8>> {
        for (index, word) in self.used.iter().enumerate() {
            let mut used = word.load(Ordering::Relaxed);
            while used != u64::MAX {
                let bit = used.trailing_ones();
                // Acquire: whoever had the line before is done with it.
                used = word.fetch_or(1 << bit, Ordering::Acquire);
                if used & 1 << bit == 0 {
                    let line = index * u64::BITS as usize + bit as usize;
                    // SAFETY: as many lines as there are bits are mapped.
                    return Some(unsafe { self.lines.add(line * LINE) });
                }
            }
        }
        None
    }

    /// Gives a line back.
    fn give(&self, line: NonNull<u8>) {
        let line = (line.addr().get() - self.lines.addr().get()) / LINE;
        let (index, bit) = (line / u64::BITS as usize, line % u64::BITS as usize);
        // Release: the next one who has the line writes where we have read.
        self.used[index].fetch_and(!(1 << bit), Ordering::Release);
        // Release: as in `push`.
        LAST.store(ptr::from_ref(self).cast_mut(), Ordering::Release);
    }
}

/// A line of its own on a page that is wiped on fork, and the slab that it belongs to.
fn take() -> (&'static Slab, NonNull<u8>) {
    // Acquire, here and below: the slab is seen as it was made.
    // SAFETY: null, or a slab, none of which is ever freed.
    let last = unsafe { LAST.load(Ordering::Acquire).as_ref() };
    if let Some(slab) = last
        && let Some(line) = slab.take()
    {
        return (slab, line);
    }
    let mut next = SLABS.load(Ordering::Acquire).cast_const();
    // SAFETY: as above.
    while let Some(slab) = unsafe { next.as_ref() } {
        if let Some(line) = slab.take() {
            return (slab, line);
        }
        next = slab.next;
    }
    // Several threads may come here at once, and each adds a slab: what is left of each serves all.
    let slab = Slab::map();
    let Some(line) = slab.take() else { unreachable!("a slab holds many") };
    (push(slab), line)
}

/// Adds a slab to the list.
fn push(slab: Slab) -> &'static Slab {
    let slab = Box::into_raw(Box::new(slab));
    let mut first = SLABS.load(Ordering::Relaxed);
    loop {
        // SAFETY: just made, and nobody else knows it.
        unsafe { (*slab).next = first };
        // Release: whoever finds the slab finds it made. Slabs are never taken out, so there is no
        // ABA.
        match SLABS.compare_exchange_weak(first, slab, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => break,
            Err(other) => first = other,
        }
    }
    LAST.store(slab, Ordering::Release);
    // SAFETY: never freed, and no longer changed but by atomics.
    unsafe { &*slab }
}

/// Atomics on a line of their own, which a forked child finds as zeros. `T` is made of integers for
/// which zero is a valid value.
pub(crate) struct WipeOnFork<T> {
    place: NonNull<CachePadded<T>>,
    slab: &'static Slab,
}

// SAFETY: owns a `T` and no more.
unsafe impl<T: Send> Send for WipeOnFork<T> {}
// SAFETY: gives out references to a `T` and no more.
unsafe impl<T: Sync> Sync for WipeOnFork<T> {}

impl<T> WipeOnFork<T> {
    pub(crate) fn new(value: T) -> Self {
        const { assert!(size_of::<CachePadded<T>>() == LINE, "one line") };
        const { assert!(!std::mem::needs_drop::<T>()) };
        let (slab, line) = take();
        let place: NonNull<CachePadded<T>> = line.cast();
        // SAFETY: a line of its own, aligned to a line, mapped for good, and nobody else has it.
        unsafe { place.write(CachePadded(value)) };
        WipeOnFork { place, slab }
    }
}

impl<T> Deref for WipeOnFork<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: written by `new`; wiped to zeros by a fork, which is a value of integers.
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

    /// Lines in all slabs that are in use.
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
        // More than a slab holds, together.
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
                        // Half of them are given back before the others are looked at.
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
