//! Failures: a message of one line, an optional hint of one line, and an exit code.

use std::process::ExitCode;

use threadtoll_lab::LabError;
use threadtoll_lab::queue::Unsuitable;
use threadtoll_record::file::{Fault, WriteFault};
use threadtoll_report::clean;

use crate::console;

#[derive(Clone, Debug, thiserror::Error)]
#[error("{what}")]
pub(crate) struct Failure {
    kind: FailureKind,
    what: String,
    hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailureKind {
    /// Failed while running: exit code 1.
    Run,
    /// Bad usage or bad input: exit code 2.
    Usage,
    /// Refused: exit code 3.
    Refused,
    /// A program could not be started: exit code 126 or 127.
    Program(u8),
}

impl Failure {
    pub(crate) fn run(what: impl Into<String>) -> Self {
        Failure { kind: FailureKind::Run, what: what.into(), hint: None }
    }

    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Failure { kind: FailureKind::Usage, what: what.into(), hint: None }
    }

    pub(crate) fn refused(what: impl Into<String>) -> Self {
        Failure { kind: FailureKind::Refused, what: what.into(), hint: None }
    }

    /// For a program that could not be started. The exit code is 126 or 127, as in a shell.
    pub(crate) fn program(what: impl Into<String>, code: u8) -> Self {
        Failure { kind: FailureKind::Program(code), what: what.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn or_hint(self, hint: impl FnOnce() -> String) -> Self {
        Failure { hint: self.hint.or_else(|| Some(hint())), ..self }
    }

    /// Prints the failure and returns its exit code. Line feeds and escape sequences, which
    /// arguments and files may contain, are replaced to keep the message on one line.
    pub(crate) fn report(&self) -> ExitCode {
        console::err_text(&format!("error: {}", clean(&self.what)));
        if let Some(hint) = &self.hint {
            console::err_text(&format!("hint: {}", clean(hint)));
        }
        ExitCode::from(match self.kind {
            FailureKind::Run => 1,
            FailureKind::Usage => 2,
            FailureKind::Refused => 3,
            FailureKind::Program(code) => code,
        })
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let hint = match fault {
            Fault::System { .. } => "give a file written by a measuring command",
            Fault::Line { .. } => {
                "give the file exactly as threadtoll wrote it (this command did not change it)"
            }
            Fault::Profile(_) => "show it with `threadtoll profile show`",
            Fault::NotProfile(_) => "render it with `threadtoll report`",
            Fault::NothingYet(_) => {
                "a profile is written at most once a second: try again, or make a new profile"
            }
        };
        Failure::usage(fault.to_string()).hint(hint)
    }
}

/// A file that cannot be opened is bad input. Writes that fail later are a [`LabError::Write`].
impl From<WriteFault> for Failure {
    fn from(fault: WriteFault) -> Self {
        let failure = Failure::usage(fault.to_string());
        match fault {
            WriteFault::Exists(_) => {
                failure.hint("choose a new file with --out, or complete that one with --resume")
            }
            WriteFault::Busy(_) => {
                failure.hint("wait until that run has ended, or choose another file")
            }
            WriteFault::NotAFile(_) | WriteFault::System { .. } => {
                failure.hint("choose a file in a writable directory")
            }
        }
    }
}

impl From<Unsuitable> for Failure {
    fn from(Unsuitable { why, hint }: Unsuitable) -> Self {
        Failure::usage(why).hint(hint)
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        let failure = Failure::run(error.to_string());
        match error {
            LabError::Write(_) => failure.hint(
                "earlier measurements are kept; free disk space, then complete the run with --resume",
            ),
            LabError::Clock(_) => Failure { kind: FailureKind::Refused, ..failure },
            LabError::Place { .. } => {
                failure.hint("`threadtoll check` lists the CPUs that this process may use")
            }
            _ => failure,
        }
    }
}
