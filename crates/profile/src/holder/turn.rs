//! Turns: whom a lock went to that a woken waiter was about to take.

use std::collections::HashSet;

use crate::circumstances::{Circumstances, Last};
use crate::perf::CpuState;
use crate::primitive::Hold;

/// A waiter that was woken for nothing has gone back to sleep after running this long at most: it
/// has looked at the word, perhaps spun for a while as parking_lot does, and called the kernel
/// (3 to 20 µs on a virtual machine). One that ran longer may have had the lock.
const RETRY_NS: u64 = 50_000;

/// A waiter has been woken and does not run yet: the thread that has taken the lock meanwhile,
/// or `Some(None)` if the lock is the waiter's. `None` if it is not known which.
///
/// The kernel does not show from which wait a thread was woken. It is taken to be the lock's if
/// all runs since it was seen asleep there were too short to use the lock. So a thread that
/// sleeps briefly in many other places meanwhile is mistaken for one that is woken in vain.
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
    // A word that names no owner: if a single thread has a CPU, then that one took it.
    let awake = |&&tid: &&u32| {
        matches!(timeline.state(tid, at), Some(CpuState::Running | CpuState::Preempted))
    };
    let mut awake = threads.iter().filter(awake);
    let first = awake.next()?;
    awake.next().is_none().then_some(Some(*first))
}
