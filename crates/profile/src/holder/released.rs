//! Detects locks that are used as events: a thread other than the owner releases them.
//!
//! POSIX forbids this for a mutex, but it works. If the thread named by the word has slept since
//! before the word was read, and the word changes, another thread has released the lock.

use threadtoll_stacks::process::Activity;

use super::{SampledLock, SampledThreads};
use crate::perf::CpuState;
use crate::primitive::{Hold, Kind};

/// Minimum time in nanoseconds for which the owner must have slept when the word was read for a
/// release to be attributed to another thread.
const ASLEEP_NS: u64 = 1_000_000;

/// Number of releases by the owner, and by other threads, after the owner was seen asleep.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AsleepOwner {
    last: Option<(u32, u64)>,
    by_owner: u64,
    by_others: u64,
}

impl AsleepOwner {
    pub(super) fn see(&mut self, threads: &SampledThreads<'_>, lock: &SampledLock<'_>, at: u64) {
        // Only the words of these kinds show the owner and the state at one instant.
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

    pub(super) fn released_by_others(self) -> bool {
        self.by_others > self.by_owner
    }
}

fn slept_since(threads: &SampledThreads<'_>, tid: u32, at: u64) -> Option<u64> {
    let timeline = threads.seen.timeline?;
    match timeline.state_since(tid, at) {
        Some((CpuState::SwitchedOut, since)) => Some(since),
        Some(_) => None,
        // The thread was last seen asleep, and no context switch has been recorded since.
        None => timeline.still_since(tid, at, true),
    }
}
