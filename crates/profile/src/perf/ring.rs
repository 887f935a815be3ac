//! A ring buffer that the kernel fills.
//!
//! The first page holds the positions; see `perf_event_open(2)`, "MMAP layout". The kernel writes
//! only into the free part of the ring, so the records between tail and head may be read until the
//! tail moves.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

use super::records::{Event, each_record, event};
use crate::clock::now;

/// `data_head` and `data_tail` of `struct perf_event_mmap_page`.
const HEAD_OFFSET: usize = 1024;
const TAIL_OFFSET: usize = 1032;

/// Size in bytes of a report of lost records and of the switch record after it.
const LARGEST_SWITCH_BYTES: usize = 48 + 32;

/// The ring of one event and of the events redirected to it.
#[derive(Debug)]
pub(super) struct Ring {
    owner: OwnedFd,
    base: NonNull<u8>,
    page_bytes: usize,
    data_bytes: usize,
    latest: u64,
}

// SAFETY: the mapping belongs to this value alone and is tied to no thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps a ring of `data_bytes`, or of half as much, and so on, if the kernel does not let this
    /// process lock so much memory.
    ///
    /// # Errors
    ///
    /// If not even one page may be locked.
    pub(super) fn map(owner: OwnedFd, data_bytes: usize) -> io::Result<Ring> {
        let page_bytes = rustix::param::page_size();
        let mut pages = (data_bytes / page_bytes).max(1).next_power_of_two();
        loop {
            let bytes = (pages + 1) * page_bytes;
            // SAFETY: the kernel chooses the address, so the mapping replaces nothing of ours.
            let base = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    bytes,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED,
                    owner.as_raw_fd(),
                    0,
                )
            };
            if base != libc::MAP_FAILED
                && let Some(base) = NonNull::new(base.cast())
            {
                let data_bytes = pages * page_bytes;
                return Ok(Ring { owner, base, page_bytes, data_bytes, latest: 0 });
            }
            let error = io::Error::last_os_error();
            let too_much = matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM));
            if pages == 1 || !too_much {
                return Err(error);
            }
            pages /= 2;
        }
    }

    pub(super) fn owner(&self) -> &OwnedFd {
        &self.owner
    }

    /// Passes all events since the last call to `handle`. Records that cannot be read count as
    /// lost.
    pub(super) fn drain(&mut self, joined: &mut Vec<u8>, handle: &mut dyn FnMut(Event<'_>)) {
        // The kernel writes records before it advances the head, and reads the tail before it
        // writes more. Without acquire, we could read records that are not complete; without
        // release, the kernel could overwrite records that we still read.
        let head = self.position(HEAD_OFFSET).load(Ordering::Acquire);
        let tail = self.position(TAIL_OFFSET).load(Ordering::Relaxed);
        if head == tail {
            return;
        }
        let mut latest = self.latest;
        let filled = usize::try_from(head.wrapping_sub(tail)).unwrap_or(usize::MAX);
        let whole = filled <= self.data_bytes && {
            let (first, second) = self.between(tail, filled);
            each_record(first, second, joined, &mut |header, body| {
                let Some(mut event) = event(header, body) else { return };
                if let Event::Lost { after, .. } = &mut event {
                    *after = latest;
                }
                latest = event.at().max(latest);
                handle(event);
            })
        };
        // When the ring is full, the kernel drops records, but reports the loss only with the next
        // record.
        let full = filled.saturating_add(LARGEST_SWITCH_BYTES) >= self.data_bytes;
        if !whole || full {
            let records = u64::from(!whole);
            handle(Event::Lost { after: latest, until: now(), records });
        }
        self.latest = latest;
        self.position(TAIL_OFFSET).store(head, Ordering::Release);
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the first page of the mapping is longer than the offset.
        let position = unsafe { self.base.add(offset) };
        // SAFETY: the position is aligned, mapped as long as `self` lives, and accessed by atomic
        // operations only.
        unsafe { AtomicU64::from_ptr(position.cast().as_ptr()) }
    }

    fn between(&self, tail: u64, filled: usize) -> (&[u8], &[u8]) {
        let start = tail as usize & (self.data_bytes - 1);
        let until_end = filled.min(self.data_bytes - start);
        (self.data(start, until_end), self.data(0, filled - until_end))
    }

    fn data(&self, start: usize, bytes: usize) -> &[u8] {
        debug_assert!(start + bytes <= self.data_bytes);
        // SAFETY: the data pages follow the first page and are longer than `start`.
        let data = unsafe { self.base.add(self.page_bytes + start) };
        // SAFETY: the callers ask for bytes between tail and head, inside the data pages. The
        // kernel leaves them alone until the tail moves, after this borrow.
        unsafe { slice::from_raw_parts(data.as_ptr(), bytes) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let bytes = self.page_bytes + self.data_bytes;
        // SAFETY: the mapping was made with this length, and no borrow of it outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), bytes) };
    }
}
