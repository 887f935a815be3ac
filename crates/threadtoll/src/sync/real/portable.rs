//! Substitutes for the kernel's calls on systems other than Linux: fences, and `std::thread::park`.
//!
//! - Senders fence, since no other thread can make them.
//! - Threads that sleep on a word are listed in a table by its address, as in the kernel. Each is
//!   unparked by itself: a condition variable for each bucket would wake all that sleep there, even
//!   those of other queues. Buckets keep unrelated queues from waiting for one lock. A thread that
//!   is stopped while it holds a bucket's lock stops all that sleep or wake in that bucket. As with
//!   the channels of std, a thread that sleeps here may use up an `unpark` that was meant for a
//!   `park` of its own.
//! - A forked child finds its memory as its parent's was, and is told by the number of its process,
//!   which costs a system call and is looked at only by those that wait.

use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::sync::CachePadded;

/// 64 locks: threads that sleep and wake at the same time seldom meet in one.
const BUCKET_BITS: u32 = 6;
const BUCKETS: usize = 1 << BUCKET_BITS;

/// A thread that sleeps, and the address of the word on which it does.
#[derive(Debug)]
struct Asleep {
    address: usize,
    thread: Thread,
}

/// The sleeping threads of one process. In a forked child, the parent's table lists threads that
/// the child does not have, and may be locked by one of them.
struct Table {
    process: u32,
    buckets: [CachePadded<Mutex<Vec<Asleep>>>; BUCKETS],
}

/// The table of this process, or of the one that it was forked from; null before anybody has slept.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());

/// The table of this process. A child leaves its parent's table where it is.
fn table() -> &'static Table {
    let process = process();
    let mut known = TABLE.load(Ordering::Acquire);
    loop {
        // SAFETY: null, or a table, none of which is ever freed.
        if let Some(table) = unsafe { known.as_ref() }
            && table.process == process
        {
            return table;
        }
        let buckets = std::array::from_fn(|_| CachePadded::default());
        let fresh = Box::into_raw(Box::new(Table { process, buckets }));
        // Release: whoever finds the table finds it made.
        match TABLE.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => known = fresh,
            Err(other) => {
                // SAFETY: made above, and nobody else knows it.
                drop(unsafe { Box::from_raw(fresh) });
                known = other;
            }
        }
    }
}

/// Those that sleep on a word, and on the words that share its bucket.
fn bucket(table: &Table, address: usize) -> MutexGuard<'_, Vec<Asleep>> {
    // Fibonacci hashing: words that are slept on begin cache lines, so their low bits are alike.
    let hash = (address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - BUCKET_BITS);
    table.buckets[hash as usize].lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps while `word` has the value `expected`, for at most `timeout`; may return early for any
/// reason. Returns `true` if [`futex_wake`] has counted this thread.
pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> bool {
    let (table, address, me) = (table(), word.as_ptr().addr(), thread::current());
    let mut asleep = bucket(table, address);
    // Relaxed: the lock orders this after what a waker stored that found nobody here.
    if word.load(Ordering::Relaxed) != expected {
        return false;
    }
    asleep.push(Asleep { address, thread: me.clone() });
    drop(asleep);
    match timeout {
        Some(timeout) => thread::park_timeout(timeout),
        None => thread::park(),
    }
    let mut asleep = bucket(table, address);
    // The waker takes the thread that it wakes off the list.
    match asleep.iter().position(|asleep| asleep.thread.id() == me.id()) {
        Some(index) => {
            asleep.remove(index);
            false
        }
        None => true,
    }
}

/// Wakes up to `most` threads that sleep on `word`, in the order in which they came. Returns their
/// number.
pub(crate) fn futex_wake(word: &AtomicU32, most: u32) -> u32 {
    let address = word.as_ptr().addr();
    let woken: Vec<_> = bucket(table(), address)
        .extract_if(.., |asleep| asleep.address == address)
        .take(most as usize)
        .collect();
    for asleep in &woken {
        asleep.thread.unpark();
    }
    woken.len() as u32
}

/// Returns true: nobody else orders what a sender does.
pub(crate) fn senders_must_fence() -> bool {
    true
}

/// A fence of this thread, whose partners are those of the senders.
pub(crate) fn heavy_barrier() -> bool {
    fence(Ordering::SeqCst);
    true
}

/// None: nobody is asked.
pub(crate) fn only_cpu() -> Option<u32> {
    None
}

/// The number of this process, to tell a child from its parent; 0 where no process forks.
pub(crate) fn process() -> u32 {
    if cfg!(unix) { std::process::id() } else { 0 }
}

/// Atomics on a line of their own.
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
