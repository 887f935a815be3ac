//! Dropping many values when some panic: each is dropped once, and the first panic resumes
//! afterwards.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The first panic of those that were caught.
#[derive(Default)]
pub(crate) struct FirstPanic(Option<Box<dyn Any + Send>>);

impl FirstPanic {
    pub(crate) fn drop<T>(&mut self, value: T) {
        if !std::mem::needs_drop::<T>() {
            return;
        }
        // The value is given up whatever its destructor does, so nobody can see it half dropped.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
            match self.0 {
                // The payload of a later panic may panic in its own destructor; it is forgotten.
                Some(_) => std::mem::forget(payload),
                None => self.0 = Some(payload),
            }
        }
    }

    /// Lets the panic go on, unless this thread is panicking already.
    pub(crate) fn resume(self) {
        match self.0 {
            Some(payload) if !std::thread::panicking() => resume_unwind(payload),
            Some(payload) => std::mem::forget(payload),
            None => {}
        }
    }
}
