//! Locks on files: flock(2), and record locks of fcntl(2) (proc_locks(5)).

use std::io;

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::Process;
use super::files::{self, ShortPath};

/// Maximum number of bytes that are read of the list of locks.
const MAX_LIST: usize = 256 << 10;

/// Maximum number of bytes that are read of a description of a descriptor.
const MAX_INFO: usize = 4 << 10;

/// A file, as the list of locks names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// Major and minor number of the device.
    pub device: [u32; 2],
    /// Number of the file on that device.
    pub inode: u64,
}

/// A lock on a file, or on a part of one, that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldFileLock {
    /// The file.
    pub file: FileId,
    /// The process that took the lock; `None` for a lock of an open file description, and for one
    /// of a process in another PID namespace.
    pub pid: Option<u32>,
}

/// All locks on files that are held now, of which the first few thousand.
///
/// # Errors
///
/// If the list cannot be read.
pub fn held_file_locks() -> io::Result<Vec<HeldFileLock>> {
    let list = files::read(CWD, &ShortPath::new(format_args!("/proc/locks")), MAX_LIST)?;
    Ok(String::from_utf8_lossy(&list).lines().filter_map(held).collect())
}

/// Parses a line such as `2: POSIX  ADVISORY  WRITE 4321 fe:00:5678 0 EOF`; `None` if it shows a
/// waiter, or something else.
fn held(line: &str) -> Option<HeldFileLock> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    if !["FLOCK", "POSIX", "OFDLCK"].contains(&fields.next()?) {
        return None;
    }
    let pid = fields.nth(2)?.parse().ok().filter(|&pid| pid > 0);
    let mut file = fields.next()?.splitn(3, ':');
    let mut number = || u32::from_str_radix(file.next()?, 16).ok();
    let device = [number()?, number()?];
    Some(HeldFileLock { file: FileId { device, inode: file.next()?.parse().ok()? }, pid })
}

impl Process {
    /// The file behind a descriptor. Network file systems are not queried.
    ///
    /// # Errors
    ///
    /// If the descriptor is not open, the process has ended, or permission is missing.
    pub fn file(&self, descriptor: u32) -> io::Result<FileId> {
        let path = ShortPath::new(format_args!("fd/{descriptor}"));
        let flags = AtFlags::STATX_DONT_SYNC;
        let found = statx(&self.directory, path.as_str(), flags, StatxFlags::INO)?;
        let device = [found.stx_dev_major, found.stx_dev_minor];
        Ok(FileId { device, inode: found.stx_ino })
    }

    /// Returns `true` if the process has a descriptor through which a lock on this file is held,
    /// among its first `most` descriptors.
    ///
    /// # Errors
    ///
    /// If the process has ended, or permission is missing.
    pub fn has_locked(&self, file: FileId, most: usize) -> io::Result<bool> {
        let mut of_file = self.descriptors()?.into_iter().take(most);
        Ok(of_file.any(|descriptor| {
            self.file(descriptor).is_ok_and(|found| found == file) && self.holds(descriptor)
        }))
    }

    /// Returns `true` if a lock is held through this descriptor.
    fn holds(&self, descriptor: u32) -> bool {
        let path = ShortPath::new(format_args!("fdinfo/{descriptor}"));
        let info = files::read(&self.directory, &path, MAX_INFO).unwrap_or_default();
        let info = String::from_utf8_lossy(&info);
        info.lines().filter_map(|line| line.strip_prefix("lock:")).any(|line| held(line).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_are_listed_and_waiters_are_not() {
        let lock = |pid, inode| HeldFileLock { file: FileId { device: [0xfe, 0x1a], inode }, pid };
        let of = |line| held(line);
        assert_eq!(of("1: FLOCK  ADVISORY  WRITE 77 fe:1a:5 0 EOF"), Some(lock(Some(77), 5)));
        assert_eq!(of("2: POSIX  ADVISORY  READ  0 fe:1a:6 100 199"), Some(lock(None, 6)));
        assert_eq!(of("3: OFDLCK ADVISORY  WRITE -1 fe:1a:7 0 EOF"), Some(lock(None, 7)));
        for other in [
            "1: -> FLOCK  ADVISORY  WRITE 78 fe:1a:5 0 EOF",
            "4: LEASE  ACTIVE    READ  80 fe:1a:8 0 EOF",
            "5: FLOCK  ADVISORY  WRITE 81 <none>:0 0 EOF",
            "6: POSIX  ADVISORY",
            "",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_lock_that_is_held_is_found() {
        let file = tempfile::tempfile().unwrap();
        file.lock().unwrap();
        let mut sleep = std::process::Command::new("sleep");
        let mut child = sleep.arg("60").stdin(file.try_clone().unwrap()).spawn().unwrap();
        let process = Process::open(child.id()).unwrap();
        let found = process.file(0).unwrap();
        let holds = process.has_locked(found, 100).unwrap();
        let other = FileId { inode: found.inode + 1, ..found };
        assert!(!process.has_locked(other, 100).unwrap());
        let locks = held_file_locks().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let lock = HeldFileLock { file: found, pid: Some(std::process::id()) };
        assert!(holds, "the lock belongs to the open file, which both processes have");
        assert!(locks.contains(&lock), "{lock:?}: {locks:?}");
    }
}
