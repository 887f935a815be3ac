//! The expensive side of an asymmetric barrier: `membarrier(2)`, private and expedited.
//!
//! In Dekker's pattern, each side stores and then loads what the other side stored, and both need a
//! full barrier in between. Here, the sender only keeps the compiler from reordering. The side that
//! is about to sleep makes every CPU that runs a thread of this process execute a full barrier.
//! When that call returns, everything that a sender stored before its barrier is visible to the
//! sleeper, and the sender's loads after its barrier see what the sleeper stored before the call.
//! The kernel promises this, outside Rust's memory model. `litmus.rs` tests it on real cores, and
//! `tests/membarrier.rs` checks the protocol built on it state by state.
//!
//! Since Linux 6.9, the kernel executes one call at a time and makes the others wait. Instead of
//! waiting, a thread that goes to sleep can poll, and one call serves all threads that asked before
//! it began ([`request_barrier`]).
//!
//! If the kernel or a sandbox refuses the call, senders execute fences ([`senders_must_fence`]).
//! They also do so on CPUs other than x86-64 and AArch64: on RISC-V before Linux 6.9, the call
//! could miss a CPU that was switching threads, and nobody has run `litmus.rs` on other CPUs.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};

use crate::sync::CachePadded;

const UNKNOWN: u8 = 0;
const EXPEDITED: u8 = 1;
const MISSING: u8 = 2;

/// Result of the registration.
static KIND: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Returns the kernel's answer: negative if it refuses.
fn membarrier(command: libc::c_int) -> libc::c_long {
    // SAFETY: the call accesses no memory of the process.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}

/// Registers the process. Returns `true` if it may call [`membarrier`] from now on.
///
/// Some sandboxes report success for every call without executing it. They can be recognised
/// because they do not list the commands when queried.
fn register() -> bool {
    const COMMANDS: libc::c_long = (libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED
        | libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
        as libc::c_long;
    let known = membarrier(libc::MEMBARRIER_CMD_QUERY);
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64"))
        && known >= 0
        && known & COMMANDS == COMMANDS
        && membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0
        && membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0
}

/// Returns `true` if senders must execute a fence after each message, because the kernel cannot
/// make them execute one when it is needed. The first call registers the process, and with it the
/// children that it forks.
///
/// Registering takes some milliseconds once the process has several threads, so it is done when a
/// queue is created, or by [`prepare`](crate::prepare).
pub(crate) fn senders_must_fence() -> bool {
    // Relaxed: if two threads find the answer unknown, both register, and the first answer counts
    // for both, even if a sandbox gives them different answers.
    let kind = match KIND.load(Ordering::Relaxed) {
        UNKNOWN => {
            let kind = if register() { EXPEDITED } else { MISSING };
            let order = Ordering::Relaxed;
            KIND.compare_exchange(UNKNOWN, kind, order, order).map_or_else(|first| first, |_| kind)
        }
        kind => kind,
    };
    kind == MISSING
}

/// Makes every running thread of this process, including this one, execute a full barrier. Returns
/// `false` if the kernel no longer does so, because of a sandbox that was set up after the queue
/// was created. In that case, no thread may sleep without a limit.
pub(super) fn heavy_barrier() -> bool {
    fence(Ordering::SeqCst);
    let done = match KIND.load(Ordering::Relaxed) {
        EXPEDITED => membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0,
        // The senders execute fences.
        _ => true,
    };
    fence(Ordering::SeqCst);
    done
}

/// The lower half is twice the number of barriers that have been executed, plus one while one is
/// being executed. The upper half counts the barriers that the kernel has refused, so that no value
/// occurs twice.
static CALLS: CachePadded<AtomicU64> = CachePadded(AtomicU64::new(0));
/// The amount that each refused barrier adds to [`CALLS`].
const REFUSED: u64 = 1 << 32;

/// A requested barrier that has to wait for another thread's call. Either that call began too early
/// to serve this thread, and a further call is needed after it; or it serves this thread, but has
/// not ended yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingBarrier {
    /// The barrier has been executed once the lower half of [`CALLS`] has reached this value.
    done_at: u32,
}

/// Like [`heavy_barrier`], but does not wait for other threads' calls.
pub(crate) fn request_barrier() -> Result<bool, PendingBarrier> {
    // A call that begins after `CALLS` is read below makes all earlier stores of this thread
    // visible: the thread that makes the call has read a later value, and executes a fence before
    // the call.
    fence(Ordering::SeqCst);
    let calls = CALLS.load(Ordering::Relaxed);
    if calls % 2 == 1 {
        // The running call may have begun too early; the next one serves this thread.
        return Err(PendingBarrier { done_at: (calls as u32).wrapping_add(3) });
    }
    execute(calls).ok_or(PendingBarrier { done_at: (calls as u32).wrapping_add(2) })
}

/// Executes the barrier unless another thread is doing so. `calls` is even.
fn execute(calls: u64) -> Option<bool> {
    let running = calls + 1;
    CALLS.compare_exchange(calls, running, Ordering::Relaxed, Ordering::Relaxed).ok()?;
    let done = heavy_barrier();
    // A call that the kernel has refused serves no thread.
    let next = if done { running.wrapping_add(1) } else { calls.wrapping_add(REFUSED) };
    // Release: a thread that sees that its barrier was executed also sees what the barrier has made
    // visible. The exchange fails if another thread has already advanced the count, in `force`.
    let _ = CALLS.compare_exchange(running, next, Ordering::Release, Ordering::Relaxed);
    Some(done)
}

impl PendingBarrier {
    /// Returns `true` if the barrier is known to have been executed.
    pub(crate) fn is_done(self) -> bool {
        self.is_reached_by(CALLS.load(Ordering::Acquire))
    }

    // Acquire in the load of `calls`: pairs with the release in `execute`.
    fn is_reached_by(self, calls: u64) -> bool {
        (calls as u32).wrapping_sub(self.done_at).cast_signed() >= 0
    }

    /// The barrier's result, if it has been executed. Executes it if no other thread is doing so.
    pub(crate) fn poll(self) -> Option<bool> {
        let calls = CALLS.load(Ordering::Acquire);
        if self.is_reached_by(calls) {
            return Some(true);
        }
        if calls.is_multiple_of(2) { execute(calls) } else { None }
    }

    /// Executes the barrier even if another thread's call takes a long time. That thread may have
    /// been stopped, or may belong to the parent process from which this one was forked.
    pub(crate) fn force(self) -> bool {
        let calls = CALLS.load(Ordering::Relaxed);
        let done = heavy_barrier();
        if done && calls % 2 == 1 {
            // This call began after the running one, so it serves all threads that wait for the
            // running one.
            let next = calls.wrapping_add(1);
            let _ = CALLS.compare_exchange(calls, next, Ordering::Release, Ordering::Relaxed);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other tests of this process may request barriers too, which then wait or help.
    #[test]
    fn a_call_that_never_ends_keeps_nobody() {
        // As in a child that was forked during a call.
        let stuck = loop {
            let calls = CALLS.load(Ordering::Relaxed);
            let running = calls | 1;
            if CALLS.compare_exchange(calls, running, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            {
                break running;
            }
        };
        if let Err(barrier) = request_barrier() {
            assert!(barrier.force(), "the kernel refuses what it granted before");
        }
        assert_ne!(CALLS.load(Ordering::Relaxed), stuck);
    }

    #[test]
    fn a_barrier_is_done_once_enough_were_executed() {
        let calls = CALLS.load(Ordering::Relaxed) as u32;
        assert!(PendingBarrier { done_at: calls }.is_done());
        assert!(!PendingBarrier { done_at: calls.wrapping_add(1 << 30) }.is_done());
    }

    #[test]
    fn a_pending_barrier_is_executed_if_nobody_does() {
        let calls = CALLS.load(Ordering::Relaxed) as u32;
        let barrier = PendingBarrier { done_at: calls.wrapping_add(1000) };
        // The other test may leave a call that never ends.
        let began = std::time::Instant::now();
        while barrier.poll() != Some(true) && began.elapsed().as_secs() < 60 {
            std::thread::yield_now();
        }
        assert!(began.elapsed().as_secs() < 60, "nobody executes it");
    }
}
