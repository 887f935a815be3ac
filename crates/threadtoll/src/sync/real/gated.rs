//! An `Arc` for builds with ThreadSanitizer.
//!
//! The standard `Arc` orders the accesses of its owners before its destructor by a fence, which
//! ThreadSanitizer does not see, so every queue would seem to be freed while in use. Here each
//! owner leaves by an acquire-release update.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A shared owner.
#[derive(Debug)]
pub(crate) struct Arc<T>(NonNull<Owned<T>>);

#[derive(Debug)]
struct Owned<T> {
    owners: AtomicUsize,
    value: T,
}

// SAFETY: as for the standard `Arc`: owners share the value, and any of them may drop it.
unsafe impl<T: Send + Sync> Send for Arc<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Arc<T> {}

impl<T> Arc<T> {
    pub(crate) fn new(value: T) -> Self {
        Arc(NonNull::from(Box::leak(Box::new(Owned { owners: AtomicUsize::new(1), value }))))
    }

    fn owned(&self) -> &Owned<T> {
        // SAFETY: alive as long as it has an owner.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Clone for Arc<T> {
    fn clone(&self) -> Self {
        self.owned().owners.fetch_add(1, Ordering::Relaxed);
        Arc(self.0)
    }
}

impl<T> Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.owned().value
    }
}

impl<T> Drop for Arc<T> {
    fn drop(&mut self) {
        if self.owned().owners.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: this is the last owner, and it has seen all accesses of the others.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}
