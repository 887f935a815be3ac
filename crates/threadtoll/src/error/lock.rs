//! Errors of the [lock](crate::lock).

use std::error::Error;
use std::fmt;

/// Error of [`Mutex::lock_bounded`](crate::lock::Mutex::lock_bounded): enough threads wait already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// Number of threads that were waiting.
    pub queue: usize,
}

/// Error of [`Mutex::lock_timeout`](crate::lock::Mutex::lock_timeout) and
/// [`Mutex::lock_deadline`](crate::lock::Mutex::lock_deadline): the lock was not acquired in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockTimeoutError;

/// Error of [`Mutex::lock_bounded_timeout`](crate::lock::Mutex::lock_bounded_timeout).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockBoundedTimeoutError {
    /// Enough threads wait already.
    Full {
        /// Number of threads that were waiting.
        queue: usize,
    },
    /// The lock was not acquired in time.
    Timeout,
}

impl LockBoundedTimeoutError {
    /// Returns `true` if enough threads were waiting already.
    pub fn is_full(&self) -> bool {
        matches!(self, LockBoundedTimeoutError::Full { .. })
    }

    /// Returns `true` if the lock was not acquired in time.
    pub fn is_timeout(&self) -> bool {
        matches!(self, LockBoundedTimeoutError::Timeout)
    }
}

impl From<Full> for LockBoundedTimeoutError {
    fn from(Full { queue }: Full) -> Self {
        LockBoundedTimeoutError::Full { queue }
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.queue {
            1 => f.write_str("1 thread waits for the lock already"),
            queue => write!(f, "{queue} threads wait for the lock already"),
        }
    }
}

impl fmt::Display for LockTimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("timed out waiting for the lock")
    }
}

impl fmt::Display for LockBoundedTimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            LockBoundedTimeoutError::Full { queue } => Full { queue }.fmt(f),
            LockBoundedTimeoutError::Timeout => LockTimeoutError.fmt(f),
        }
    }
}

impl Error for Full {}
impl Error for LockTimeoutError {}
impl Error for LockBoundedTimeoutError {}
