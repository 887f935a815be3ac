//! One program that a process executes, until the process ends or executes another.
//!
//! A descriptor of `/proc/PID/mem` goes with the memory that the process had when it was opened,
//! and keeps none of it: once no process uses that memory, a read returns nothing, where it would
//! fail at an address at which nothing is mapped (`mem_rw` of `fs/proc/base.c`). A process made by
//! vfork(2) shares the memory of its parent until it executes a program, which is not seen so.

use std::os::fd::OwnedFd;

use super::Process;
use super::files::{self, ShortPath};

/// The program that a process executed at some time.
#[derive(Debug)]
pub struct ProgramRun {
    memory: OwnedFd,
}

impl Process {
    /// The program that it executes now; `None` if permission or a descriptor is missing.
    pub fn program_run(&self) -> Option<ProgramRun> {
        let path = ShortPath::task(self.witness, "mem");
        let memory = files::open(&self.directory, &path).ok()?;
        let run = ProgramRun { memory };
        // A sandbox may have files of its own.
        run.goes_on().then_some(run)
    }
}

impl ProgramRun {
    /// The process still executes it. One system call.
    #[inline]
    pub fn goes_on(&self) -> bool {
        rustix::io::pread(&self.memory, &mut [0; 1], 0) != Ok(0)
    }
}
