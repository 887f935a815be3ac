//! Locks that are released by a thread other than their owner, as if they were events.
//!
//! POSIX forbids this for a mutex, but it works. If the thread named by the word has slept since
//! before the word was read, and the word changes, another thread has released the lock.

use threadtoll_stacks::process::Activity;

use super::{SampledLock, SampledThreads};
use crate::perf::CpuState;
use crate::primitive::{Hold, Kind};

/// Time for which the owner must have slept when the word was read.
const ASLEEP_NS: u64 = 1_000_000;

/// Releases of a lock by its owner, and by other threads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AsleepOwner {
    /// An owner that was asleep in the previous sample, and the time of that sample.
    last: Option<(u32, u64)>,
    by_owner: u64,
    by_others: u64,
}

impl AsleepOwner {
    /// Notes the lock in a sample.
    pub(super) fn see(&mut self, threads: &SampledThreads<'_>, lock: &SampledLock<'_>, at: u64) {
        // In the words of these kinds, owner and state change together.
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

    /// Returns `true` if most sleeping owners did not release the lock themselves.
    pub(super) fn released_by_others(self) -> bool {
        self.by_others > self.by_owner
    }
}

/// Time since when a thread has slept; `None` if it is awake, or if that is not known.
fn slept_since(threads: &SampledThreads<'_>, tid: u32, at: u64) -> Option<u64> {
    let timeline = threads.seen.timeline?;
    match timeline.state_since(tid, at) {
        Some((CpuState::SwitchedOut, since)) => Some(since),
        Some(_) => None,
        // The thread was asleep when last seen, and has not been switched since.
        None => timeline.still_since(tid, at, true),
    }
}
