//! Twins: copies of our rows whose loops are compiled in another crate, as those of foreign rows
//! are.
//!
//! A row and its twin have the same source, so the ratio between the two should be 1. Its deviation
//! from 1 limits the accuracy of ratios to foreign rows. Only `ci/long/twins.sh` measures twins.

use crate::lock::{self, Lock};
use crate::mechanism::{Mechanism, atomic, futex};

pub use crate::wrap::Wrap;

/// Name of a row's twin.
pub fn name(of: &str) -> String {
    format!("{of}-twin")
}

/// Twins of the mechanisms with which others are compared.
pub fn mechanisms<W: Wrap>() -> Vec<Mechanism> {
    let mut all = vec![atomic::store::<W>(), futex::futex::<W>()];
    all.iter_mut().for_each(|own| own.name = name(&own.name));
    all
}

/// Twins of all locks.
pub fn locks<W: Wrap>() -> Vec<Lock> {
    let mut all = lock::wrapped::<W>();
    all.iter_mut().for_each(|own| own.name = name(&own.name));
    all
}

/// Addresses of the measured loops, for a test that a row and its twin do not share them.
pub mod loops {
    use threadtoll_record::{Layout, Pause};

    use crate::error::Unavailable;
    use crate::exchange::Ends;
    use crate::lock::{Lock, LockSpec};
    use crate::mechanism::{Mechanism, Settings};

    /// Addresses of the loops of a mechanism's ends.
    ///
    /// # Errors
    ///
    /// If the machine refuses a resource.
    pub fn of_mechanism(mechanism: &Mechanism, pause: Pause) -> Result<Vec<usize>, Unavailable> {
        let settings = Settings { payload_bytes: 8, layout: Layout::Own, pause };
        let Ends { lead, follow } = mechanism.make(&settings)?;
        Ok(std::iter::once(lead.code()).chain(follow.map(|follow| follow.code())).collect())
    }

    /// Addresses of the loops of a lock.
    ///
    /// # Errors
    ///
    /// If the machine refuses a resource.
    pub fn of_lock(lock: &Lock) -> Result<Vec<usize>, Unavailable> {
        let spec = LockSpec { lock: Some(lock.clone()), stripes: 1 };
        Ok(spec.contenders(1)?.iter().flat_map(|contender| contender.code()).collect())
    }
}
