//! Tells when a process has stopped executing a program, by ending or by executing another one.
//!
//! A descriptor of `/proc/PID/mem` refers to the memory that the process had when the descriptor
//! was opened, but does not keep that memory alive. Once no process uses the memory, a read returns
//! 0 bytes, whereas a read at an unmapped address of live memory fails (`mem_rw` of
//! `fs/proc/base.c`). One case goes unnoticed: a vfork(2) child shares its parent's memory, which
//! stays alive when the child executes a program.

use std::os::fd::OwnedFd;

use super::Process;
use super::files::{self, ShortPath};

/// The program that a process executed at a certain time.
#[derive(Debug)]
pub struct ProgramRun {
    memory: OwnedFd,
}

impl Process {
    /// The program that the process executes now; `None` without permission, or if no descriptor is
    /// free.
    pub fn program_run(&self) -> Option<ProgramRun> {
        let path = ShortPath::task(self.witness, "mem");
        let memory = files::open(&self.directory, &path).ok()?;
        let run = ProgramRun { memory };
        // A sandbox's own implementation of the file may not behave like the kernel's.
        run.goes_on().then_some(run)
    }
}

impl ProgramRun {
    /// Returns `true` if the process still executes this program. Takes one system call.
    #[inline]
    pub fn goes_on(&self) -> bool {
        rustix::io::pread(&self.memory, &mut [0; 1], 0) != Ok(0)
    }
}
