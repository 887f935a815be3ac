//! `eventfd(2)`: a file descriptor that is readable once it has been written to.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

#[derive(Debug)]
pub(crate) struct EventFd(File);

impl EventFd {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: takes no pointer.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened, and nothing else owns it.
        Ok(EventFd(File::from(unsafe { OwnedFd::from_raw_fd(fd) })))
    }

    /// Makes the descriptor readable.
    pub(crate) fn write(&self) {
        // It fails only if the counter is full, and then the descriptor is readable.
        let _ = (&self.0).write(&1u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable. Returns the number of writes since the last read.
    pub(crate) fn read(&self) -> u64 {
        let mut count = [0; 8];
        // It fails if there was no write.
        (&self.0).read(&mut count).map_or(0, |_| u64::from_ne_bytes(count))
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
