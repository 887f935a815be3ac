//! The standard library's `RwLock`.

use std::sync::{PoisonError, RwLock};

use crate::mechanism::Unavailable;

use super::RawLock;

pub(super) struct StdRwLock(RwLock<()>);

impl RawLock for StdRwLock {
    type Seat = ();

    fn make(count: usize) -> Result<Vec<Self>, Unavailable> {
        Ok((0..count).map(|_| StdRwLock(RwLock::new(()))).collect())
    }

    fn seat(&self) {}

    #[inline(always)]
    fn hold<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        // No section panics; if one did, there is no data that it could leave unsound.
        let _held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        section()
    }

    #[inline(always)]
    fn share<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        let _held = self.0.read().unwrap_or_else(PoisonError::into_inner);
        section()
    }
}
