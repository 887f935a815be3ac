//! Errors in measuring.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

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

/// Creates shared state, on the thread that uses it first. Called again for each round.
pub(crate) type Make<T> = Arc<dyn Fn() -> Result<T, Unavailable> + Send + Sync>;

/// Reasons why measuring failed. Another process sends those about a cell, about itself and about
/// its clock.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabError {
    /// A mechanism cannot be created.
    #[serde(skip)]
    #[error("{mechanism} cannot be measured here: {reason}")]
    Unavailable {
        /// Mechanism.
        mechanism: String,
        /// Reason.
        reason: Unavailable,
    },
    /// The plan names a mechanism that this version does not have.
    #[serde(skip)]
    #[error("this version has no mechanism “{0}”")]
    Unknown(String),
    /// The plan names an unknown queue, or uses a queue in a way it does not support.
    #[serde(skip)]
    #[error("this version has no queue “{0}”")]
    UnknownQueue(String),
    /// The plan names a lock that this version does not have.
    #[serde(skip)]
    #[error("this version has no lock “{0}”")]
    UnknownLock(String),
    /// A thread cannot be placed.
    #[serde(skip)]
    #[error("cannot place a thread on CPU {cpus:?}: {reason}")]
    Place {
        /// Intended CPUs.
        cpus: Vec<u32>,
        /// System error.
        reason: String,
    },
    /// A thread cannot be started.
    #[serde(skip)]
    #[error("cannot start a thread: {0}")]
    Spawn(std::io::Error),
    /// A message did not arrive.
    #[serde(skip)]
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
    #[serde(skip)]
    #[error("{mechanism} ({placement}) delivered a wrong message")]
    WrongMessage {
        /// Mechanism.
        mechanism: String,
        /// Placement.
        placement: String,
    },
    /// A thread of a mechanism, queue or lock has ended.
    #[serde(skip)]
    #[error("a thread of {mechanism} ({placement}) ended early")]
    Ended {
        /// Mechanism.
        mechanism: String,
        /// Placement.
        placement: String,
    },
    /// A peer of another language failed.
    #[serde(skip)]
    #[error("{name} ({placement}): {clause}")]
    Row {
        /// Name of the peer.
        name: String,
        /// Placement.
        placement: String,
        /// The failure as a clause about “it”.
        clause: String,
    },
    /// A cell failed; the other cells of its group may be measured without it.
    #[error("{sentence}")]
    Cell {
        /// Index of the cell in its group.
        cell: usize,
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
    #[serde(skip)]
    #[error(transparent)]
    Write(#[from] threadtoll_record::file::WriteFault),
}

impl LabError {
    /// Converts the error to one that can be sent to another process.
    pub(crate) fn for_another_process(self) -> Self {
        match self {
            LabError::Cell { .. } | LabError::Process(_) | LabError::Clock(_) => self,
            other => LabError::Process(other.to_string()),
        }
    }

    /// Converts the error to one of this cell, unless it concerns the whole run.
    pub(crate) fn of_cell(self, cell: usize) -> Self {
        let clause = match &self {
            LabError::Stuck { seconds, .. } => format!("it made no progress for {seconds} s"),
            LabError::WrongMessage { .. } => {
                "a message was wrong, lost, repeated or out of order".into()
            }
            LabError::Ended { .. } => "one of its threads ended early".into(),
            LabError::Unavailable { reason, .. } => format!("it cannot be measured here: {reason}"),
            LabError::Spawn(error) => format!("a thread cannot be started: {error}"),
            LabError::Row { clause, .. } => clause.clone(),
            _ => return self,
        };
        LabError::Cell { cell, clause, sentence: self.to_string() }
    }
}
