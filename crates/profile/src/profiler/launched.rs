//! The program that was launched to be profiled.

use std::path::PathBuf;
use std::process::ExitStatus;

use threadtoll_stacks::process::{Launched, Process, exit_code};

#[derive(Debug)]
pub(super) struct LaunchedProgram {
    launched: Launched,
    /// When the program started, in clock ticks since boot.
    pub(super) since: u64,
    pub(super) file: PathBuf,
    status: Option<ExitStatus>,
    /// True if the processes that the program left behind have been searched for.
    searched: bool,
}

impl LaunchedProgram {
    /// A program that has just been started. `process` was opened before it could end.
    pub(super) fn new(launched: Launched, process: &Process) -> LaunchedProgram {
        let (since, file) = (process.start_time(), process.program().unwrap_or_default());
        LaunchedProgram { launched, since, file, status: None, searched: false }
    }

    pub(super) fn pid(&self) -> u32 {
        self.launched.pid()
    }

    /// Sends a signal to the program, unless it has ended.
    pub(super) fn forward(&self, signal: i32) {
        // A program that now runs as another user cannot be reached.
        _ = self.launched.forward(signal);
    }

    /// Exit code of the program, if it has ended: 128+S if signal S ended it.
    pub(super) fn try_wait(&mut self) -> Option<u8> {
        if self.status.is_none() {
            self.status = self.launched.try_wait().ok().flatten();
        }
        self.status.map(exit_code)
    }

    /// Returns `true` if the program was seen to have ended.
    pub(super) fn has_ended(&self) -> bool {
        self.status.is_some()
    }

    /// Returns `true` on the first call: processes that the program left behind must now be
    /// searched for.
    pub(super) fn begin_search(&mut self) -> bool {
        self.has_ended() && !std::mem::replace(&mut self.searched, true)
    }
}
