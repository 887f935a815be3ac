//! What the threads of a cell run, before there are threads.

use threadtoll_record::{Layout, LockSubject, Pause, PlannedCell, Subject};

use crate::LabError;
use crate::exchange::Ends;
use crate::lock::LockSpec;
use crate::mechanism::{self, Class, Settings, Unavailable};
use crate::queue::{Queues, Streams};

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

impl Program {
    /// The program of a cell.
    ///
    /// # Errors
    ///
    /// If this version has no such mechanism, queue or lock, or does not use it so.
    pub(crate) fn of(planned: &PlannedCell, queues: &Queues) -> Result<Self, LabError> {
        let cell = &planned.cell;
        match &cell.subject {
            Subject::Mechanism { mechanism, .. } => {
                let found = mechanism::find(mechanism);
                let mechanism = found.ok_or_else(|| LabError::Unknown(mechanism.to_string()))?;
                Ok(mechanism.program(Settings {
                    payload_bytes: cell.payload_bytes as usize,
                    layout: cell.line.unwrap_or(Layout::Own),
                    pause: cell.pause.unwrap_or(Pause::Off),
                }))
            }
            Subject::Queue(queue) => {
                let program = queues.program(planned, queue);
                program.ok_or_else(|| LabError::UnknownQueue(cell.label()))
            }
            Subject::Lock(lock) => match LockSpec::parse(&lock.lock) {
                Ok(named) => Ok(Program::Contention(named, lock.clone())),
                Err(_) => Err(LabError::UnknownLock(lock.lock.to_string())),
            },
        }
    }
}
