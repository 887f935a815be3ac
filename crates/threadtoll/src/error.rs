//! Errors of sending, receiving and locking. A message that was not sent is returned in the error.
//!
//! In a [forked child](crate#after-a-fork), all inherited queues are disconnected.

mod call;
mod lock;

use std::error::Error;
use std::fmt;

pub use call::{CallError, CallTimeoutError};
pub use lock::{Full, LockBoundedTimeoutError, LockTimeoutError};

/// Errors that contain the message that was not sent.
macro_rules! handing_back {
    ($($(#[$meta:meta])* $name:ident {
        $($(#[$case_meta:meta])* $case:ident, $is_case:ident => $text:literal;)+
    })+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub enum $name<T> {
            $($(#[$case_meta])* $case(T),)+
        }

        impl<T> $name<T> {
            /// Returns the message that was not sent.
            pub fn into_inner(self) -> T {
                match self { $($name::$case(message) => message,)+ }
            }

            $(
                #[doc = concat!(
                    "Returns `true` for [`", stringify!($name), "::", stringify!($case), "`].",
                )]
                pub fn $is_case(&self) -> bool {
                    matches!(self, $name::$case(_))
                }
            )+
        }

        impl<T> fmt::Display for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($name::$case(_) => $text,)+ })
            }
        }

        // Does not print the message, so that `T` need not be `Debug`.
        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $($name::$case(_) => concat!(stringify!($case), "(..)"),)+
                })
            }
        }

        impl<T> Error for $name<T> {}
    )+};
}

/// Errors that contain nothing.
macro_rules! plain {
    ($($(#[$meta:meta])* $name:ident {
        $($(#[$case_meta:meta])* $case:ident, $is_case:ident => $text:literal;)+
    })+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$case_meta])* $case,)+
        }

        impl $name {
            $(
                #[doc = concat!(
                    "Returns `true` for [`", stringify!($name), "::", stringify!($case), "`].",
                )]
                pub fn $is_case(&self) -> bool {
                    matches!(self, $name::$case)
                }
            )+
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($name::$case => $text,)+ })
            }
        }

        impl Error for $name {}
    )+};
}

/// The receiver is gone. Contains the message that was not sent, or the value that the failed
/// method documents.
///
/// ```
/// use threadtoll::error::SendError;
///
/// let (sender, receiver) = threadtoll::funnel::unbounded();
/// drop(receiver);
/// assert_eq!(sender.send(7), Err(SendError(7)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

impl<T> SendError<T> {
    /// Returns the message that was not sent, or the value that the method documents.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the receiver is gone")
    }
}

// Does not print the message, so that `T` need not be `Debug`.
impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendError(..)")
    }
}

impl<T> Error for SendError<T> {}

handing_back! {
    /// The message was not sent.
    #[non_exhaustive]
    TrySendError {
        /// The queue is full.
        Full, is_full => "the queue is full";
        /// The receiver is gone.
        Disconnected, is_disconnected => "the receiver is gone";
    }

    /// The message was not sent in time.
    #[non_exhaustive]
    SendTimeoutError {
        /// The queue stayed full until the deadline.
        Timeout, is_timeout => "the queue stayed full until the deadline";
        /// The receiver is gone.
        Disconnected, is_disconnected => "the receiver is gone";
    }
}

/// All senders are gone, and every message has been received.
///
/// ```
/// use threadtoll::error::RecvError;
///
/// let (sender, mut receiver) = threadtoll::funnel::unbounded::<u64>();
/// drop(sender);
/// assert_eq!(receiver.recv(), Err(RecvError));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvError;

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("all senders are gone")
    }
}

impl Error for RecvError {}

plain! {
    /// No message was received.
    #[non_exhaustive]
    TryRecvError {
        /// No message is ready.
        Empty, is_empty => "no message is ready";
        /// All senders are gone, and every message has been received.
        Disconnected, is_disconnected => "all senders are gone";
    }

    /// No message was received in time.
    #[non_exhaustive]
    RecvTimeoutError {
        /// No message was ready by the deadline.
        Timeout, is_timeout => "no message was ready by the deadline";
        /// All senders are gone, and every message has been received.
        Disconnected, is_disconnected => "all senders are gone";
    }

    /// An [owner](crate::owned) did not answer.
    #[non_exhaustive]
    AskError {
        /// The owner has stopped or was dropped before it was asked.
        Disconnected, is_disconnected => "the owner is gone";
        /// The closure panicked; or was dropped, because the owner stopped or was dropped.
        Unanswered, is_unanswered => "the owner did not answer";
        /// This is the thread that runs the owner, which would wait for itself.
        OwnThread, is_own_thread => "the owner's own thread cannot ask it";
        /// The owner's queue is full, and a task cannot wait for room.
        Full, is_full => "the owner's queue is full";
    }

    /// An [owner](crate::owned) did not answer in time.
    #[non_exhaustive]
    AskTimeoutError {
        /// The owner has stopped or was dropped before it was asked.
        Disconnected, is_disconnected => "the owner is gone";
        /// The closure panicked; or was dropped, because the owner stopped or was dropped.
        Unanswered, is_unanswered => "the owner did not answer";
        /// This is the thread that runs the owner, which would wait for itself.
        OwnThread, is_own_thread => "the owner's own thread cannot ask it";
        /// There was no answer by the deadline.
        Timeout, is_timeout => "the owner did not answer by the deadline";
    }

    /// A [ring](crate::ring) was not started.
    #[non_exhaustive]
    StartError {
        /// The ring has no reader.
        NoReader, is_no_reader => "the ring has no reader";
        /// A reader was dropped before the ring was started.
        ReaderDropped, is_reader_dropped => "a reader was dropped before the ring was started";
    }
}

impl<T> From<SendError<T>> for TrySendError<T> {
    fn from(SendError(message): SendError<T>) -> Self {
        TrySendError::Disconnected(message)
    }
}

impl<T> From<SendError<T>> for SendTimeoutError<T> {
    fn from(SendError(message): SendError<T>) -> Self {
        SendTimeoutError::Disconnected(message)
    }
}

impl From<RecvError> for TryRecvError {
    fn from(_: RecvError) -> Self {
        TryRecvError::Disconnected
    }
}

impl From<RecvError> for RecvTimeoutError {
    fn from(_: RecvError) -> Self {
        RecvTimeoutError::Disconnected
    }
}
