//! Failures: one line, at most one line of hint, and an exit code.

use std::process::ExitCode;

use threadtoll_lab::LabError;
use threadtoll_record::file::{Fault, WriteFault};
use threadtoll_report::clean;

use crate::console;

/// Why the program ends early.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: FailureKind,
    what: String,
    hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailureKind {
    /// Failed while running: 1.
    Run,
    /// Bad usage or bad input: 2.
    Usage,
    /// Refused: 3.
    Refused,
}

impl Failure {
    /// It failed while running.
    pub(crate) fn run(what: impl Into<String>) -> Self {
        Failure { kind: FailureKind::Run, what: what.into(), hint: None }
    }

    /// The usage or the input is bad.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Failure { kind: FailureKind::Usage, what: what.into(), hint: None }
    }

    /// It is refused here.
    pub(crate) fn refused(what: impl Into<String>) -> Self {
        Failure { kind: FailureKind::Refused, what: what.into(), hint: None }
    }

    /// Adds a hint: what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a hint unless there is one.
    pub(crate) fn or_hint(self, hint: impl FnOnce() -> String) -> Self {
        Failure { hint: self.hint.or_else(|| Some(hint())), ..self }
    }

    /// Prints it and returns its exit code. Arguments and files may hold line feeds and escapes:
    /// they are replaced, to keep the error on one line.
    pub(crate) fn report(&self) -> ExitCode {
        console::err(&format!("error: {}", clean(&self.what)));
        if let Some(hint) = &self.hint {
            console::err(&format!("hint: {}", clean(hint)));
        }
        ExitCode::from(match self.kind {
            FailureKind::Run => 1,
            FailureKind::Usage => 2,
            FailureKind::Refused => 3,
        })
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let hint = match fault {
            Fault::System { .. } => "give the name of a file that a measuring command has written",
            Fault::Line { .. } => {
                "only files that threadtoll has written, unchanged, can be read; this one was left as it is"
            }
        };
        Failure::usage(fault.to_string()).hint(hint)
    }
}

/// A file that cannot be created is bad input; one that cannot be continued is a
/// [`LabError::Write`].
impl From<WriteFault> for Failure {
    fn from(fault: WriteFault) -> Self {
        let failure = Failure::usage(fault.to_string());
        match fault {
            WriteFault::Exists(_) => {
                failure.hint("name a new file with --out, or complete that one with --resume")
            }
            WriteFault::Busy(_) => failure.hint("wait until it has ended, or name another file"),
            WriteFault::NotAFile(_) | WriteFault::System { .. } => {
                failure.hint("name a file in a directory that can be written")
            }
        }
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        let failure = Failure::run(error.to_string());
        match error {
            LabError::Write(_) => failure.hint(
                "what was measured until then is kept; make room and complete it with --resume",
            ),
            LabError::Clock(_) => Failure { kind: FailureKind::Refused, ..failure },
            LabError::Place { .. } => {
                failure.hint("`threadtoll check` tells which CPUs this process may use")
            }
            _ => failure,
        }
    }
}
