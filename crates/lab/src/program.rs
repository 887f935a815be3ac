//! Programs: the code of a cell's threads, before the threads exist.

use threadtoll_record::{Class, LockSubject};

use crate::error::Make;
use crate::exchange::Ends;
use crate::lock::LockSpec;
use crate::program_file::ProgramFile;
use crate::stream::Streams;
use crate::thread_group::ThreadGroupProgram;

/// Size of the stack of a measured thread, in bytes: some queues build a block of 31 messages of 64
/// KiB on it.
pub(crate) const STACK_BYTES: usize = 16 << 20;

/// The code of a cell's threads, by kind.
pub(crate) enum Program {
    /// Two ends that exchange messages, or one thread that is both.
    Exchange {
        make: Make<Ends>,
        class: Class,
    },
    Stream(StreamProgram),
    /// Threads that each have a role of their own.
    ThreadGroup(ThreadGroupProgram),
    Contention(Box<LockSpec>, LockSubject),
    /// A program in another language, which measures itself in its own process.
    Elsewhere {
        file: ProgramFile,
        /// One of our own programs, which replaces this one on simulated machines.
        like: Box<Program>,
    },
}

impl Program {
    /// The program in another language in `file`, or `self` if `file` is `None`.
    pub(crate) fn or_elsewhere(self, file: Option<&ProgramFile>) -> Self {
        match file {
            Some(file) => Program::Elsewhere { file: file.clone(), like: Box::new(self) },
            None => self,
        }
    }
}

/// A stream before its threads exist.
pub(crate) struct StreamProgram {
    pub(crate) make: Make<Streams>,
    /// Number of messages between two checks of the stop flag; stretches consist of a multiple of
    /// this number of messages.
    pub(crate) round: u64,
    pub(crate) class: Class,
    /// True if the queue allocates memory as it fills.
    pub(crate) grows: bool,
}
