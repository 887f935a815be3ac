//! A program that a process executes, until the process ends or executes another one.
//!
//! A descriptor of `/proc/PID/mem` refers to the memory that the process had when the descriptor
//! was opened, but does not keep that memory alive. Once no process uses the memory, a read returns
//! 0 bytes, whereas a read at an unmapped address of live memory fails (`mem_rw` of
//! `fs/proc/base.c`). One case goes unnoticed: a process made by vfork(2) shares its parent's
//! memory until it executes a program.

use std::os::fd::OwnedFd;

use super::Process;
use super::files::{self, ShortPath};

/// The program that a process executed at a certain time.
#[derive(Debug)]
pub struct ProgramRun {
    memory: OwnedFd,
}

impl Process {
    /// The program that the process is executing now; `None` if permission or a descriptor is
    /// missing.
    pub fn program_run(&self) -> Option<ProgramRun> {
        let path = ShortPath::task(self.witness, "mem");
        let memory = files::open(&self.directory, &path).ok()?;
        let run = ProgramRun { memory };
        // A sandbox may provide a file of its own, which does not behave like the kernel's.
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
