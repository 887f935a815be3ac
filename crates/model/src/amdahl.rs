//! Amdahl's law: a lower bound, often mistaken for a prediction.
//!
//! The law assumes that all threads request the lock at the same moment, again and again. Real
//! threads work while another one holds the lock.
//!
//! Source: G. M. Amdahl, *Validity of the single processor approach to achieving large scale
//! computing capabilities*, AFIPS 1967. N. J. Gunther, *A general theory of computational
//! scalability based on rational functions*, arXiv:0808.1431, 2008, proves the law to be the
//! synchronous throughput of the repairman model.

use crate::error::{MAX_LOCKS, number, threads as checked_threads};
use crate::{Load, ModelError};

/// Speed-up of `threads` threads by Amdahl's law. The serial share is the [hold
/// share](Load::hold_share) of one thread, divided by the number of `locks`.
///
/// ```
/// use threadtoll_model::{Load, amdahl};
///
/// let load = Load::new(1.0, 1.0)?;
/// assert_eq!(amdahl::speedup(load, 4, 1)?, 1.6);
/// # Ok::<(), threadtoll_model::ModelError>(())
/// ```
///
/// # Errors
///
/// If a number is zero.
pub fn speedup(load: Load, threads: u32, locks: u32) -> Result<f64, ModelError> {
    let n = f64::from(checked_threads(threads)?);
    let serial = load.hold_share() / f64::from(number("locks", locks, MAX_LOCKS)?);
    Ok(n / (1.0 + serial * (n - 1.0)))
}
