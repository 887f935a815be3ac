//! The standard library's `Mutex`.

use std::sync::{Mutex, PoisonError};

use crate::mechanism::Unavailable;

use super::RawLock;

pub(super) struct StdMutex(Mutex<()>);

impl RawLock for StdMutex {
    type Seat = ();

    fn make(count: usize) -> Result<Vec<Self>, Unavailable> {
        Ok((0..count).map(|_| StdMutex(Mutex::new(()))).collect())
    }

    fn seat(&self) {}

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        // No section panics; if one did, there is no data that it could leave unsound.
        let _held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        section()
    }
}
