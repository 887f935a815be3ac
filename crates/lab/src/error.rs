//! Errors in measuring.

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

    /// The error of the system call `what`, which has just failed, from `errno`.
    pub(crate) fn last(what: &str) -> Self {
        Self::new(what, std::io::Error::last_os_error())
    }
}

/// Creates state that threads share. Called once per round, on the first thread that uses the
/// state.
pub(crate) type Make<T> = Arc<dyn Fn() -> Result<T, Unavailable> + Send + Sync>;

/// Reasons why measuring failed. A process that measures for another one sends it only the variants
/// `Cell`, `Process` and `Clock`.
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
    /// The plan names a mechanism, queue or lock that this version does not have, or uses a queue
    /// in a way that this version does not support.
    #[serde(skip)]
    #[error("this version has no {0}")]
    Unknown(String),
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
    /// A mechanism, queue or lock failed while being measured.
    #[serde(skip)]
    #[error("{name} ({placement}): {clause}")]
    Row {
        /// Its name.
        name: String,
        /// Placement.
        placement: String,
        /// The failure as a clause that follows "it", such as `it ended`.
        clause: String,
    },
    /// A cell failed; the other cells of its group may be measured without it.
    #[error("{sentence}")]
    Cell {
        /// Index of the cell in its group.
        cell: usize,
        /// The failure as a clause that follows "it", such as `it ended`.
        clause: String,
        /// The failure as a sentence that names the cell.
        sentence: String,
    },
    /// A process that was to measure a part of the run did not do so.
    #[error("{0}")]
    Process(String),
    /// The clock passed its first check, but failed a later one.
    #[error("{0}")]
    Clock(String),
    /// The file cannot be written.
    #[serde(skip)]
    #[error(transparent)]
    Write(#[from] threadtoll_record::file::WriteFault),
}

/// Clause about a mechanism, queue or lock that delivered something other than the message that was
/// sent.
pub(crate) const WRONG_MESSAGE: &str = "a message was wrong, lost, repeated or out of order";

/// Clause about a mechanism, queue or lock that made no progress for this long.
pub(crate) fn stuck(patience: Duration) -> String {
    format!("it made no progress for {} s", patience.as_secs())
}

impl LabError {
    /// The error for a mechanism, queue or lock that this version does not have.
    pub(crate) fn unknown(kind: &str, name: &str) -> Self {
        LabError::Unknown(format!("{kind} “{name}”"))
    }

    /// Converts the error to one that can be sent to another process.
    pub(crate) fn for_another_process(self) -> Self {
        match self {
            LabError::Cell { .. } | LabError::Process(_) | LabError::Clock(_) => self,
            other => LabError::Process(other.to_string()),
        }
    }

    /// Converts the error to an error of this cell, unless it concerns the whole run.
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
