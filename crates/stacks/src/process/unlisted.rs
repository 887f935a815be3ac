//! Threads that may be over before the next listing.
//!
//! The kernel lists threads in the order in which they began, and a listing may begin at any place
//! of that order (`proc_task_readdir` of `fs/proc/base.c`). So one entry at a random place is a
//! thread drawn from those that live at this moment, at the cost of a walk along the list, which
//! takes some ten nanoseconds a thread: a listing of thousands takes milliseconds.

use std::mem::MaybeUninit;

use rustix::fs::{RawDir, SeekFrom};

use super::Process;
use super::thread::Thread;

/// Entries for the folder itself and the one above it, which every folder begins with.
const DOTS: u64 = 2;

/// Room for one entry: its head of 19 bytes, the ten digits of a TID, and its alignment.
const ENTRY: usize = 40;

impl Process {
    /// Threads that were new when they were [listed](Process::refresh), but for the first listing.
    /// Some threads are over before they are ever listed.
    pub fn births(&self) -> u64 {
        self.births
    }

    /// Number of threads that it has at this moment. One system call.
    pub fn threads_now(&self) -> usize {
        let links = rustix::fs::fstat(&self.tasks).map_or(0, |stat| stat.st_nlink);
        links.saturating_sub(DOTS + u64::from(self.first_ended)) as usize
    }

    /// The thread at this place in the order in which they began; `None` if there is none by now.
    pub fn thread_at(&self, place: usize) -> Option<u32> {
        let place = DOTS + place as u64 + u64::from(self.first_ended);
        rustix::fs::seek(&self.tasks, SeekFrom::Start(place)).ok()?;
        let mut room = [MaybeUninit::uninit(); ENTRY];
        let mut entries = RawDir::new(&self.tasks, &mut room);
        entries.next()?.ok()?.file_name().to_str().ok()?.parse().ok()
    }

    /// A thread by its TID, whether or not it has been listed.
    pub fn unlisted(&self, tid: u32) -> Thread {
        Thread::new(tid, &self.directory)
    }
}
