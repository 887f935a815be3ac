//! The program that was launched to be profiled.

use std::path::PathBuf;
use std::process::ExitStatus;

use threadtoll_stacks::process::{Launched, Process, exit_code};

#[derive(Debug)]
pub(super) struct LaunchedProgram {
    launched: Launched,
    pub(super) since: u64,
    pub(super) file: PathBuf,
    status: Option<ExitStatus>,
    searched: bool,
}

impl LaunchedProgram {
    /// `process` was opened before the program could end.
    pub(super) fn new(launched: Launched, process: &Process) -> LaunchedProgram {
        let (since, file) = (process.start_time(), process.program().unwrap_or_default());
        LaunchedProgram { launched, since, file, status: None, searched: false }
    }

    pub(super) fn pid(&self) -> u32 {
        self.launched.pid()
    }

    pub(super) fn forward(&self, signal: i32) {
        // A program that now runs as another user cannot be signalled.
        _ = self.launched.forward(signal);
    }

    pub(super) fn try_wait(&mut self) -> Option<u8> {
        if self.status.is_none() {
            self.status = self.launched.try_wait().ok().flatten();
        }
        self.status.map(exit_code)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.status.is_some()
    }

    /// Returns `true` on the first call after the program has ended. The caller must then search
    /// for processes that the program left behind.
    pub(super) fn begin_search(&mut self) -> bool {
        self.has_ended() && !std::mem::replace(&mut self.searched, true)
    }
}
