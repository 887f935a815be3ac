//! Locks on files: flock(2), and record locks of fcntl(2) (proc_locks(5)).

use std::io;

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::Process;
use super::files::{self, ShortPath};

const MAX_LIST: usize = 256 << 10;

const MAX_INFO: usize = 4 << 10;

/// A file, identified as in the kernel's list of locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// Major and minor number of the device.
    pub device: [u32; 2],
    /// Number of the file on the device.
    pub inode: u64,
}

/// A lock on a file, or on a part of one, for which processes wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContendedFileLock {
    /// The locked file.
    pub file: FileId,
    /// PID of the process that took the lock, which may have ended since; `None` for an open file
    /// description lock.
    pub holder: Option<u32>,
    /// PIDs of the waiting processes; `None` for each waiter for an open file description lock.
    pub waiters: Vec<Option<u32>>,
}

/// Contended locks on files, among the first few thousand lines of the kernel's list.
///
/// # Errors
///
/// If the list cannot be read.
pub fn contended_file_locks() -> io::Result<Vec<ContendedFileLock>> {
    let list = files::read(CWD, &ShortPath::new(format_args!("/proc/locks")), MAX_LIST)?;
    Ok(contended(&String::from_utf8_lossy(&list)))
}

/// Parses the list, in which the lines of the waiters follow the line of their lock.
fn contended(list: &str) -> Vec<ContendedFileLock> {
    let mut all: Vec<ContendedFileLock> = Vec::new();
    for line in list.lines() {
        let Some((waits, file, pid)) = parse(line) else { continue };
        match all.last_mut() {
            Some(held) if waits && held.file == file => held.waiters.push(pid),
            _ if waits => {}
            _ => all.push(ContendedFileLock { file, holder: pid, waiters: Vec::new() }),
        }
    }
    all.retain(|lock| !lock.waiters.is_empty());
    all
}

/// Parses a line such as `2: POSIX  ADVISORY  WRITE 4321 fe:00:5678 0 EOF`. The first value is
/// `true` for a waiter.
fn parse(line: &str) -> Option<(bool, FileId, Option<u32>)> {
    let mut fields = line.split_ascii_whitespace().skip(1).peekable();
    let waits = fields.next_if_eq(&"->").is_some();
    if !["FLOCK", "POSIX", "OFDLCK"].contains(&fields.next()?) {
        return None;
    }
    let pid = fields.nth(2)?.parse().ok().filter(|&pid| pid > 0);
    let mut file = fields.next()?.splitn(3, ':');
    let mut number = || u32::from_str_radix(file.next()?, 16).ok();
    let device = [number()?, number()?];
    Some((waits, FileId { device, inode: file.next()?.parse().ok()? }, pid))
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

    /// Returns `true` if a lock on this file is held through one of the process's first `most`
    /// descriptors.
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

    fn holds(&self, descriptor: u32) -> bool {
        let path = ShortPath::new(format_args!("fdinfo/{descriptor}"));
        let info = files::read(&self.directory, &path, MAX_INFO).unwrap_or_default();
        let info = String::from_utf8_lossy(&info);
        info.lines().filter_map(|line| line.strip_prefix("lock:")).any(|line| parse(line).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_are_listed_with_those_that_wait_for_them() {
        let list = "1: FLOCK  ADVISORY  WRITE 77 fe:1a:5 0 EOF\n\
                    1: -> FLOCK  ADVISORY  WRITE 78 fe:1a:5 0 EOF\n\
                    1: ->  -> FLOCK  ADVISORY  WRITE 79 fe:1a:5 0 EOF\n\
                    2: POSIX  ADVISORY  READ  80 fe:1a:6 100 199\n\
                    3: OFDLCK ADVISORY  WRITE -1 fe:1a:7 0 EOF\n\
                    3: -> OFDLCK ADVISORY  WRITE -1 fe:1a:7 0 EOF\n\
                    4: LEASE  ACTIVE    READ  81 fe:1a:8 0 EOF\n\
                    5: FLOCK  ADVISORY  WRITE 82 <none>:0 0 EOF\n\
                    6: -> POSIX  ADVISORY  WRITE 83 fe:1a:9 0 EOF\n\
                    7: POSIX  ADVISORY\n\n";
        let lock = |inode, holder, waiters: &[Option<u32>]| {
            let file = FileId { device: [0xfe, 0x1a], inode };
            ContendedFileLock { file, holder, waiters: waiters.to_vec() }
        };
        let expected = [lock(5, Some(77), &[Some(78)]), lock(7, None, &[None])];
        assert_eq!(contended(list), expected);
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
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(holds, "the lock belongs to the open file, which both processes have");
        let other = tempfile::NamedTempFile::new().unwrap();
        let locked = other.reopen().unwrap();
        locked.lock().unwrap();
        let opened = other.reopen().unwrap();
        let waits = std::thread::spawn(move || opened.lock());
        let own = Some(std::process::id());
        let begun = std::time::Instant::now();
        let is_ours = |lock: &ContendedFileLock| lock.holder == own && lock.waiters == [own];
        while !contended_file_locks().unwrap().iter().any(is_ours) {
            assert!(begun.elapsed().as_secs() < 20);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        locked.unlock().unwrap();
        waits.join().unwrap().unwrap();
    }
}
