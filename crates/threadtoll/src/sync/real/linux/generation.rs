//! A number that tells a forked child from its parent, for channels that are too short-lived for a
//! word of their own that the kernel wipes. Reading it takes no system call.
//!
//! A child that `clone(2)` makes without the C library's `fork` keeps its parent's number, because
//! the handler does not run in it.

use std::sync::atomic::{AtomicU32, Ordering};

/// Number of forks from the first process that asked to this one, plus 1; 0 if nobody has asked.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// A number that a forked child does not share with its parent.
#[inline]
pub(crate) fn generation() -> u32 {
    match GENERATION.load(Ordering::Relaxed) {
        0 => begin(),
        generation => generation,
    }
}

#[cold]
fn begin() -> u32 {
    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
    // If memory for the handler is lacking, a child that waits for its parent is not told so. If
    // two threads get here at once, a child adds 2, which is as good.
    // SAFETY: the handler only adds to a number, which is allowed in any child.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    // After the registration, so that every fork after this thread's first channel is counted.
    match GENERATION.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => 1,
        Err(generation) => generation,
    }
}
