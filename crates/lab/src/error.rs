//! Errors of measuring.

/// A mechanism, queue or lock cannot be created.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {error}")]
pub struct Unavailable {
    /// Operation that failed.
    pub what: String,
    /// System error.
    pub error: std::io::Error,
}

impl Unavailable {
    /// Creates the error of a failed operation.
    pub fn new(what: impl Into<String>, error: std::io::Error) -> Self {
        Unavailable { what: what.into(), error }
    }

    /// The error of the system call `what`, from `errno`.
    pub(crate) fn last(what: &str) -> Self {
        Self::new(what, std::io::Error::last_os_error())
    }
}

/// Reasons for which measuring fails.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A mechanism cannot be created.
    #[error("{mechanism} cannot be measured here: {reason}")]
    Unavailable {
        /// Mechanism.
        mechanism: String,
        /// Reason.
        reason: Unavailable,
    },
    /// The plan names a mechanism that this version does not have.
    #[error("this version has no mechanism “{0}”")]
    Unknown(String),
    /// The plan names an unknown queue, or uses a queue in a way it does not support.
    #[error("this version has no queue “{0}”")]
    UnknownQueue(String),
    /// The plan names a lock that this version does not have.
    #[error("this version has no lock “{0}”")]
    UnknownLock(String),
    /// A thread cannot be placed.
    #[error("cannot place a thread on CPU {cpus:?}: {reason}")]
    Place {
        /// Intended CPUs.
        cpus: Vec<u32>,
        /// System error.
        reason: String,
    },
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Spawn(std::io::Error),
    /// A message did not arrive.
    #[error(
        "{mechanism} ({placement}) made no progress for {seconds} s: a message was lost or the machine is stuck"
    )]
    Stuck {
        /// Mechanism.
        mechanism: String,
        /// Placement.
        placement: String,
        /// Time waited.
        seconds: u64,
    },
    /// A message arrived that was not the one sent.
    #[error("{mechanism} ({placement}) delivered a wrong message")]
    WrongMessage {
        /// Mechanism.
        mechanism: String,
        /// Placement.
        placement: String,
    },
    /// Another process did not measure its share.
    #[error("{0}")]
    Process(String),
    /// The clock failed a later check.
    #[error("{0}")]
    Clock(String),
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] threadtoll_record::file::WriteFault),
}
