//! Drops many values whose destructors may panic. Each is dropped once, and the first panic is
//! resumed afterwards.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The first panic that was caught.
#[derive(Default)]
pub(crate) struct FirstPanic(Option<Box<dyn Any + Send>>);

impl FirstPanic {
    pub(crate) fn drop<T>(&mut self, value: T) {
        if !std::mem::needs_drop::<T>() {
            return;
        }
        // Nobody can observe the half-dropped value, because it is not used again.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
            match self.0 {
                // Forgotten, because the payload's own destructor may panic.
                Some(_) => std::mem::forget(payload),
                None => self.0 = Some(payload),
            }
        }
    }

    /// Resumes the first panic, if there was one, unless this thread is already panicking.
    pub(crate) fn resume(self) {
        match self.0 {
            Some(payload) if !std::thread::panicking() => resume_unwind(payload),
            Some(payload) => std::mem::forget(payload),
            None => {}
        }
    }
}
