//! Interface to Linux: `futex(2)`, `membarrier(2)`, `MADV_WIPEONFORK`, CPU affinity.

mod fork;
mod generation;
#[cfg(test)]
mod litmus;
mod membarrier;

pub(crate) use fork::{WipeOnFork, process};
pub(crate) use generation::generation;
pub(crate) use membarrier::{PendingBarrier, request_barrier, senders_must_fence};

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// A field of a [`Timespec`]: the kernel's `long`, or 64 bits if the call takes only 64-bit times.
#[cfg(not(any(
    target_arch = "riscv32",
    all(target_arch = "x86_64", target_pointer_width = "32")
)))]
type Word = libc::c_long;
#[cfg(any(target_arch = "riscv32", all(target_arch = "x86_64", target_pointer_width = "32")))]
type Word = i64;

/// The time that [`SYS_FUTEX`] takes. Not libc's `timespec`, which has 64-bit seconds on some
/// 32-bit systems.
#[repr(C)]
struct Timespec {
    _seconds: Word,
    _nanoseconds: Word,
}

impl Timespec {
    fn new(time: Duration) -> Self {
        Timespec {
            _seconds: Word::try_from(time.as_secs()).unwrap_or(Word::MAX),
            _nanoseconds: Word::from(time.subsec_nanos() as i32),
        }
    }
}

/// Time in microseconds since some moment in the past.
pub(crate) fn clock_us() -> u64 {
    // SAFETY: All bytes zero are a valid `timespec`.
    let mut now: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: `now` is valid for the whole call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000
}

#[cfg(not(target_arch = "riscv32"))]
const SYS_FUTEX: libc::c_long = libc::SYS_futex as libc::c_long;
#[cfg(target_arch = "riscv32")]
const SYS_FUTEX: libc::c_long = libc::SYS_futex_time64;

/// Sleeps by `futex(2)` while `word` is `expected`, for at most `timeout`; may return early for any
/// reason. Returns `true` if [`futex_wake`] has counted this thread.
pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> bool {
    let limit = timeout.map(Timespec::new);
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: word and limit are valid for the whole call.
    let failed = unsafe {
        libc::syscall(
            SYS_FUTEX,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            limit,
        )
    };
    failed == 0
}

/// Wakes up to `most` threads that sleep on `word`. Returns their number.
pub(crate) fn futex_wake(word: &AtomicU32, most: u32) -> u32 {
    let command = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    let most = libc::c_int::try_from(most).unwrap_or(libc::c_int::MAX);
    // SAFETY: the word is valid for the whole call.
    let woken = unsafe { libc::syscall(SYS_FUTEX, word.as_ptr(), command, most) };
    u32::try_from(woken).unwrap_or(0)
}

/// Like [`futex_wait`], but [`futex_wake_bitset`] wakes the thread only if their bitsets have a
/// common bit.
pub(crate) fn futex_wait_bitset(
    word: &AtomicU32,
    expected: u32,
    bitset: u32,
    timeout: Option<Duration>,
) -> bool {
    // Unlike `FUTEX_WAIT`, this command takes the time at which to stop waiting.
    let until = timeout.map(|timeout| Timespec::new(monotonic_time().saturating_add(timeout)));
    let until = until.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: word and time are valid for the whole call.
    let failed = unsafe {
        libc::syscall(
            SYS_FUTEX,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
            expected,
            until,
            std::ptr::null::<u32>(),
            bitset,
        )
    };
    failed == 0
}

/// Like [`futex_wake`], but wakes only threads whose bitsets have a bit in common with this one.
pub(crate) fn futex_wake_bitset(word: &AtomicU32, most: u32, bitset: u32) -> u32 {
    // SAFETY: the word is valid for the whole call.
    let woken = unsafe {
        libc::syscall(
            SYS_FUTEX,
            word.as_ptr(),
            libc::FUTEX_WAKE_BITSET | libc::FUTEX_PRIVATE_FLAG,
            libc::c_int::try_from(most).unwrap_or(libc::c_int::MAX),
            std::ptr::null::<Timespec>(),
            std::ptr::null::<u32>(),
            bitset,
        )
    };
    u32::try_from(woken).unwrap_or(0)
}

/// Time of the clock that `futex(2)` uses, which is that of [`std::time::Instant`].
fn monotonic_time() -> Duration {
    // SAFETY: all zeros is a valid `timespec`.
    let mut now: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: the place is valid.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// The only CPU on which the calling thread may run; `None` if there are several.
pub(crate) fn only_cpu() -> Option<u32> {
    // SAFETY: all zeros is a valid `cpu_set_t`.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is valid, and its size is passed. A kernel with more CPUs than the set holds
    // refuses the call.
    let failed = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) } != 0;
    // SAFETY: the set was filled in.
    if failed || unsafe { libc::CPU_COUNT(&set) } != 1 {
        return None;
    }
    // SAFETY: the set was filled in, and the index is inside it.
    (0..libc::CPU_SETSIZE as u32).find(|cpu| unsafe { libc::CPU_ISSET(*cpu as usize, &set) })
}
