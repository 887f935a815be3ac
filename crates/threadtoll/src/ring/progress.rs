//! The position of one end of a ring, and waiting until that end has moved on.
//!
//! Every end has a *position*: the number of events that it has published or read. A reader without
//! dependencies follows the writer, any other reader follows its dependencies, and the writer
//! follows the readers, a lap ahead. So each wait is for one end, and ends when that end's position
//! passes a number, when it leaves, or when the ring is closed.
//!
//! An end that has to wait sleeps on the word of the end that it waits for. Several ends may sleep
//! on one word. They share the bit `SLEEPS`: a sleeper never clears it, and whoever does wakes all
//! of them. This is Dekker's pattern ([`crate::wait`]): the owner stores its position and then
//! reads its own word; a sleeper sets the bit, executes the barrier and polls once more. So the
//! owner's hot path is a release store and a load of a word that others rarely write.
//!
//! Each wake-up adds `EPOCH` to the word. So a sleeper that set the bit before, but is not asleep
//! yet, does not fall asleep, even if another end has set the bit again.
//!
//! A `Select` waits by the protocol of a sleeper, but with the bit `WATCHES` and a
//! [waker](super::watcher).
//!
//! If the owner finds sleepers often, it sets `FENCE_FOR_NOW`, as the receiver of a funnel does
//! (`wait::for_now`).
//!
//! **Leaving.** A reader that leaves stores the position `GONE`, which is larger than any other, so
//! that it holds nobody back. It then updates its word by a read-modify-write. A sleeper also
//! updates that word before its last poll, so either the leaver finds `SLEEPS`, or the poll finds
//! `GONE`.
//!
//! **Closing.** A writer that leaves sets `CLOSED` in all words by read-modify-writes, after its
//! last position. Whoever sees `CLOSED` knows that this position is final.

use std::task::Waker;

use super::watcher::Watcher;
use crate::sync::{
    self, Arc, AtomicU32, AtomicU64, AtomicUsize, CachePadded, Instant, Ordering, WipeOnFork,
    fence, light_barrier, mutate,
};
pub(super) use crate::wait::ALIVE;
use crate::wait::{
    FenceOutcome, LastSleep, Needs, Parker, Wait, WaitOutcome, WaitStats, barrier_or_nap, wait,
    wake_some,
};

/// The position of a reader that has left.
pub(super) const GONE: u64 = u64::MAX;

// The bits of `Progress::word`. `ALIVE` is always set, except in a forked child, where the other
// bits mean nothing. The bits from `EPOCH` up count the wake-ups. The others are independent,
// except that at most one of `MUST_FENCE` and `FENCE_FOR_NOW` is set:
//
// | bit | set |
// |---|---|
// | `SLEEPS` | while an end sleeps on this word or is about to, or has not had to be woken |
// | `MUST_FENCE` | if the owner fences each time, for the whole life of the ring |
// | `FENCE_FOR_NOW` | if the owner fences until nobody has slept for many events |
// | `CLOSED` | once the writer has left: its position is final |
// | `READERS_GONE` | in the writer's word, once no reader is left |
// | `WATCHES` | as `SLEEPS`, but for ends for which a `Select` waits |
const SLEEPS: u32 = 1 << 1;
const MUST_FENCE: u32 = 1 << 2;
const FENCE_FOR_NOW: u32 = 1 << 3;
const CLOSED: u32 = 1 << 4;
pub(super) const READERS_GONE: u32 = 1 << 5;
const WATCHES: u32 = 1 << 6;
const EPOCH: u32 = 1 << 8;
/// The bits that are not part of the count of wake-ups.
const FLAGS: u32 = EPOCH - 1;
/// Bits that make the owner execute a fence after it has stored its position.
const FENCES: u32 = MUST_FENCE | FENCE_FOR_NOW;

/// Sides of [`WaitStats`].
const OWNER: usize = 0;
const FOLLOWERS: usize = 1;

#[derive(Debug)]
pub(super) struct Progress {
    position: CachePadded<AtomicU64>,
    /// The bits listed above. Its owner reads it with each batch. It is written only when an end
    /// sleeps or is woken, when the owner begins or stops to fence, and when the writer or the last
    /// reader leaves.
    word: WipeOnFork<AtomicU32>,
    /// The last position before `GONE`.
    left_at: AtomicU64,
    /// The last sleep of a follower, as far as the owner has noticed.
    last_sleep: CachePadded<LastSleep>,
    /// Needed by the parker, because several ends share the bit.
    pending_wakeups: AtomicUsize,
    stats: WaitStats,
    process: u32,
    /// The cell of this reader; unused if this is the writer.
    watcher: Arc<Watcher>,
    /// The first one of the ring: the writer's.
    watchers: Arc<Watcher>,
    /// The dependencies of a reader; empty if it follows the writer.
    dependencies: Vec<Arc<Progress>>,
}

impl Progress {
    /// The writer's position.
    pub(super) fn new(wait: Wait, must_fence: bool) -> Self {
        let watcher = Watcher::new();
        let watchers = Arc::clone(&watcher);
        Progress::with(wait, must_fence, Vec::new(), watcher, watchers)
    }

    /// The position of a reader. Called on the writer's, by one thread at a time.
    pub(super) fn reader(
        &self,
        wait: Wait,
        must_fence: bool,
        dependencies: Vec<Arc<Progress>>,
    ) -> Self {
        let watchers = Arc::clone(&self.watchers);
        Progress::with(wait, must_fence, dependencies, watchers.add(), watchers)
    }

    fn with(
        wait: Wait,
        must_fence: bool,
        dependencies: Vec<Arc<Progress>>,
        watcher: Arc<Watcher>,
        watchers: Arc<Watcher>,
    ) -> Self {
        let must_fence = must_fence || sync::senders_must_fence();
        let word = if must_fence { ALIVE | MUST_FENCE } else { ALIVE };
        Progress {
            position: CachePadded(AtomicU64::new(0)),
            word: WipeOnFork::new(AtomicU32::new(word)),
            left_at: AtomicU64::new(0),
            last_sleep: CachePadded(LastSleep::new()),
            pending_wakeups: AtomicUsize::new(0),
            stats: WaitStats::new(wait),
            process: sync::process(),
            watcher,
            watchers,
            dependencies,
        }
    }

    /// The word, for [`Progress::is_quiet`].
    pub(super) fn word(&self) -> &AtomicU32 {
        &self.word
    }

    pub(super) fn dependencies(&self) -> &[Arc<Progress>] {
        &self.dependencies
    }

    /// The position as a follower needs it.
    #[inline(always)]
    pub(super) fn position(&self) -> u64 {
        // Acquire: pairs with the release in `store`.
        self.position.load(mutate!(see_position, Acquire))
    }

    /// Stores the position; only the owner may call this.
    #[inline(always)]
    pub(super) fn store(&self, position: u64) {
        // Release: a follower that sees the position sees the events up to it, and that the owner
        // no longer uses them.
        self.position.store(position, mutate!(tell_position, Release));
    }

    /// Called by the owner after [`Progress::store`], with its own word. Returns `true` if nobody
    /// sleeps on it, no fence is needed, there are others, and this is not a forked child.
    #[inline(always)]
    pub(super) fn is_quiet(word: &AtomicU32) -> bool {
        // An end that is about to sleep sets its bit, makes this thread execute a barrier here, and
        // polls once more. So only the compiler has to be kept from moving the load before the
        // store of the position.
        mutate!(barrier_in_ring, light_barrier() => ());
        // Relaxed: the slow path loads the word again.
        word.load(Ordering::Relaxed) & FLAGS == ALIVE
    }

    /// The slow path after [`Progress::is_quiet`] has returned `false`. Returns the word.
    #[cold]
    #[inline(never)]
    pub(super) fn after_store(&self, position: u64) -> u32 {
        if self.word.load(Ordering::Relaxed) & FENCES != 0 {
            // Pairs with the fence in `announce`.
            mutate!(ring_fence_of_owner, fence(Ordering::SeqCst) => ());
        }
        let word = self.word.load(Ordering::Acquire);
        let is_far = self.last_sleep.is_far(position);
        if word & FENCE_FOR_NOW != 0 && is_far {
            // AcqRel: see `wait::for_now`.
            self.word.fetch_and(!FENCE_FOR_NOW, Ordering::AcqRel);
        }
        if word & (SLEEPS | WATCHES) != 0 {
            self.last_sleep.record(position);
            if word & FENCES == 0 && !is_far {
                // AcqRel: see `wait::for_now`.
                self.word.fetch_or(FENCE_FOR_NOW, Ordering::AcqRel);
            }
            self.wake();
        }
        word
    }

    /// Executes the barrier after a follower has set `SLEEPS`. `before` is the word without it.
    fn announce(&self, before: u32) -> FenceOutcome {
        if before & FENCES == 0 {
            return barrier_or_nap();
        }
        // Pairs with the fence in `after_store`.
        mutate!(ring_fence_of_sleeper, fence(Ordering::SeqCst) => ());
        FenceOutcome::Fenced
    }

    fn parker(&self, side: usize, spins_before_park: u32) -> Parker<'_> {
        Parker {
            word: &self.word,
            bit: SLEEPS,
            sticky_bits: 0,
            stats: &self.stats,
            side,
            task: None,
            pending_wakeups: Some(&self.pending_wakeups),
            spins_before_park,
            process: self.process,
        }
    }

    fn wake(&self) {
        let word = wake_some(self.parker(OWNER, 0), EPOCH, OWNER, u32::MAX);
        // AcqRel: as in `wait::wake`.
        if word & WATCHES != 0 && self.word.fetch_and(!WATCHES, Ordering::AcqRel) & WATCHES != 0 {
            self.watchers.wake_all();
        }
    }

    /// Makes the owner wake this waker of a follower once its position changes. The follower
    /// executes the step that this returns, and then polls.
    pub(super) fn watch(&self, follower: &Progress, waker: &Waker) -> Needs {
        if !follower.watcher.leave(waker) {
            return Needs::Retry;
        }
        // As in `wait::park`. Release: the owner sees the waker.
        let before = self.word.fetch_or(WATCHES, Ordering::AcqRel);
        if before & FENCES == 0 { Needs::Barrier } else { Needs::Fence }
    }

    /// The waker of this follower.
    pub(super) fn watcher(&self) -> &Watcher {
        &self.watcher
    }

    /// Returns `true` in a forked child, also if its kernel does not wipe the word.
    pub(super) fn is_in_child(&self) -> bool {
        self.parker(OWNER, 0).is_forked()
    }

    /// Waits until `poll` finds something that this end does. Called by a follower.
    pub(super) fn wait<R>(
        &self,
        deadline: Option<Instant>,
        spins_before_park: u32,
        mut poll: impl FnMut() -> Option<R>,
    ) -> WaitOutcome<R> {
        let parker = self.parker(FOLLOWERS, spins_before_park);
        wait(parker, deadline, |before| self.announce(before), |_| poll())
    }

    /// Returns `true` in a forked child.
    #[inline(always)]
    pub(super) fn is_forked(word: &AtomicU32) -> bool {
        word.load(Ordering::Relaxed) & ALIVE == 0
    }

    /// Returns `true` once the writer has left. Its position is then final, and visible.
    pub(super) fn is_closed(&self) -> bool {
        // Acquire: pairs with the release in `close`.
        self.word.load(mutate!(see_ring_closed, Acquire)) & CLOSED != 0
    }

    /// Called by the writer when it leaves, for each end.
    pub(super) fn close(&self) {
        // Release: the last position is visible. Acquire: a sleeper is seen.
        let word = self.word.fetch_or(CLOSED, Ordering::AcqRel);
        // The owner may wake at the same time. Whoever clears the bit wakes all.
        if mutate!(wake_in_ring_close, word & (SLEEPS | WATCHES) != 0 => false) {
            self.wake();
        }
    }

    /// Called by a reader when it leaves, before [`Progress::wake_followers`].
    pub(super) fn leave(&self) {
        self.left_at.store(self.position.load(Ordering::Relaxed), Ordering::Relaxed);
        // Release: the writer may overwrite what the reader has read, and `left_at` is visible.
        self.position.store(GONE, mutate!(tell_gone, Release));
    }

    /// Called by a reader that has left.
    pub(super) fn wake_followers(&self) {
        // A read-modify-write, as the head of this file says.
        mutate!(wake_in_ring_leave, self.wake() => ());
    }

    /// Number of events that a reader had read when it left. The caller has seen its `GONE`.
    pub(super) fn left_at(&self) -> u64 {
        self.left_at.load(Ordering::Relaxed)
    }

    /// Called by the last reader when it leaves, for the writer's word. A writer that waits is
    /// woken afterwards, by `wake_followers`.
    pub(super) fn say_readers_gone(&self) {
        // Release: a writer that sees this finds that all have left.
        self.word.fetch_or(READERS_GONE, Ordering::Release);
    }

    #[cfg(all(test, not(any(threadtoll_loom, threadtoll_shuttle))))]
    pub(super) fn begin_at(&self, count: u64) {
        self.store(count);
        self.last_sleep.record(count);
    }
}
