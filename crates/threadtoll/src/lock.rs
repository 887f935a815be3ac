//! A mutex that knows how many threads wait for it, and can refuse to make more of them wait.
//!
//! Every lock is a queue. When a lock is asked for faster than it can serve, its queue grows, and
//! each caller waits for all those before it. [`Mutex::lock_bounded`] puts a bound on that queue,
//! as a bounded channel does, and [`Mutex::queue_len`] tells its length.
//!
//! ```
//! use threadtoll::error::Full;
//! use threadtoll::lock::Mutex;
//!
//! /// Books a seat, unless eight callers wait for the hall's plan already: they are served first,
//! /// and this caller would wait for too long.
//! fn book(plan: &Mutex<Vec<u32>>, seat: u32) -> Result<(), Full> {
//!     plan.lock_bounded(8)?.push(seat);
//!     Ok(())
//! }
//!
//! let plan = Mutex::fair(Vec::new());
//! assert_eq!(book(&plan, 7), Ok(()));
//! assert_eq!(*plan.lock(), [7]);
//! ```
//!
//! # Which one?
//!
//! | | takes the lock after an unlock | use it if |
//! |---|---|---|
//! | [`Mutex::new`] | whoever comes first | throughput matters; holds are short |
//! | [`Mutex::fair`] | the thread that waits longest | the longest wait matters; holds are long |
//!
//! [`MutexGuard::unlock_fair`] hands over once.
//!
//! # What it promises
//!
//! - *The bound is exact.* The number of waiters is a part of the lock's word, and goes up by a
//!   compare-and-swap that refuses: if all threads use [`Mutex::lock_bounded`], there are never
//!   more waiters than the bound, not for a moment. [`Mutex::lock`] does not look at any bound.
//! - *Nobody starves.* Waiters are woken in the order in which they fell asleep. If one is woken
//!   after a millisecond or more and finds that another thread was quicker, or has slept in vain 64
//!   times, the lock is promised to it: the next unlock hands it over, whoever else comes or spins.
//!   One waiter at a time has this promise.
//! - *A fair mutex serves in order*: the lock goes to the thread that has slept longest. Threads
//!   that come while it is held or handed over cannot take it. There are exceptions: the first
//!   waiter spins for about 2.5 µs before it sleeps, so one that comes in that time may be served
//!   before it. If an unlock finds all waiters on their way to sleep, whoever comes first takes the
//!   lock; so it may be if a thread loses its CPU between unlocking and waking.
//! - The order of sleepers is the kernel's. Real-time threads come before others, and whoever is
//!   interrupted by a signal goes to the end.
//! - *A wait that times out loses nothing.* A thread to which the lock is handed as its time ends
//!   keeps it, and one that is woken takes it if it is still free.
//! - An uncontended lock and unlock take one compare-and-swap each. They never call the kernel.
//!
//! # What it does not do
//!
//! - *Readers that share it, condition variables.* For guards of a part of the value, or guards
//!   that own an `Arc`, see the feature `lock_api`.
//! - *Find deadlocks.* A thread that locks a mutex it already holds waits for ever, and a guard
//!   that is leaked leaves its mutex locked, even when its thread has ended.
//! - *Survive a fork.* The word has no place for a process. A child that is forked while a thread
//!   of its parent holds a mutex or waits for it must not use that mutex: the holder and the
//!   waiters are in the word, but not in the child. [`Mutex::lock_timeout`] returns there, and
//!   [`Mutex::lock`] may not, even if the thread that forked held the mutex and unlocks it.
//! - *Lend its priority.* A thread that waits does not raise the priority of the holder.
//!
//! # Size
//!
//! The word is 4 bytes; the choice between [`Mutex::new`] and [`Mutex::fair`], and
//! [`Mutex::poisoning`], take another two, so that a mutex takes 8 bytes for no value, and 8 more
//! than its value if that is aligned to 8. With these two in the word, no compare-and-swap could
//! begin without reading it first.
//!
//! The count in the word has a price: each thread that begins to wait changes the word, so another
//! that is just about to sleep has to look again.
//!
//! # How it works
//!
//! The word, which is also the futex on which waiters sleep, consists of eight bits and a count:
//!
//! | | set | cleared |
//! |---|---|---|
//! | `LOCKED` | by whoever takes the lock | by an unlock that does not hand over, or that wakes nobody |
//! | `HANDED` | by an unlock that hands over; `LOCKED` stays set | by the heir, as it takes the lock, or by an unlock that wakes nobody |
//! | `AWAKE` | by an unlock that will wake a waiter, and by the first waiter, which spins | by that waiter, when it takes the lock, sleeps again or leaves, or by an unlock that wakes nobody |
//! | `STARVED` | by a waiter that has starved, unless there is one already | by that waiter, when it takes the lock or leaves |
//! | `POISONED` | by a holder that panics | by [`Mutex::clear_poison`] |
//! | `ASLEEP` | by a waiter before it sleeps; by a waiter that was woken or is handed the lock, when it takes it or leaves, if there are others | by an unlock that will wake a waiter; by the last waiter, when it takes the lock or leaves |
//! | two bits of a time | by an unlock that wakes a waiter, or that finds one awake among several | by the last waiter, when it takes the lock or leaves |
//! | the count | goes up when a thread begins to wait | goes down when it takes the lock or leaves |
//!
//! States that occur, and who must act (`POISONED` may be added to each, and `ASLEEP` where there
//! are waiters):
//!
//! | `LOCKED` | `HANDED` | `AWAKE` | `STARVED` | waiters | the lock is | next |
//! |---|---|---|---|---|---|---|
//! | 0 | 0 | 0 | 0 | 0 | free | – |
//! | 0 | 0 | 1 | 0 | any | free, and a waiter is awake or being woken | that waiter, or whoever comes first |
//! | 0 | 0 | 0 | 0 | ≥ 1 | free, and no waiter sleeps or one is being woken | waiters that are awake, or whoever comes |
//! | 1 | 0 | 0 | 0 | any | held | the unlock wakes a waiter if `ASLEEP` is set |
//! | 1 | 0 | 1 | 0 | any | held, and a waiter is awake | the unlock wakes nobody |
//! | 1 | 0 | any | 1 | ≥ 1 | held, and promised to the starved waiter | the unlock hands it over |
//! | 1 | 1 | any | 1 | ≥ 1 | handed over | the starved waiter |
//! | 1 | 1 | 1 | 0 | any | handed over | the waiter that is awake; if the unlock finds nobody to wake, it frees the lock |
//!
//! While a waiter is awake already, none is woken: that is what `AWAKE` is for. But a waiter that
//! does not act may have no CPU, while another CPU is idle. So an unlock that is not fair wakes one
//! more if the last wake-up, or the first unlock that found it awake, was in another period of
//! 256 µs: the word keeps the number of that period, modulo 3.
//!
//! While `ASLEEP` is not set, a new waiter looks at the word for about 2.5 µs, and then, if it has
//! no deadline, yields eight times before it sleeps. Otherwise it sleeps at once: those that sleep
//! come first. In a fair mutex, only the first waiter looks, and none yields.
//!
//! *Set without reason, `AWAKE` loses a wake-up; cleared without reason, it costs one too many.*
//! With `ASLEEP` it is the other way round. So whoever sets `AWAKE` makes sure that a waiter acts
//! on it, any waiter that was woken may clear it, and one that was woken sets `ASLEEP` if there
//! are others. These are the interleavings in which a wake-up or the lock could be lost:
//!
//! | while | this happens | then |
//! |---|---|---|
//! | a waiter is about to sleep | an unlock finds it counted, sets `AWAKE`, and wakes nobody | the word has changed, so the waiter does not fall asleep, and sees the lock free. The unlock clears `AWAKE` again |
//! | as above | and before that unlock clears `AWAKE`, another thread takes the lock, the waiter falls asleep, and that thread unlocks, which wakes nobody because of `AWAKE` | the first unlock wakes once more *after* it has cleared `AWAKE` |
//! | as above | and the other thread unlocks *fairly* and hands over to the waiter that is supposed to be awake | the first unlock finds `HANDED` without an heir, frees the lock, and wakes once more |
//! | a waiter that is awake has looked at the word | the holder unlocks and wakes nobody | the waiter clears `AWAKE` before it sleeps, by a compare-and-swap that now fails, so it looks again |
//! | a waiter gives up | the lock is handed to it, or it is woken | it leaves by a compare-and-swap that now fails, and takes the lock. If it was woken in vain, leaving clears `AWAKE` in a state in which the lock is held, whose unlock wakes another |
//! | a waiter's time is over | it is woken at that very moment | the kernel tells it which of the two came first; if it was woken, it is the one that is awake |
//! | a waiter is woken once more, late, by an unlock that is over | another waiter is awake | both may clear `AWAKE`: at most one wake-up too many |
//! | the lock is handed to the starved waiter | that waiter is still about to sleep | it does not fall asleep, because the word has changed, and knows that it is the one |
//! | as above | it sleeps | it sleeps under a bit of its own (`FUTEX_WAIT_BITSET`), so the unlock wakes it and no other |
//! | a bounded thread has seen room in the queue | another one takes that room | the compare-and-swap fails, and the thread looks again |
//! | a waiter times out | a bounded thread was refused because of it | the refusal was right: the waiter was still counted |
//!
//! `lock/interleavings.rs` goes through every interleaving of three or four threads, and loom and
//! shuttle run the code itself. The count next to the lock's bit, and the bit for a waiter that is
//! awake, are those of Go's `sync.Mutex` (D. Vyukov); its starving waiters are handed the lock,
//! too.

#[cfg(all(test, any(threadtoll_loom, not(threadtoll_shuttle))))]
pub(crate) mod interleavings;
mod mutex;
#[cfg(all(feature = "lock_api", not(any(threadtoll_loom, threadtoll_shuttle))))]
mod raw;
pub(crate) mod state;
pub(crate) mod word;

pub use mutex::{Mutex, MutexGuard};
#[cfg(all(feature = "lock_api", not(any(threadtoll_loom, threadtoll_shuttle))))]
pub use raw::{RawFairMutex, RawLock, RawMutex};
