//! Bytes of a file: from the disk, or copied from a program's memory.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) enum Source {
    File { file: File, device: u64, inode: u64, size: u64 },
    Bytes(Box<[u8]>),
}

impl Source {
    /// Opens a regular file. Pipes and devices are refused, because they could block or never end.
    pub(super) fn open(path: &Path) -> Option<Source> {
        let file = fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC)
            .open(path)
            .ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() {
            return None;
        }
        let (device, inode, size) = (metadata.dev(), metadata.ino(), metadata.len());
        Some(Source::File { file, device, inode, size })
    }

    pub(super) fn from_bytes(bytes: impl Into<Box<[u8]>>) -> Source {
        Source::Bytes(bytes.into())
    }

    pub(super) fn identity(&self) -> Option<(u64, u64)> {
        match self {
            Source::File { device, inode, .. } => Some((*device, *inode)),
            Source::Bytes(_) => None,
        }
    }

    /// Folder of a file, as seen by the profiler.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        let Source::File { file, inode, .. } = self else { return None };
        let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        // In another mount namespace, a different file may be at this path.
        let same = fs::metadata(&path).is_ok_and(|metadata| metadata.ino() == *inode);
        same.then(|| path.parent().map(Path::to_path_buf))?
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Source::File { size, .. } => *size,
            Source::Bytes(bytes) => bytes.len() as u64,
        }
    }

    pub(super) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        match self {
            Source::File { file, .. } => read_fully(file, offset, buffer),
            Source::Bytes(bytes) => {
                let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..));
                let rest = rest.unwrap_or_default();
                let length = rest.len().min(buffer.len());
                buffer[..length].copy_from_slice(&rest[..length]);
                length
            }
        }
    }

    /// Reads exactly `length` bytes; `None` if there are fewer, or if `length` exceeds `most`.
    pub(super) fn read(&self, offset: u64, length: u64, most: u64) -> Option<Vec<u8>> {
        if length > most || offset.checked_add(length)? > self.len() {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        (self.read_at(offset, &mut bytes) == bytes.len()).then_some(bytes)
    }
}

pub(super) fn read_fully(file: &File, offset: u64, buffer: &mut [u8]) -> usize {
    let mut length = 0;
    while length < buffer.len() {
        let Some(at) = offset.checked_add(length as u64) else { break };
        match file.read_at(&mut buffer[length..], at) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    length
}
