//! Small files below `/proc/PID`.

use std::fmt;
use std::io::{Cursor, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;

/// A path stored without allocation.
pub(crate) struct ShortPath {
    bytes: [u8; 48],
    length: usize,
}

impl ShortPath {
    /// A path of more than 48 bytes becomes empty, so that it names no file.
    pub(crate) fn new(text: fmt::Arguments<'_>) -> ShortPath {
        let mut bytes = [0; 48];
        let mut cursor = Cursor::new(&mut bytes[..]);
        let length = match cursor.write_fmt(text) {
            Ok(()) => cursor.position() as usize,
            Err(_) => 0,
        };
        ShortPath { bytes, length }
    }

    /// A file of a thread, below `/proc/PID`.
    pub(crate) fn task(tid: u32, file: &str) -> ShortPath {
        ShortPath::new(format_args!("task/{tid}/{file}"))
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

pub(crate) fn open(directory: impl AsFd, path: &ShortPath) -> Result<OwnedFd, Errno> {
    // Without `O_NONBLOCK`, opening a named pipe would block.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    rustix::fs::openat(directory, path.as_str(), flags, Mode::empty())
}

pub(crate) fn open_directory(directory: impl AsFd, path: &ShortPath) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(directory, path.as_str(), flags, Mode::empty())
}

pub(crate) fn read(directory: impl AsFd, path: &ShortPath, limit: usize) -> Result<Vec<u8>, Errno> {
    let file = open(directory, path)?;
    let mut bytes = vec![0; limit];
    let mut length = 0;
    while length < limit {
        match rustix::io::read(&file, &mut bytes[length..])? {
            0 => break,
            more => length += more,
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// Lists the numeric entries of a directory in ascending order; none if the process to which the
/// directory belongs has ended.
pub(crate) fn list_numbers(directory: impl AsFd, numbers: &mut Vec<u32>) -> Result<(), Errno> {
    numbers.clear();
    rustix::fs::seek(&directory, SeekFrom::Start(0))?;
    let mut buffer = [MaybeUninit::uninit(); 16 << 10];
    let mut entries = RawDir::new(&directory, &mut buffer);
    while let Some(entry) = entries.next() {
        match entry {
            Ok(entry) => numbers
                .extend(entry.file_name().to_str().ok().and_then(|name| name.parse::<u32>().ok())),
            Err(Errno::NOENT | Errno::SRCH) => break,
            Err(errno) => return Err(errno),
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) process: u32,
    /// Effective user ID.
    pub(crate) owner: u32,
}

impl Status {
    /// Maximum number of bytes that are read. `Tgid` and `Uid` come before the list of groups,
    /// which may be long.
    const HEAD: usize = 4 << 10;

    pub(crate) fn read(directory: impl AsFd) -> Result<Status, Errno> {
        let text = read(directory, &ShortPath::new(format_args!("status")), Status::HEAD)?;
        Status::parse(&text).ok_or(Errno::SRCH)
    }

    /// The name in the first line cannot forge other lines: the kernel escapes line feeds in it.
    pub(crate) fn parse(text: &[u8]) -> Option<Status> {
        let field = |name: &[u8], index| {
            let line =
                text.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(name))?;
            std::str::from_utf8(line).ok()?.split_ascii_whitespace().nth(index)?.parse().ok()
        };
        Some(Status { process: field(b"Tgid:", 0)?, owner: field(b"Uid:", 1)? })
    }
}

/// TID of a thread in its own PID namespace, if `/proc` belongs to another namespace.
pub(crate) fn inner_tid(directory: impl AsFd, tid: u32) -> Option<u32> {
    parse_inner_tid(&read(directory, &ShortPath::task(tid, "status"), Status::HEAD).ok()?)
}

/// Parses the `NSpid` line, which lists the TIDs from the outermost namespace to the innermost.
fn parse_inner_tid(text: &[u8]) -> Option<u32> {
    let mut lines = text.split(|&byte| byte == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(b"NSpid:"))?;
    let tids = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    tids.skip(1).last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_are_written_or_empty() {
        assert_eq!(ShortPath::task(u32::MAX, "syscall").as_str(), "task/4294967295/syscall");
        assert_eq!(ShortPath::new(format_args!("{:60}", 1)).as_str(), "");
    }

    #[test]
    fn status_is_read() {
        let text = b"Name:\ta\\nTgid:\t9\nUmask:\t0022\nTgid:\t42\nPid:\t43\nUid:\t1\t2\t3\t4\n";
        assert_eq!(Status::parse(text), Some(Status { process: 42, owner: 2 }));
        assert_eq!(Status::parse(b"Tgid:\t42\nUid:\t1\n"), None);
        assert_eq!(Status::parse(b"Tgid:\t-1\nUid:\t1\t1\n"), None);
    }

    #[test]
    fn threads_of_containers_have_two_numbers() {
        assert_eq!(parse_inner_tid(b"Pid:\t4711\nNSpid:\t4711\t63\t5\nNSpgid:\t1\n"), Some(5));
        for text in [&b"NSpid:\t4711\n"[..], b"Pid:\t4711\n", b"NSpid:\t1\tx\n", b""] {
            assert_eq!(parse_inner_tid(text), None);
        }
    }

    #[test]
    fn directories_are_listed_again_and_again() {
        let directory = tempfile::tempdir().unwrap();
        let open = std::fs::File::open(directory.path()).unwrap();
        let mut numbers = vec![7];
        for count in 0..1_000 {
            if count % 100 == 0 {
                list_numbers(&open, &mut numbers).unwrap();
                assert_eq!(numbers, (0..count).collect::<Vec<_>>());
            }
            std::fs::write(directory.path().join(count.to_string()), "").unwrap();
            std::fs::write(directory.path().join(format!("x{count}")), "").unwrap();
        }
    }

    proptest! {
        #[test]
        fn any_status_is_read_or_refused(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Status::parse(&text);
        }
    }
}
