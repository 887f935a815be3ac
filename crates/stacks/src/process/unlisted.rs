//! Threads that may end before the next listing.
//!
//! The kernel lists threads in the order in which they began, and a listing may begin anywhere in
//! that order (`proc_task_readdir` of `fs/proc/base.c`). So reading one entry at a random position
//! draws a thread at random from those alive at that moment. This costs a walk along the list, of
//! some ten nanoseconds per thread, whereas a complete listing of thousands takes milliseconds.

use std::mem::MaybeUninit;

use rustix::fs::{RawDir, SeekFrom};

use super::Process;
use super::thread::Thread;

/// Number of entries at the beginning of every folder: one for the folder itself and one for its
/// parent.
const DOTS: u64 = 2;

/// Size of one entry: its head of 19 bytes, the ten digits of a TID, and padding.
const ENTRY: usize = 40;

impl Process {
    /// Number of threads that were new when they were [listed](Process::refresh), not counting the
    /// first listing. Threads that end before they are listed are missing.
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
