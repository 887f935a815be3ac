//! Turns: which thread took a lock that a woken waiter was about to take.

use std::collections::HashSet;

use crate::circumstances::{Circumstances, Last};
use crate::perf::CpuState;
use crate::primitive::Hold;

/// Maximum length of a run after which a waiter that goes back to sleep was woken in vain: it has
/// checked the word, perhaps spun for a while as parking_lot does, and called the kernel (3 to 20
/// µs on a virtual machine). If it ran longer, it may have had the lock.
const RETRY_NS: u64 = 50_000;

/// The thread that has taken the lock while a waiter, already woken, does not run yet. `Some(None)`
/// if no other thread has taken it; `None` if that is unknown.
///
/// The kernel does not show from which wait a thread was woken. It is taken to be the wait for this
/// lock if the thread was seen asleep there and all its runs since were too short to use the lock.
/// A thread that has since slept briefly in many other places is therefore mistaken for one that
/// was woken in vain.
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
    // A lock that is handed over is held before its new holder runs.
    if owner == Some(tid) || timeline.next_run(tid, at)? > RETRY_NS {
        return Some(None);
    }
    if owner.is_some() {
        return Some(owner);
    }
    // The word names no owner. If only one thread has a CPU, that thread has taken the lock.
    let awake = |&&tid: &&u32| {
        matches!(timeline.state(tid, at), Some(CpuState::Running | CpuState::Preempted))
    };
    let mut awake = threads.iter().filter(awake);
    let first = awake.next()?;
    awake.next().is_none().then_some(Some(*first))
}
