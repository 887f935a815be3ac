//! Files that a process has open (proc_pid_fd(5), proc_pid_fdinfo(5)).

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags, statat, statx};

use super::files::{self, ShortPath};
use super::stat::Stat;
use super::{Process, stat_path};

/// Maximum number of bytes read of `/proc/PID/fdinfo/FD`. For an epoll descriptor, this file has
/// about 70 bytes for each watched descriptor.
const MAX_INFO: usize = 64 << 10;

/// A descriptor watched by an epoll descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpollEntry {
    /// Number that the descriptor had when it was added.
    pub descriptor: u32,
    /// The requested events, as in epoll(7).
    pub events: u32,
}

/// One end of an unnamed pipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipeEnd {
    /// The kernel's name for the pipe, such as `pipe:[4026]`.
    pub pipe: PathBuf,
    /// True if this end can be read from.
    pub reads: bool,
    /// True if this end can be written to.
    pub writes: bool,
}

impl Process {
    /// The kernel's name for the file to which an open descriptor refers, such as a path.
    ///
    /// # Errors
    ///
    /// If the descriptor is not open, the process has ended, or permission is missing.
    pub fn descriptor_target(&self, descriptor: u32) -> io::Result<PathBuf> {
        let path = ShortPath::new(format_args!("fd/{descriptor}"));
        let target = rustix::fs::readlinkat(&self.directory, path.as_str(), Vec::new())?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    /// Returns `true` if a descriptor refers to a pipe, named or not. Network file systems are not
    /// queried.
    ///
    /// # Errors
    ///
    /// If the descriptor is not open, the process has ended, or permission is missing.
    pub fn is_pipe(&self, descriptor: u32) -> io::Result<bool> {
        let path = ShortPath::new(format_args!("fd/{descriptor}"));
        let flags = AtFlags::STATX_DONT_SYNC;
        let found = statx(&self.directory, path.as_str(), flags, StatxFlags::TYPE)?;
        Ok(FileType::from_raw_mode(found.stx_mode.into()) == FileType::Fifo)
    }

    /// The end of an unnamed pipe to which a descriptor refers; `None` for any other file.
    ///
    /// # Errors
    ///
    /// If the descriptor is not open, the process has ended, or permission is missing.
    pub fn pipe_end(&self, descriptor: u32) -> io::Result<Option<PipeEnd>> {
        let pipe = self.descriptor_target(descriptor)?;
        if !pipe.as_os_str().as_encoded_bytes().starts_with(b"pipe:") {
            return Ok(None);
        }
        // The permissions of the link itself show how the descriptor was opened.
        let path = ShortPath::new(format_args!("fd/{descriptor}"));
        let link = statat(&self.directory, path.as_str(), AtFlags::SYMLINK_NOFOLLOW)?;
        let mode = Mode::from_raw_mode(link.st_mode);
        let (reads, writes) = (mode.contains(Mode::RUSR), mode.contains(Mode::WUSR));
        Ok(Some(PipeEnd { pipe, reads, writes }))
    }

    /// Descriptors that an epoll descriptor watches; only the first ones if there are thousands.
    ///
    /// # Errors
    ///
    /// If the descriptor is not open, the process has ended, or permission is missing.
    pub fn watched_by_epoll(&self, descriptor: u32) -> io::Result<Vec<EpollEntry>> {
        let path = ShortPath::new(format_args!("fdinfo/{descriptor}"));
        Ok(watched(&files::read(&self.directory, &path, MAX_INFO)?))
    }

    /// Open descriptors in ascending order.
    ///
    /// # Errors
    ///
    /// If the process has ended, or permission is missing.
    pub fn descriptors(&self) -> io::Result<Vec<u32>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY;
        let directory = rustix::fs::openat(&self.directory, "fd", flags, Mode::empty())?;
        let mut numbers = Vec::new();
        files::list_numbers(directory, &mut numbers)?;
        Ok(numbers)
    }

    /// Number of major page faults so far: those that read from a disk.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn major_faults(&self) -> io::Result<u64> {
        Ok(Stat::read(&self.directory, &stat_path())?.major_faults)
    }
}

/// Parses lines such as `tfd:        5 events:       19 data: …`. The last line may have been cut
/// off.
fn watched(info: &[u8]) -> Vec<EpollEntry> {
    let watched = |line: &[u8]| {
        let line = line.strip_suffix(b"\n")?.strip_prefix(b"tfd:")?;
        let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
        let descriptor = words.next()?.parse().ok()?;
        let events = words.nth(1).and_then(|events| u32::from_str_radix(events, 16).ok())?;
        Some(EpollEntry { descriptor, events })
    };
    info.split_inclusive(|&byte| byte == b'\n').filter_map(watched).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_that_epoll_watches_are_read() {
        let info = b"pos:\t0\nflags:\t02000002\nmnt_id:\t16\nino:\t9\n\
                     tfd:        5 events:       19 data:                5  pos:0 ino:1 sdev:f\n\
                     tfd:       12 events: 80000001 data:                c  pos:0 ino:2 sdev:f\n\
                     tfd:        7 ev";
        let one = |descriptor, events| EpollEntry { descriptor, events };
        assert_eq!(watched(info), [one(5, 0x19), one(12, 0x8000_0001)]);
        assert!(watched(b"").is_empty() && watched(b"tfd: x\n\ntfd:\n").is_empty());
    }

    #[test]
    fn both_ends_of_a_pipe_are_told_apart() {
        let (reads, writes) = rustix::pipe::pipe().unwrap();
        let mut sleep = std::process::Command::new("sleep");
        let mut child = sleep.arg("60").stdin(reads).stdout(writes).spawn().unwrap();
        let process = Process::open(child.id()).unwrap();
        let ends = [0, 1].map(|descriptor| process.pipe_end(descriptor).unwrap().unwrap());
        assert_eq!(ends[0].pipe, ends[1].pipe);
        assert_eq!(ends.map(|it| (it.reads, it.writes)), [(true, false), (false, true)]);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn named_pipes_are_told_from_files() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, mode, 0).unwrap();
        let pipe = std::fs::File::options().read(true).write(true).open(&fifo).unwrap();
        let file = std::fs::File::create(directory.path().join("file")).unwrap();
        let mut sleep = std::process::Command::new("sleep");
        let mut child = sleep.arg("60").stdin(pipe).stdout(file).spawn().unwrap();
        let process = Process::open(child.id()).unwrap();
        assert!(process.is_pipe(0).unwrap() && !process.is_pipe(1).unwrap());
        assert_eq!(process.descriptor_target(0).unwrap(), fifo);
        assert!(process.descriptors().unwrap().starts_with(&[0, 1, 2]));
        assert!(process.watched_by_epoll(0).unwrap().is_empty());
        assert_eq!(process.pipe_end(0).unwrap(), None);
        assert!(process.major_faults().is_ok());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
