//! Errors of measuring.

use threadtoll_record::StrikeReason;

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
    /// A thread of a mechanism, queue or lock ended.
    #[error("a thread of {mechanism} ({placement}) ended early")]
    Ended {
        /// Mechanism.
        mechanism: String,
        /// Placement.
        placement: String,
    },
    /// A peer of another language failed.
    #[error("{name} ({placement}): {clause}")]
    Row {
        /// Name of the peer.
        name: String,
        /// Placement.
        placement: String,
        /// Kind of failure.
        reason: StrikeReason,
        /// The failure as a clause about “it”.
        clause: String,
    },
    /// A cell failed, and the other ones of its group may be measured without it.
    #[error("{sentence}")]
    Cell {
        /// Index of the cell in its group.
        cell: usize,
        /// Kind of failure.
        reason: StrikeReason,
        /// The failure as a clause about “it”.
        clause: String,
        /// The failure as a sentence that names the cell.
        sentence: String,
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

impl LabError {
    /// The error as one of this cell, if it is not one of the whole run.
    pub(crate) fn of_cell(self, cell: usize) -> Self {
        let (reason, clause) = match &self {
            LabError::Stuck { seconds, .. } => {
                (StrikeReason::Hung, format!("it made no progress for {seconds} s"))
            }
            LabError::WrongMessage { .. } => {
                let clause = "a message was wrong, lost, repeated or out of order";
                (StrikeReason::WrongMessage, clause.into())
            }
            LabError::Ended { .. } => {
                (StrikeReason::Crashed, "one of its threads ended early".into())
            }
            LabError::Unavailable { reason, .. } => {
                (StrikeReason::Refused, format!("it cannot be measured here: {reason}"))
            }
            LabError::Spawn(error) => {
                (StrikeReason::Refused, format!("a thread cannot be started: {error}"))
            }
            LabError::Row { reason, clause, .. } => (*reason, clause.clone()),
            _ => return self,
        };
        LabError::Cell { cell, reason, clause, sentence: self.to_string() }
    }
}
