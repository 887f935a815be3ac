use std::sync::Arc;
use std::time::Duration;

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
    /// Creates the error for a failed operation.
    pub fn new(what: impl Into<String>, error: std::io::Error) -> Self {
        Unavailable { what: what.into(), error }
    }

    pub(crate) fn last(what: &str) -> Self {
        Self::new(what, std::io::Error::last_os_error())
    }
}

/// Called once per round, on the first thread that uses the state.
pub(crate) type Make<T> = Arc<dyn Fn() -> Result<T, Unavailable> + Send + Sync>;

/// Reason why measuring failed. Processes send each other only `Cell`, `Process` and `Clock`.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabError {
    /// A mechanism cannot be created.
    #[serde(skip)]
    #[error("{mechanism} cannot be measured here: {reason}")]
    Unavailable {
        /// Name of the mechanism.
        mechanism: String,
        /// Failed operation, with the system error.
        reason: Unavailable,
    },
    /// The plan needs a mechanism, queue or lock, or a use of a queue, that this version does not
    /// have.
    #[serde(skip)]
    #[error("this version has no {0}")]
    Unknown(String),
    /// A thread cannot be restricted to its CPUs.
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
    /// A mechanism, queue or lock failed while being measured.
    #[serde(skip)]
    #[error("{name} ({placement}): {clause}")]
    Row {
        /// Name of the mechanism, queue or lock.
        name: String,
        /// Placement.
        placement: String,
        /// The failure, worded as a clause such as `it ended`.
        clause: String,
    },
    /// A cell failed; the other cells of its group may be measured without it.
    #[error("{sentence}")]
    Cell {
        /// Index of the cell in its group.
        cell: usize,
        /// The failure, worded as a clause such as `it ended`.
        clause: String,
        /// The failure, worded as a sentence that names the cell.
        sentence: String,
    },
    /// A process did not measure its part of the run.
    #[error("{0}")]
    Process(String),
    /// The clock passed its first check, but failed a later one.
    #[error("{0}")]
    Clock(String),
    /// The results file cannot be written.
    #[serde(skip)]
    #[error(transparent)]
    Write(#[from] threadtoll_record::file::WriteFault),
}

pub(crate) const WRONG_MESSAGE: &str = "a message was wrong, lost, repeated or out of order";

pub(crate) fn stuck(patience: Duration) -> String {
    format!("it made no progress for {} s", patience.as_secs())
}

impl LabError {
    pub(crate) fn unknown(kind: &str, name: &str) -> Self {
        LabError::Unknown(format!("{kind} “{name}”"))
    }

    pub(crate) fn for_another_process(self) -> Self {
        match self {
            LabError::Cell { .. } | LabError::Process(_) | LabError::Clock(_) => self,
            other => LabError::Process(other.to_string()),
        }
    }

    pub(crate) fn of_cell(self, cell: usize) -> Self {
        let clause = match &self {
            LabError::Unavailable { reason, .. } => format!("it cannot be measured here: {reason}"),
            LabError::Spawn(error) => format!("a thread cannot be started: {error}"),
            LabError::Row { clause, .. } => clause.clone(),
            _ => return self,
        };
        LabError::Cell { cell, clause, sentence: self.to_string() }
    }
}
