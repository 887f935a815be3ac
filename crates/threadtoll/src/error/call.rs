//! Errors of the [call](crate::call).

use std::error::Error;
use std::fmt;

/// Error of [`Caller::call`](crate::call::Caller::call).
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError<Q> {
    /// The callee is gone and never received the request, which is returned.
    Disconnected(Q),
    /// The callee received the request and will not answer it.
    Unanswered,
}

impl<Q> CallError<Q> {
    /// The request, if it was returned.
    pub fn into_inner(self) -> Option<Q> {
        match self {
            CallError::Disconnected(request) => Some(request),
            CallError::Unanswered => None,
        }
    }

    /// Returns `true` if the callee is gone and never received the request.
    pub fn is_disconnected(&self) -> bool {
        matches!(self, CallError::Disconnected(_))
    }

    /// Returns `true` if the callee received the request and will not answer it.
    pub fn is_unanswered(&self) -> bool {
        matches!(self, CallError::Unanswered)
    }
}

/// Error of [`Caller::call_timeout`](crate::call::Caller::call_timeout) and
/// [`Caller::call_deadline`](crate::call::Caller::call_deadline).
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallTimeoutError<Q> {
    /// The callee is gone and never received the request, which is returned.
    Disconnected(Q),
    /// The callee received the request and will not answer it.
    Unanswered,
    /// There was no answer in time.
    ///
    /// Contains the request if it was not sent, because no time was left or an earlier request that
    /// had timed out was still pending. Contains `None` if the callee has received the request or
    /// may still receive it; the answer will then be dropped.
    Timeout(Option<Q>),
}

impl<Q> CallTimeoutError<Q> {
    /// The request, if it was returned.
    pub fn into_inner(self) -> Option<Q> {
        match self {
            CallTimeoutError::Disconnected(request) => Some(request),
            CallTimeoutError::Unanswered => None,
            CallTimeoutError::Timeout(request) => request,
        }
    }

    /// Returns `true` if the callee is gone and never received the request.
    pub fn is_disconnected(&self) -> bool {
        matches!(self, CallTimeoutError::Disconnected(_))
    }

    /// Returns `true` if the callee received the request and will not answer it.
    pub fn is_unanswered(&self) -> bool {
        matches!(self, CallTimeoutError::Unanswered)
    }

    /// Returns `true` if there was no answer in time.
    pub fn is_timeout(&self) -> bool {
        matches!(self, CallTimeoutError::Timeout(_))
    }
}

impl<Q> From<CallError<Q>> for CallTimeoutError<Q> {
    fn from(error: CallError<Q>) -> Self {
        match error {
            CallError::Disconnected(request) => CallTimeoutError::Disconnected(request),
            CallError::Unanswered => CallTimeoutError::Unanswered,
        }
    }
}

impl<Q> fmt::Display for CallError<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CallError::Disconnected(_) => "the callee is gone",
            CallError::Unanswered => "the callee did not answer",
        })
    }
}

impl<Q> fmt::Display for CallTimeoutError<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CallTimeoutError::Disconnected(_) => "the callee is gone",
            CallTimeoutError::Unanswered => "the callee did not answer",
            CallTimeoutError::Timeout(Some(_)) => "timed out before the callee was asked",
            CallTimeoutError::Timeout(None) => "timed out waiting for the answer",
        })
    }
}

// Does not print the request, so that `Q` need not be `Debug`.
impl<Q> fmt::Debug for CallError<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CallError::Disconnected(_) => "Disconnected(..)",
            CallError::Unanswered => "Unanswered",
        })
    }
}

impl<Q> fmt::Debug for CallTimeoutError<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CallTimeoutError::Disconnected(_) => "Disconnected(..)",
            CallTimeoutError::Unanswered => "Unanswered",
            CallTimeoutError::Timeout(Some(_)) => "Timeout(Some(..))",
            CallTimeoutError::Timeout(None) => "Timeout(None)",
        })
    }
}

impl<Q> Error for CallError<Q> {}
impl<Q> Error for CallTimeoutError<Q> {}
