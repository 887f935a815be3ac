//! Substitutes for the kernel's calls on systems other than Linux, and under Miri: fences, and
//! `std::thread::park`.
//! - Senders execute fences, because no other thread can make them do so.
//! - A table lists sleeping threads by the address of their word, as in the kernel. Each thread is
//!   unparked individually, because a condition variable per bucket would wake threads of other
//!   queues as well. Unrelated queues rarely share a bucket's lock. A thread that is stopped while
//!   it holds such a lock blocks the threads that sleep or wake in that bucket. As with the
//!   standard library's channels, a thread that sleeps here may consume an `unpark` that was meant
//!   for a `park` in the user's code.
//! - A forked child finds its memory unchanged. It recognises that it is a child by its process ID,
//!   which costs a system call, so only ends that wait check it.

use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering, fence};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::sync::CachePadded;

/// 64 locks, so that threads that sleep and wake at the same time rarely share one.
const BUCKET_BITS: u32 = 6;
const BUCKETS: usize = 1 << BUCKET_BITS;

#[derive(Debug)]
struct Asleep {
    /// Address of its word.
    address: usize,
    bitset: u32,
    thread: Thread,
}

/// The sleeping threads of one process. In a forked child, the parent's table lists threads that do
/// not exist in the child, one of which may hold a lock.
struct Table {
    process: u32,
    buckets: [CachePadded<Mutex<Vec<Asleep>>>; BUCKETS],
}

/// The table of this process, or of the process from which it was forked; null before the first
/// sleep.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());

/// The table of this process. A child leaks its parent's table.
fn table() -> &'static Table {
    let process = process();
    let mut known = TABLE.load(Ordering::Acquire);
    loop {
        // SAFETY: null or a table, and tables are never freed.
        if let Some(table) = unsafe { known.as_ref() }
            && table.process == process
        {
            return table;
        }
        let buckets = std::array::from_fn(|_| CachePadded::default());
        let fresh = Box::into_raw(Box::new(Table { process, buckets }));
        // Release: a thread that finds the table sees its contents.
        match TABLE.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => known = fresh,
            Err(other) => {
                // SAFETY: made above, and not shared.
                drop(unsafe { Box::from_raw(fresh) });
                known = other;
            }
        }
    }
}

/// Locks and returns the list of threads that sleep on a word or on words that share its bucket.
fn bucket(table: &Table, address: usize) -> MutexGuard<'_, Vec<Asleep>> {
    // Fibonacci hashing, since the words are at the start of cache lines: the low bits of their
    // addresses are equal.
    let hash = (address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - BUCKET_BITS);
    table.buckets[hash as usize].lock().unwrap_or_else(PoisonError::into_inner)
}

/// Time in microseconds since the first call.
pub(crate) fn clock_us() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed().as_micros() as u64
}

/// Sleeps while `word` is `expected`, for at most `timeout`; may return early for any reason.
/// Returns `true` if [`futex_wake`] has counted this thread.
pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> bool {
    futex_wait_bitset(word, expected, u32::MAX, timeout)
}

/// Like [`futex_wait`], but [`futex_wake_bitset`] wakes the thread only if their bitsets have a
/// common bit.
pub(crate) fn futex_wait_bitset(
    word: &AtomicU32,
    expected: u32,
    bitset: u32,
    timeout: Option<Duration>,
) -> bool {
    let (table, address, me) = (table(), word.as_ptr().addr(), thread::current());
    let mut asleep = bucket(table, address);
    // Relaxed: the lock orders this after the stores of a waker that did not find this thread.
    if word.load(Ordering::Relaxed) != expected {
        return false;
    }
    asleep.push(Asleep { address, bitset, thread: me.clone() });
    drop(asleep);
    match timeout {
        Some(timeout) => thread::park_timeout(timeout),
        None => thread::park(),
    }
    let mut asleep = bucket(table, address);
    // A waker removes the threads that it wakes, so a thread that is still listed was not woken.
    match asleep.iter().position(|asleep| asleep.thread.id() == me.id()) {
        Some(index) => {
            asleep.remove(index);
            false
        }
        None => true,
    }
}

/// Wakes up to `most` threads that sleep on `word`, in the order in which they fell asleep. Returns
/// their number.
pub(crate) fn futex_wake(word: &AtomicU32, most: u32) -> u32 {
    futex_wake_bitset(word, most, u32::MAX)
}

/// Like [`futex_wake`], but wakes only threads whose bitsets have a bit in common with this one.
pub(crate) fn futex_wake_bitset(word: &AtomicU32, most: u32, bitset: u32) -> u32 {
    let address = word.as_ptr().addr();
    let woken: Vec<_> = bucket(table(), address)
        .extract_if(.., |asleep| asleep.address == address && asleep.bitset & bitset != 0)
        .take(most as usize)
        .collect();
    for asleep in &woken {
        asleep.thread.unpark();
    }
    woken.len() as u32
}

/// Always `true`, because no other thread can make a sender execute a fence.
pub(crate) fn senders_must_fence() -> bool {
    true
}

/// A barrier that waits for another thread's call. On these systems, there is no such call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PendingBarrier {}

impl PendingBarrier {
    pub(crate) fn is_done(self) -> bool {
        match self {}
    }

    pub(crate) fn poll(self) -> Option<bool> {
        match self {}
    }

    pub(crate) fn force(self) -> bool {
        match self {}
    }
}

/// A fence in this thread only, which pairs with the fences of the senders.
pub(crate) fn request_barrier() -> Result<bool, PendingBarrier> {
    fence(Ordering::SeqCst);
    Ok(true)
}

/// Always `None`: the CPU affinity is unknown on these systems.
pub(crate) fn only_cpu() -> Option<u32> {
    None
}

/// The process ID, to distinguish a child from its parent; 0 if the system has no fork, and under
/// Miri, which has none either.
pub(crate) fn process() -> u32 {
    if cfg!(all(unix, not(miri))) { std::process::id() } else { 0 }
}

/// A number that a forked child does not share with its parent.
pub(crate) fn generation() -> u32 {
    process()
}

/// Atomics on a cache line of their own. On these systems, they are not wiped on fork.
#[derive(Debug)]
pub(crate) struct WipeOnFork<T>(Box<CachePadded<T>>);

impl<T> WipeOnFork<T> {
    pub(crate) fn new(value: T) -> Self {
        WipeOnFork(Box::new(CachePadded(value)))
    }
}

impl<T> Deref for WipeOnFork<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0.0
    }
}
