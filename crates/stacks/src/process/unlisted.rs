//! Finds threads that may end before the next listing.
//!
//! The kernel lists threads in the order in which they began, and a listing may begin anywhere in
//! that order (`proc_task_readdir` of `fs/proc/base.c`). So reading one entry at a random position
//! picks a random living thread. The kernel then walks along its list, at some ten nanoseconds per
//! thread; a complete listing of thousands takes milliseconds.

use std::mem::MaybeUninit;

use rustix::fs::{RawDir, SeekFrom};

use super::Process;
use super::thread::Thread;

/// Number of entries before those of the threads: `.` and `..`.
const DOTS: u64 = 2;

/// Size of one directory entry in bytes: a header of 19, the ten digits of a TID, and padding.
const ENTRY: usize = 40;

impl Process {
    /// Number of new threads in all [listings](Process::refresh) but the first. Threads that ended
    /// before they were listed are missing.
    pub fn births(&self) -> u64 {
        self.births
    }

    /// Number of threads at this moment. Takes one system call.
    pub fn threads_now(&self) -> usize {
        let links = rustix::fs::fstat(&self.tasks).map_or(0, |stat| stat.st_nlink);
        links.saturating_sub(DOTS + u64::from(self.first_ended)) as usize
    }

    /// TID of the thread at this position in the order in which the threads began; `None` if there
    /// are fewer threads by now.
    pub fn thread_at(&self, place: usize) -> Option<u32> {
        let place = DOTS + place as u64 + u64::from(self.first_ended);
        rustix::fs::seek(&self.tasks, SeekFrom::Start(place)).ok()?;
        let mut room = [MaybeUninit::uninit(); ENTRY];
        let mut entries = RawDir::new(&self.tasks, &mut room);
        entries.next()?.ok()?.file_name().to_str().ok()?.parse().ok()
    }

    /// A thread by its TID, listed or not.
    pub fn unlisted(&self, tid: u32) -> Thread {
        Thread::new(tid, &self.directory)
    }
}
