//! What the threads of a cell run, before there are threads.

use threadtoll_record::{Class, LockSubject};

use crate::error::Unavailable;
use crate::exchange::Ends;
use crate::lock::LockSpec;
use crate::stream::Streams;

/// Makes what threads share, on the thread where it will be used.
pub(crate) type Make<T> = Box<dyn FnOnce() -> Result<T, Unavailable> + Send>;

/// What the threads of a cell run: an arm for each kind.
pub(crate) enum Program {
    /// Two ends, or one thread that is both, exchange messages.
    Exchange {
        make: Make<Ends>,
        /// How a waiting end waits.
        class: Class,
    },
    /// Senders and a receiver.
    Stream {
        make: Make<Streams>,
        class: Class,
        /// True if the queue takes memory as it fills.
        grows: bool,
    },
    /// Threads that share a lock.
    Contention(LockSpec, LockSubject),
}
