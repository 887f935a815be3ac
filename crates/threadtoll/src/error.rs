//! Why a message could not be sent or received. Whoever could not send gets the message back.

use std::error::Error;
use std::fmt;

/// Errors that carry the message that was not sent.
macro_rules! handing_back {
    ($($(#[$doc:meta])* $name:ident { $($(#[$case_doc:meta])* $case:ident => $text:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub enum $name<T> {
            $($(#[$case_doc])* $case(T),)+
        }

        impl<T> $name<T> {
            /// The message that was not sent.
            pub fn into_inner(self) -> T {
                match self { $($name::$case(message) => message,)+ }
            }
        }

        impl<T> fmt::Display for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($name::$case(_) => $text,)+ })
            }
        }

        // Without the message: any type may be sent.
        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($name::$case(_) => concat!(stringify!($case), "(..)"),)+ })
            }
        }

        impl<T> Error for $name<T> {}
    )+};
}

/// Errors that carry nothing.
macro_rules! plain {
    ($($(#[$doc:meta])* $name:ident { $($(#[$case_doc:meta])* $case:ident => $text:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$case_doc])* $case,)+
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($name::$case => $text,)+ })
            }
        }

        impl Error for $name {}
    )+};
}

handing_back! {
    /// A message was not sent.
    SendError {
        /// The queue is at a ceiling that refuses. Only a funnel with [`Ceiling::Refuse`](crate::funnel::Ceiling::Refuse) says so.
        Full => "the queue is full",
        /// The receiver is gone.
        Disconnected => "the receiver is gone",
        /// This process is a forked child of the one that made the queue: the receiver is not here.
        Forked => "a queue does not reach into a forked child",
    }

    /// A call was not made.
    CallError {
        /// The callee is gone.
        Disconnected => "the callee is gone",
        /// This process is a forked child of the one that made the line: the callee is not here.
        Forked => "a call does not reach out of a forked child",
    }

    /// A message was not sent.
    TrySendError {
        /// There is no room now.
        Full => "the queue is full",
        /// The receiver is gone.
        Disconnected => "the receiver is gone",
        /// This process is a forked child of the one that made the queue: the receiver is not here.
        Forked => "a queue does not reach into a forked child",
    }

    /// A message was not sent in time.
    SendTimeoutError {
        /// There was no room in time.
        Timeout => "the queue was full for too long",
        /// The receiver is gone.
        Disconnected => "the receiver is gone",
        /// This process is a forked child of the one that made the queue: the receiver is not here.
        Forked => "a queue does not reach into a forked child",
    }
}

plain! {
    /// Nothing was received, and never will be.
    RecvError {
        /// All senders are gone, and everything that they sent was received.
        Disconnected => "all senders are gone",
        /// This process is a forked child of the one that made the queue: the senders are not here.
        Forked => "a queue does not reach into a forked child",
    }

    /// Nothing was received now.
    TryRecvError {
        /// Nothing is there.
        Empty => "the queue is empty",
        /// A sender is in the midst of its send, and nothing behind it may overtake it. Only funnels say so.
        Pending => "a sender is in the midst of its send",
        /// All senders are gone, and everything that they sent was received.
        Disconnected => "all senders are gone",
        /// This process is a forked child of the one that made the queue: the senders are not here.
        Forked => "a queue does not reach into a forked child",
    }

    /// Nothing was received in time.
    RecvTimeoutError {
        /// Nothing came in time.
        Timeout => "nothing came in time",
        /// All senders are gone, and everything that they sent was received.
        Disconnected => "all senders are gone",
        /// This process is a forked child of the one that made the queue: the senders are not here.
        Forked => "a queue does not reach into a forked child",
    }
}

impl<T> From<SendError<T>> for TrySendError<T> {
    fn from(error: SendError<T>) -> Self {
        match error {
            SendError::Full(message) => TrySendError::Full(message),
            SendError::Disconnected(message) => TrySendError::Disconnected(message),
            SendError::Forked(message) => TrySendError::Forked(message),
        }
    }
}

impl<T> From<SendError<T>> for SendTimeoutError<T> {
    fn from(error: SendError<T>) -> Self {
        match error {
            SendError::Full(message) => SendTimeoutError::Timeout(message),
            SendError::Disconnected(message) => SendTimeoutError::Disconnected(message),
            SendError::Forked(message) => SendTimeoutError::Forked(message),
        }
    }
}

impl From<RecvError> for TryRecvError {
    fn from(error: RecvError) -> Self {
        match error {
            RecvError::Disconnected => TryRecvError::Disconnected,
            RecvError::Forked => TryRecvError::Forked,
        }
    }
}

impl From<RecvError> for RecvTimeoutError {
    fn from(error: RecvError) -> Self {
        match error {
            RecvError::Disconnected => RecvTimeoutError::Disconnected,
            RecvError::Forked => RecvTimeoutError::Forked,
        }
    }
}
