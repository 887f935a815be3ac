use threadtoll_record::{Class, LockSubject};

use crate::error::Make;
use crate::exchange::Ends;
use crate::lock::LockSpec;
use crate::program_file::ProgramFile;
use crate::stream::Streams;
use crate::thread_group::ThreadGroupProgram;

/// Stack of a measured thread: some queues build a block of 31 messages of 64 KiB on it.
pub(crate) const STACK_BYTES: usize = 16 << 20;

/// Code of a cell's threads, before the threads exist.
pub(crate) enum Program {
    Exchange {
        make: Make<Ends>,
        class: Class,
    },
    Stream(StreamProgram),
    ThreadGroup(ThreadGroupProgram),
    Contention(Box<LockSpec>, LockSubject),
    /// A program in another language, which measures itself in its own process.
    Elsewhere {
        file: ProgramFile,
        /// A program of ours, which is run instead on simulated machines.
        like: Box<Program>,
    },
}

impl Program {
    pub(crate) fn or_elsewhere(self, file: Option<&ProgramFile>) -> Self {
        match file {
            Some(file) => Program::Elsewhere { file: file.clone(), like: Box::new(self) },
            None => self,
        }
    }
}

pub(crate) struct StreamProgram {
    pub(crate) make: Make<Streams>,
    /// Number of messages between two checks of the stop flag. A stretch is a whole number of
    /// rounds.
    pub(crate) round: u64,
    pub(crate) class: Class,
    /// True if the queue allocates memory as it fills.
    pub(crate) grows: bool,
}
