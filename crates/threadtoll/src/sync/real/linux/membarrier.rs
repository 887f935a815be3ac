//! The expensive side of an asymmetric barrier: `membarrier(2)`, private and expedited.
//!
//! In Dekker's pattern each side stores, then loads what the other stored, and both need a full
//! barrier in between. Here the sender only keeps the compiler from reordering. The side that is
//! about to sleep makes every CPU that runs a thread of this process execute a full barrier. When
//! that call returns, all that a sender stored before its barrier is visible here, and its loads
//! after the barrier see what we stored before. The kernel promises this, outside Rust's memory
//! model. `litmus.rs` tests it on real cores, and `tests/membarrier.rs` checks the protocol built
//! on it state by state.
//!
//! If the kernel or a sandbox refuses the call, senders fence ([`senders_must_fence`]). They also do
//! on CPUs other than x86-64 and aarch64: on RISC-V, before Linux 6.9, the call could pass over a CPU
//! that was switching threads, and nobody has run `litmus.rs` on the others.

use std::sync::atomic::{AtomicU8, Ordering, fence};

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

/// Registers the process. Returns `true` if it may call [`membarrier`] from then on.
///
/// Some sandboxes answer every call with a success that they do not deliver. They do not name the
/// commands when asked for them.
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

/// Returns `true` if senders must fence after each message, because the kernel does not do it for
/// them. The first call registers the process, and with it the children that it forks.
///
/// Registering takes some milliseconds once the process has several threads, so it is done when a
/// queue is created, or by [`prepare`](crate::prepare).
pub(crate) fn senders_must_fence() -> bool {
    // Relaxed: if two threads find it unknown, both register, which is harmless.
    let mut kind = KIND.load(Ordering::Relaxed);
    if kind == UNKNOWN {
        kind = if register() { EXPEDITED } else { MISSING };
        KIND.store(kind, Ordering::Relaxed);
    }
    kind == MISSING
}

/// Makes every running thread of this process, this one included, execute a full barrier. Returns
/// `false` if the kernel no longer does so, because of a sandbox that was set up after the queue
/// was created. No thread may then sleep without a limit.
pub(crate) fn heavy_barrier() -> bool {
    fence(Ordering::SeqCst);
    let done = match KIND.load(Ordering::Relaxed) {
        EXPEDITED => membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0,
        // The senders fence.
        _ => true,
    };
    fence(Ordering::SeqCst);
    done
}
