//! Facts about processes that samples do not contain, looked up while samples are counted.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;

use threadtoll_stacks::process::{
    ContendedFileLock, FileId, SemaphoreId, SemaphoreState, SemaphoreWait, Sockets, SystemCall,
};

use crate::occupation::{Device, EventSet, Polled};

pub(crate) trait Lookups: fmt::Debug {
    /// Device behind a descriptor of the process with this index. For a pipe, the processes at its
    /// ends are not looked up.
    fn device(&self, process: u32, descriptor: u32) -> Device;

    /// Descriptors in the set for which a thread of this process waits; `None` if they cannot be
    /// read.
    fn in_set(&self, process: u32, set: EventSet) -> Option<Vec<Polled>>;

    /// Descriptors of unnamed pipes with both ends in the process, and number of descriptors that
    /// were examined.
    fn own_pipes(&self, process: u32) -> (HashSet<u32>, usize);

    /// All sockets of the process's network namespace, which include those that the process has
    /// open.
    fn sockets(&self, process: u32) -> Sockets;

    fn socket(&self, process: u32, descriptor: u32) -> Option<u64>;

    fn file(&self, process: u32, descriptor: u32) -> Option<(FileId, PathBuf)>;

    fn contended_file_locks(&self) -> Vec<ContendedFileLock>;

    fn pid(&self, process: u32) -> Option<u32>;

    /// PID of a profiled process that holds a lock on this file through one of its descriptors.
    fn has_locked(&self, file: FileId) -> Option<u32>;

    /// System V semaphore for which a thread waits; `None` unless it is still in this call.
    fn semaphore_wait(&self, tid: u32, call: &SystemCall) -> Option<SemaphoreWait>;

    /// Returns `true` if the semaphores of the process with this index can be found by their IDs.
    fn shares_semaphores(&self, process: u32) -> bool;

    fn semaphore(&self, id: SemaphoreId) -> Option<SemaphoreState>;

    fn key_of_semaphores(&self, id: SemaphoreId) -> Option<u32>;

    /// Returns `true` if the main thread of this process waits for the semaphore; `None` if that
    /// cannot be read.
    fn waits_for_semaphore(&self, pid: u32, id: SemaphoreId) -> Option<bool>;

    /// Time in nanoseconds for which a thread has been on a CPU or has waited for one.
    fn cpu_ns(&self, process: u32, tid: u32) -> Option<u64>;

    /// Name of any process, profiled or not; empty if the process has ended.
    fn name_of_process(&self, pid: u32) -> String;

    /// Returns `true` if the main thread of this process waits for connections or events, as in an
    /// idle process of a pool.
    fn waits_for_work(&self, pid: u32) -> bool;
}

#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Fixed {
    pub(crate) files: Vec<(u32, FileId)>,
    pub(crate) contended: Vec<ContendedFileLock>,
    pub(crate) has_locked: Option<u32>,
    pub(crate) semaphore_wait: Option<SemaphoreWait>,
    pub(crate) semaphore: Option<SemaphoreState>,
}

#[cfg(test)]
pub(crate) static NO_LOOKUPS: Fixed = Fixed::NOTHING;

#[cfg(test)]
impl Fixed {
    pub(crate) const NOTHING: Fixed = Fixed {
        files: Vec::new(),
        contended: Vec::new(),
        has_locked: None,
        semaphore_wait: None,
        semaphore: None,
    };
    pub(crate) const ENDED: u32 = 77;
    pub(crate) const IDLE: u32 = 78;
    pub(crate) const PID: u32 = 10;
}

#[cfg(test)]
impl Lookups for Fixed {
    fn device(&self, _: u32, _: u32) -> Device {
        Device::Other
    }

    fn in_set(&self, _: u32, _: EventSet) -> Option<Vec<Polled>> {
        None
    }

    fn own_pipes(&self, _: u32) -> (HashSet<u32>, usize) {
        Default::default()
    }

    fn sockets(&self, _: u32) -> Sockets {
        Sockets::default()
    }

    fn socket(&self, _: u32, _: u32) -> Option<u64> {
        None
    }

    fn file(&self, _: u32, descriptor: u32) -> Option<(FileId, PathBuf)> {
        let file = self.files.iter().find(|(of, _)| *of == descriptor)?;
        Some((file.1, "/file".into()))
    }

    fn contended_file_locks(&self) -> Vec<ContendedFileLock> {
        self.contended.clone()
    }

    fn pid(&self, _: u32) -> Option<u32> {
        Some(Fixed::PID)
    }

    fn has_locked(&self, _: FileId) -> Option<u32> {
        self.has_locked
    }

    fn semaphore_wait(&self, _: u32, _: &SystemCall) -> Option<SemaphoreWait> {
        self.semaphore_wait
    }

    fn shares_semaphores(&self, _: u32) -> bool {
        true
    }

    fn semaphore(&self, _: SemaphoreId) -> Option<SemaphoreState> {
        self.semaphore
    }

    fn key_of_semaphores(&self, _: SemaphoreId) -> Option<u32> {
        None
    }

    fn waits_for_semaphore(&self, pid: u32, _: SemaphoreId) -> Option<bool> {
        Some(pid == Fixed::PID)
    }

    fn cpu_ns(&self, _: u32, _: u32) -> Option<u64> {
        None
    }

    fn name_of_process(&self, pid: u32) -> String {
        if pid == Fixed::ENDED { String::new() } else { format!("process {pid}") }
    }

    fn waits_for_work(&self, pid: u32) -> bool {
        pid == Fixed::IDLE
    }
}
