//! Finds the thread that took a lock which a woken waiter was about to take.

use std::collections::HashSet;

use crate::circumstances::{Circumstances, Last};
use crate::perf::CpuState;
use crate::primitive::Hold;

/// If a woken waiter runs for at most this long and then sleeps again, it was woken in vain: it has
/// only checked the word, perhaps spun for a while as parking_lot does, and called the kernel (3 to
/// 20 µs on a virtual machine). If it ran longer, it may have held the lock.
const RETRY_NS: u64 = 50_000;

/// The thread that took the lock after the waiter `tid` was woken but before it ran. `Some(None)`
/// if no other thread has taken it; `None` if that is unknown.
///
/// The kernel does not show what a woken thread had been waiting for. It is taken to have waited
/// for this lock if it was last seen asleep there and all its runs since were too short to use the
/// lock. A thread that has since slept briefly in many other places is therefore mistaken for one
/// that was woken in vain.
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
    // The word names no owner. If only one thread is running or preempted, that thread has taken
    // the lock.
    let awake = |&&tid: &&u32| {
        matches!(timeline.state(tid, at), Some(CpuState::Running | CpuState::Preempted))
    };
    let mut awake = threads.iter().filter(awake);
    let first = awake.next()?;
    awake.next().is_none().then_some(Some(*first))
}
