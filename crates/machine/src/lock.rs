//! One measurement at a time, because two on one machine disturb each other.
//!
//! An advisory lock on a file in the temporary directory keeps processes of one user from measuring
//! at the same time. The lock ends with its process. It stops neither other users nor programs that
//! do not take the lock.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Maximum wait: longer than all tests of one program hold the machine, because waiters are not
/// served in order.
const PATIENCE: Duration = Duration::from_secs(600);

/// Holds the machine until dropped.
#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub struct MachineLock {
    _file: File,
}

fn open() -> io::Result<File> {
    let user = rustix::process::getuid().as_raw();
    let path: PathBuf = std::env::temp_dir().join(format!("threadtoll-{user}.lock"));
    // In this world-writable directory, another user may have planted a symbolic link.
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(path)
}

/// Waits at most ten minutes until no other measurement of this user holds the machine. Threads of
/// one process exclude each other, too.
///
/// # Errors
///
/// If the file cannot be created or locked, or if the machine is held for ten minutes.
#[doc(hidden)]
pub fn machine_lock() -> io::Result<MachineLock> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match try_machine_lock()? {
            Some(lock) => return Ok(lock),
            None if Instant::now() >= deadline => return Err(io::ErrorKind::TimedOut.into()),
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Locks the machine; returns `None` if another measurement of this user holds it.
///
/// # Errors
///
/// If the file cannot be created or locked.
#[doc(hidden)]
pub fn try_machine_lock() -> io::Result<Option<MachineLock>> {
    let file = open()?;
    match file.try_lock() {
        Ok(()) => Ok(Some(MachineLock { _file: file })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_held_once() {
        let held = machine_lock().unwrap();
        assert!(try_machine_lock().unwrap().is_none());
        drop(held);
        // By now, another test may hold the machine, so this may wait.
        drop(machine_lock().unwrap());
    }
}
