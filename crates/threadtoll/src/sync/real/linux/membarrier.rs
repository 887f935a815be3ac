//! The dear half of an asymmetric barrier: `membarrier(2)`, private and expedited.
//!
//! Dekker's pattern — each side stores, then loads what the other stored — needs a full barrier
//! between store and load on both sides. Here the side that sends does without: it only keeps the
//! compiler from reordering, and the side that is about to sleep makes every CPU that runs a thread
//! of this process execute a full barrier. When that call returns, a store that a sender made
//! before its barrier is visible here, and a load that it makes after it sees what we stored
//! before. This is a promise of the kernel, outside Rust's memory model; `litmus.rs` tests it on
//! real cores, and `tests/membarrier.rs` checks the protocol built on it state by state.
//!
//! Where the kernel or a sandbox refuses, senders fence (see [`senders_must_fence`]).

use std::sync::atomic::{AtomicU8, Ordering, fence};

const UNKNOWN: u8 = 0;
const EXPEDITED: u8 = 1;
const MISSING: u8 = 2;

/// What the kernel said to our registration.
static KIND: AtomicU8 = AtomicU8::new(UNKNOWN);

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: takes and changes no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Registers this process, and with it the children that it forks, if that has not been done, and
/// tells whether senders must execute a full fence of their own after each message because the
/// kernel will not do it for them.
///
/// Once the process has several threads, registering waits for a grace period of some milliseconds,
/// so it is done where a queue is made.
pub(crate) fn senders_must_fence() -> bool {
    // Relaxed: two threads that both find it unknown both register, which does no harm.
    let mut kind = KIND.load(Ordering::Relaxed);
    if kind == UNKNOWN {
        let registered = membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
            && membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        kind = if registered { EXPEDITED } else { MISSING };
        KIND.store(kind, Ordering::Relaxed);
    }
    kind == MISSING
}

/// Makes every running thread of this process execute a full barrier, this one included. Returns
/// `false` if the kernel no longer does so (a sandbox closed after the queue was made): then nobody
/// may rely on it and sleep without a time limit.
pub(crate) fn heavy_barrier() -> bool {
    fence(Ordering::SeqCst);
    let done = match KIND.load(Ordering::Relaxed) {
        EXPEDITED => membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED),
        // The senders fence.
        _ => true,
    };
    fence(Ordering::SeqCst);
    done
}
