//! Reads a process's memory with `process_vm_readv(2)`: many small address ranges (windows) per
//! call.
//!
//! A call stops at the first page that cannot be read. Windows are therefore split at page
//! boundaries, and a batch continues after the piece that failed. Each unreadable piece costs one
//! more call, so remove unmapped addresses from a batch.
//!
//! A page that is not in memory (swap, a network file, `userfaultfd(2)`) is paged in, as if the
//! process had touched it, and the read waits.

use std::mem::{offset_of, size_of};
use std::ops::Range;

use rustix::io::Errno;

/// Maximum number of pieces per call (the kernel's `UIO_MAXIOV`).
const MAX_PIECES: usize = 1024;

/// The memory of a process, addressed by PID. The kernel may reuse the PID, so bytes count only if
/// the process still runs afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    tid: u32,
}

impl Memory {
    /// The memory of the process to which this thread belongs.
    pub fn of(tid: u32) -> Memory {
        Memory { tid }
    }

    pub(crate) fn probe(self) -> Result<(), Errno> {
        match self.call(&mut [0], &[Piece { address: 0, length: 1 }]) {
            // Nothing is mapped at address 0; the kernel returns `EFAULT` only to readers with
            // permission.
            Ok(_) | Err(Errno::FAULT) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Returns `true` if `process_vm_readv` is forbidden even for this process's own memory.
    pub(crate) fn is_forbidden() -> bool {
        matches!(Memory::of(std::process::id()).probe(), Err(Errno::PERM | Errno::ACCESS))
    }

    /// Like [`read`](Memory::read), but with a single call. The kernel may return fewer bytes than
    /// there are before the first unreadable page, or none at all.
    #[inline]
    pub fn read_once(self, address: u64, bytes: &mut [u8]) -> usize {
        let length = bytes.len();
        self.call(bytes, &[Piece { address: address as usize, length }]).unwrap_or(0)
    }

    /// Reads bytes from `address` on. Returns the number of bytes before the first unreadable page.
    pub fn read(self, address: u64, bytes: &mut [u8]) -> usize {
        // There is nothing beyond the end of the address space.
        let length = bytes.len().min(usize::try_from(u64::MAX - address).unwrap_or(usize::MAX));
        let mut done = 0;
        // The kernel may return part of a piece that spans several pages, although the manual says
        // otherwise.
        while done < length {
            let address = address + done as u64;
            let page = page_size() - address % page_size();
            let rest = length - done;
            let piece = |length| Piece { address: address as usize, length };
            let read = match self.call(&mut bytes[done..length], &[piece(rest)]) {
                Err(Errno::FAULT) if (rest as u64) > page => {
                    let page = page as usize;
                    self.call(&mut bytes[done..done + page], &[piece(page)])
                }
                read => read,
            };
            match read {
                Ok(more) if more > 0 => done += more,
                _ => break,
            }
        }
        done
    }

    /// Reads all windows of a batch.
    pub fn read_many(self, batch: &mut Batch) {
        let Batch { pieces, read, bytes, .. } = batch;
        read.fill(false);
        let mut next = 0;
        let mut at = 0;
        while next < pieces.len() {
            let end = pieces.len().min(next + MAX_PIECES);
            let mut rest = match self.call(&mut bytes[at..], &pieces[next..end]) {
                Ok(read) => read,
                Err(Errno::FAULT) => 0,
                // The process has ended, or belongs to another user now.
                Err(_) => return,
            };
            while next < end && pieces[next].length <= rest {
                read[next] = true;
                rest -= pieces[next].length;
                at += pieces[next].length;
                next += 1;
            }
            if next < end {
                at += pieces[next].length;
                next += 1;
            }
        }
    }

    fn call(self, bytes: &mut [u8], pieces: &[Piece]) -> Result<usize, Errno> {
        let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        // SAFETY: `local` describes a live, writable slice, the only memory of this process that
        // the call writes to, whatever the pieces are. The pieces are addresses of another process,
        // laid out as `iovec` (see below), and as many as said.
        let read = unsafe {
            libc::process_vm_readv(
                self.tid as libc::pid_t,
                &local,
                1,
                pieces.as_ptr().cast::<libc::iovec>(),
                pieces.len() as libc::c_ulong,
                0,
            )
        };
        match usize::try_from(read) {
            Ok(read) => Ok(read),
            Err(_) => {
                Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
            }
        }
    }
}

fn page_size() -> u64 {
    rustix::param::page_size() as u64
}

/// An address range of the other process: an `iovec` without the pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
struct Piece {
    address: usize,
    length: usize,
}

const _: () = {
    assert!(size_of::<Piece>() == size_of::<libc::iovec>());
    assert!(offset_of!(Piece, address) == offset_of!(libc::iovec, iov_base));
    assert!(offset_of!(Piece, length) == offset_of!(libc::iovec, iov_len));
};

/// Windows of memory that are repeatedly read together.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    windows: Vec<BatchWindow>,
    pieces: Vec<Piece>,
    /// True for the pieces that the last read obtained.
    read: Vec<bool>,
    bytes: Vec<u8>,
}

#[derive(Clone, Debug)]
struct BatchWindow {
    address: u64,
    bytes: Range<usize>,
    pieces: Range<usize>,
}

impl Batch {
    /// Creates an empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Removes all windows.
    pub fn clear(&mut self) {
        self.windows.clear();
        self.pieces.clear();
        self.read.clear();
        self.bytes.clear();
    }

    /// Number of windows.
    pub fn len(&self) -> usize {
        self.windows.len()
    }

    /// Returns `true` if the batch has no windows.
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// Adds a window and returns its index. A window that would extend beyond the last address is
    /// shortened.
    #[inline]
    pub fn push(&mut self, address: u64, length: usize) -> usize {
        let first = self.pieces.len();
        let end = address.saturating_add(length as u64);
        let mut from = address;
        while from < end {
            let until = (from - from % page_size()).saturating_add(page_size()).min(end);
            self.pieces.push(Piece { address: from as usize, length: (until - from) as usize });
            from = until;
        }
        self.read.resize(self.pieces.len(), false);
        let bytes = self.bytes.len()..self.bytes.len() + (end - address) as usize;
        self.bytes.resize(bytes.end, 0);
        self.windows.push(BatchWindow { address, bytes, pieces: first..self.pieces.len() });
        self.windows.len() - 1
    }

    /// The bytes of a window; `None` unless the last read obtained all of them.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let window = self.windows.get(index)?;
        let whole = self.read[window.pieces.clone()].iter().all(|&read| read);
        whole.then(|| &self.bytes[window.bytes.clone()])
    }

    /// Longest run of a window's bytes that the last read obtained, with the address of the first
    /// byte. Use this for windows that may extend into an unmapped page.
    #[inline]
    pub fn part(&self, index: usize) -> Option<(u64, &[u8])> {
        let window = self.windows.get(index)?;
        let mut longest = 0..0;
        let mut run = 0..0;
        for piece in window.pieces.clone() {
            let end = run.end + self.pieces[piece].length;
            run = if self.read[piece] { run.start..end } else { end..end };
            if run.len() > longest.len() {
                longest = run.clone();
            }
        }
        let bytes = self.bytes.get(window.bytes.clone())?.get(longest.clone())?;
        (!bytes.is_empty()).then_some((window.address + longest.start as u64, bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use proptest::prelude::*;

    use super::*;

    /// Pages of this process, some of them unreadable.
    struct Pages {
        start: *mut u8,
        mapped: Vec<bool>,
    }

    impl Pages {
        fn new(mapped: &[bool]) -> Pages {
            let size = page_size() as usize;
            let length = mapped.len() * size;
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            // SAFETY: a new mapping wherever there is room.
            let start = unsafe { libc::mmap(ptr::null_mut(), length, rights, flags, -1, 0) };
            assert_ne!(start, libc::MAP_FAILED);
            let start = start.cast::<u8>();
            for at in 0..length {
                let byte = start.wrapping_add(at);
                // SAFETY: within the mapping.
                unsafe { byte.write(pattern(at)) };
            }
            for (page, _) in mapped.iter().enumerate().filter(|(_, mapped)| !**mapped) {
                let page = start.wrapping_add(page * size).cast();
                // Not unmapped, so that no other test's memory is placed there.
                // SAFETY: a page of this mapping, to which nothing refers.
                assert_eq!(unsafe { libc::mprotect(page, size, libc::PROT_NONE) }, 0);
            }
            Pages { start, mapped: mapped.to_vec() }
        }

        fn address(&self, at: usize) -> u64 {
            self.start as u64 + at as u64
        }

        fn readable(&self, at: usize) -> bool {
            self.mapped.get(at / page_size() as usize) == Some(&true)
        }
    }

    impl Drop for Pages {
        fn drop(&mut self) {
            let length = self.mapped.len() * page_size() as usize;
            // SAFETY: the mapping made above, to which nothing refers any more.
            unsafe { libc::munmap(self.start.cast(), length) };
        }
    }

    fn pattern(at: usize) -> u8 {
        (at * 31 + at / 251) as u8
    }

    fn own() -> Memory {
        Memory::of(std::process::id())
    }

    #[test]
    fn reads_end_at_the_first_unreadable_page() {
        let page = page_size() as usize;
        let pages = Pages::new(&[true, true, false, true]);
        for (from, length, expected) in [
            (0, 10, 10),
            (page - 5, 10, 10),
            (0, 4 * page, 2 * page),
            (2 * page - 3, 80, 3),
            (2 * page, 80, 0),
            (3 * page, page, page),
        ] {
            let mut bytes = vec![0; length];
            assert_eq!(own().read(pages.address(from), &mut bytes), expected, "{from} {length}");
            let right = (from..from + expected).map(pattern);
            assert!(bytes[..expected].iter().copied().eq(right.clone()));
            bytes.fill(0);
            let once = own().read_once(pages.address(from), &mut bytes);
            assert!(once <= expected, "{from} {length}: {once}");
            assert!(bytes[..once].iter().copied().eq(right.take(once)));
        }
        for address in [0, 1, u64::MAX, u64::MAX - 3, 1 << 63, 0xffff_8000_0000_0000] {
            assert_eq!(own().read(address, &mut [0; 64]), 0);
        }
    }

    #[test]
    fn a_batch_is_read_again_and_again() {
        let word = std::sync::atomic::AtomicU32::new(1);
        let mut batch = Batch::new();
        let index = batch.push(word.as_ptr() as u64, 4);
        let nowhere = batch.push(0, 4);
        for value in 1..5u32 {
            word.store(value, std::sync::atomic::Ordering::Relaxed);
            own().read_many(&mut batch);
            assert_eq!(batch.get(index), Some(&value.to_ne_bytes()[..]));
            assert_eq!(batch.get(nowhere), None);
        }
        // Reading from a missing process discards the earlier bytes.
        Memory::of(i32::MAX as u32).read_many(&mut batch);
        assert_eq!(batch.get(index), None);
        batch.clear();
        assert!(batch.is_empty());
        assert_eq!(batch.get(0), None);
    }

    #[test]
    fn more_windows_than_a_call_takes() {
        let pages = Pages::new(&[true, false, true]);
        let page = page_size() as usize;
        let mut batch = Batch::new();
        let places: Vec<usize> = (0..5_000).map(|index| index * 7919 % (3 * page - 8)).collect();
        for &at in &places {
            batch.push(pages.address(at), 8);
        }
        own().read_many(&mut batch);
        for (index, &at) in places.iter().enumerate() {
            let readable = (at..at + 8).all(|at| pages.readable(at));
            assert_eq!(batch.get(index).is_some(), readable, "{at}");
        }
    }

    proptest! {
        #[test]
        fn windows_show_what_is_readable(
            mapped in proptest::collection::vec(any::<bool>(), 1..6),
            windows in proptest::collection::vec((0.0..1.0f64, 1usize..200), 1..40),
        ) {
            let pages = Pages::new(&mapped);
            let length = mapped.len() * page_size() as usize;
            let mut batch = Batch::new();
            let windows: Vec<(usize, usize)> = windows
                .into_iter()
                .map(|(share, size)| ((share * (length - size) as f64) as usize, size))
                .collect();
            for &(at, size) in &windows {
                batch.push(pages.address(at), size);
            }
            own().read_many(&mut batch);
            for (index, &(at, size)) in windows.iter().enumerate() {
                let readable: Vec<usize> =
                    (at..at + size).filter(|&at| pages.readable(at)).collect();
                let bytes: Vec<u8> = readable.iter().copied().map(pattern).collect();
                let whole = (readable.len() == size).then_some(&bytes[..]);
                prop_assert_eq!(batch.get(index), whole);
                let part = readable.first().map(|&first| (pages.address(first), &bytes[..]));
                prop_assert_eq!(batch.part(index), part);
            }
        }

        #[test]
        fn any_address_is_read_or_not(address: u64, length in 0usize..10_000) {
            let mut batch = Batch::new();
            let index = batch.push(address, length);
            own().read_many(&mut batch);
            let _ = (batch.get(index), batch.part(index));
            let _ = own().read(address, &mut vec![0; length]);
            let _ = own().read_once(address, &mut vec![0; length]);
        }
    }
}
