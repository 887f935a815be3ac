//! Reasons why something could not be measured.

/// A mechanism, a queue or a lock could not be made.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {error}")]
pub struct Unavailable {
    /// The attempt that failed.
    pub what: String,
    /// The system's answer.
    pub error: std::io::Error,
}

impl Unavailable {
    /// This attempt failed with this error.
    pub fn new(what: impl Into<String>, error: std::io::Error) -> Self {
        Unavailable { what: what.into(), error }
    }

    /// The system call `what` has just failed.
    pub(crate) fn last(what: &str) -> Self {
        Self::new(what, std::io::Error::last_os_error())
    }
}

/// Why measuring failed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A mechanism could not be made.
    #[error("{mechanism} cannot be measured here: {reason}")]
    Unavailable {
        /// The mechanism.
        mechanism: String,
        /// What failed.
        reason: Unavailable,
    },
    /// The plan names a mechanism that this version does not have.
    #[error("this version knows no mechanism “{0}”")]
    Unknown(String),
    /// The plan names a queue that this version does not have, or uses one as it cannot be used.
    #[error("this version knows no queue “{0}”")]
    UnknownQueue(String),
    /// The plan names a lock that this version does not have.
    #[error("this version knows no lock “{0}”")]
    UnknownLock(String),
    /// A thread could not be placed.
    #[error("cannot place a thread on CPU {cpus:?}: {reason}")]
    Place {
        /// Where it should have run.
        cpus: Vec<u32>,
        /// What the system said.
        reason: String,
    },
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Spawn(std::io::Error),
    /// A message did not come.
    #[error(
        "{mechanism} ({placement}) made no progress for {seconds} s: a message was lost or the machine is stuck"
    )]
    Stuck {
        /// The mechanism.
        mechanism: String,
        /// Its placement.
        placement: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// A message came that was not the one sent.
    #[error("{mechanism} ({placement}) delivered a wrong message")]
    WrongMessage {
        /// The mechanism.
        mechanism: String,
        /// Its placement.
        placement: String,
    },
    /// The clock failed its second look.
    #[error("{0}")]
    Clock(String),
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] threadtoll_record::file::WriteFault),
}
