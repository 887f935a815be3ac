//! One measurement at a time.
//!
//! Two measurements on one machine spoil each other without either noticing much. A lock on a file
//! in the temporary directory keeps those of one user apart, across processes; it disappears with
//! the process that holds it, however that ends. It is advice: nothing stops a program that does
//! not ask, or another user.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longer than any test holds the machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The machine is ours until this is dropped.
#[derive(Debug)]
#[must_use = "the lock is given back when this is dropped"]
pub struct MachineLock {
    _file: File,
}

fn open() -> io::Result<File> {
    let user = rustix::process::getuid().as_raw();
    let path: PathBuf = std::env::temp_dir().join(format!("threadtoll-{user}.lock"));
    // The directory is everyone's: a link that someone else put there must not be followed.
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(path)
}

/// Waits until no other measurement of this user holds the machine, but not for ever: a program
/// that hangs with the lock in its hands must not hang everybody else. Threads of one process
/// exclude each other, too.
///
/// # Errors
///
/// Where the file cannot be made or locked, or somebody else has held it for two minutes.
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

/// The machine, or nothing if another measurement of this user holds it.
///
/// # Errors
///
/// Where the file cannot be made or locked.
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
        // Another test may be quicker; waiting must succeed in the end.
        drop(machine_lock().unwrap());
    }
}
