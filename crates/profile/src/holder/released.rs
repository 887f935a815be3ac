//! Detects locks that are released by a thread other than their owner, in the way that events are
//! signalled.
//!
//! POSIX forbids this for a mutex, but it works. If the thread named by the word has slept since
//! before the word was read, and the word changes, another thread has released the lock.

use threadtoll_stacks::process::Activity;

use super::{SampledLock, SampledThreads};
use crate::perf::CpuState;
use crate::primitive::{Hold, Kind};

/// A release is attributed to another thread only if the owner had already slept for at least this
/// long when the word was read.
const ASLEEP_NS: u64 = 1_000_000;

/// Number of releases, by its owner and by other threads, of a lock whose owner had been seen
/// asleep.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AsleepOwner {
    /// An owner that was asleep in the previous sample, and the time of that sample.
    last: Option<(u32, u64)>,
    by_owner: u64,
    by_others: u64,
}

impl AsleepOwner {
    /// Compares the lock's owner with that of the previous sample.
    pub(super) fn see(&mut self, threads: &SampledThreads<'_>, lock: &SampledLock<'_>, at: u64) {
        // Only the words of these kinds show the owner and the state of the lock at the same
        // instant.
        if !matches!(lock.identity.kind(), Kind::Mutex | Kind::RwLock) {
            return;
        }
        let owner = match lock.hold {
            Hold::Unseen => return,
            Hold::Held { owner } => owner,
            Hold::Free | Hold::Readers(_) => None,
        };
        if let Some((before, then)) = self.last.filter(|&(before, _)| Some(before) != owner) {
            let slept = slept_since(threads, before, at);
            let all_along = slept.is_some_and(|since| since + ASLEEP_NS <= then);
            let by = if all_along { &mut self.by_others } else { &mut self.by_owner };
            *by += 1;
        }
        let asleep = |tid: &u32| {
            let mut read = threads.read.iter();
            read.any(|read| read.tid == *tid && matches!(read.activity, Activity::Asleep(_)))
        };
        self.last = owner.filter(asleep).map(|tid| (tid, at));
    }

    /// Returns `true` if most locks of sleeping owners were released by another thread.
    pub(super) fn released_by_others(self) -> bool {
        self.by_others > self.by_owner
    }
}

/// Start of a thread's present sleep; `None` if the thread is awake, or if that is unknown.
fn slept_since(threads: &SampledThreads<'_>, tid: u32, at: u64) -> Option<u64> {
    let timeline = threads.seen.timeline?;
    match timeline.state_since(tid, at) {
        Some((CpuState::SwitchedOut, since)) => Some(since),
        Some(_) => None,
        // The thread was asleep when last seen, and no context switch has been recorded since.
        None => timeline.still_since(tid, at, true),
    }
}
