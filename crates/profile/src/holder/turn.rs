//! Finds the thread that took a lock before a woken waiter could.

use std::collections::HashSet;

use crate::circumstances::{Circumstances, Last};
use crate::perf::CpuState;
use crate::primitive::Hold;

/// Longest run in nanoseconds of a waiter that was woken in vain. Such a waiter only checks the
/// word, may spin for a while as parking_lot does, and calls the kernel (3 to 20 µs on a virtual
/// machine). In a longer run, it may have held the lock.
const RETRY_NS: u64 = 50_000;

/// Returns the thread that took the lock after the waiter `tid` was woken but before the waiter
/// ran. Returns `Some(None)` if no other thread took the lock, and `None` if that is unknown.
///
/// The kernel does not show the object of a past wait. A woken thread is taken to have waited for
/// this lock if it was last seen asleep there and all its runs since were too short to use the
/// lock. So a thread that has since slept briefly in many other places is mistaken for one that was
/// woken in vain.
pub(crate) fn turn(
    threads: &HashSet<u32>,
    hold: Option<Hold>,
    tid: u32,
    last: Last,
    at: u64,
    seen: &Circumstances<'_>,
) -> Option<Option<u32>> {
    let timeline = seen.timeline.filter(|_| !seen.late)?;
    if timeline.longest_run(tid, last.asleep_at, at)? > RETRY_NS {
        return None;
    }
    let owner = match hold? {
        Hold::Free => return Some(None),
        Hold::Held { owner } => owner,
        Hold::Readers(_) | Hold::Unseen => return None,
    };
    // A lock that is handed over belongs to its new holder even before that thread runs.
    if owner == Some(tid) || timeline.next_run(tid, at)? > RETRY_NS {
        return Some(None);
    }
    if owner.is_some() {
        return Some(owner);
    }
    // The word names no owner. If only one thread runs or was preempted, it has taken the lock.
    let awake = |&&tid: &&u32| {
        matches!(timeline.state(tid, at), Some(CpuState::Running | CpuState::Preempted))
    };
    let mut awake = threads.iter().filter(awake);
    let first = awake.next()?;
    awake.next().is_none().then_some(Some(*first))
}
