//! The state that caller and callee share, and the rules by which one of them drops a request or an
//! answer.
//!
//! # The turn
//!
//! `turn` is stored next to the request and the answer. Its value says which end may access them. A
//! release store and an acquire load of `turn` hand them over.
//!
//! | turn | stored by | meaning |
//! |---|---|---|
//! | `IDLE` | the constructor, the end that drops a late answer | the caller may write a request |
//! | `ASKED` | the caller | the callee may read the request, then write an answer |
//! | `ANSWERED` | the callee | the caller may read the answer, then write a request |
//! | `UNANSWERED` | the callee, which declines | the caller may write a request |
//!
//! `turn` does not change when a value is read: the callee itself knows whether it has read the
//! request (`pending`), and the caller whether it has read the answer. So a round trip stores to
//! `turn` only twice.
//!
//! # Time-outs and departures
//!
//! `state` has a cache line of its own, of which both CPUs keep a copy. It is written only when an
//! end sleeps, wakes, stops fencing, gives up waiting or leaves. `LATE`, `CALLER_GONE` and
//! `CALLEE_GONE` are set by read-modify-writes, so both ends agree on their order. The caller sets
//! `LATE` when it gives up waiting, and clears it when its next call has taken the answer or
//! learned that there is none.
//!
//! | order in `state` | a request (`ASKED`) | an answer (`ANSWERED`) |
//! |---|---|---|
//! | `CALLEE_GONE` | the caller takes it back (1) | the caller returns it |
//! | `LATE`, `CALLEE_GONE` | the callee drops it | the caller drops it (2) |
//! | `LATE`, `CALLER_GONE` | the callee receives or drops it | one of them drops it (3) |
//! | `LATE`, cleared, `CALLEE_GONE` | as in the first row | as in the first row |
//! | `LATE`, `CALLEE_GONE`, cleared | there will be none (4) | the caller has dropped it |
//!
//! 1. The caller sees `CALLEE_GONE` while it waits, or in the update that sets `LATE`.
//! 2. The caller drops the answer in its next call, or as it leaves.
//! 3. The callee stores `ANSWERED`, and then checks `CALLER_GONE`. The caller, if `LATE` is set,
//!    sets `CALLER_GONE`, and then checks for `ANSWERED`. This is Dekker's pattern: with a barrier
//!    on both sides, at least one of them sees the other's store. The callee executes the light
//!    barrier that is part of each hand-over; the caller executes the heavy one, which is needed
//!    only if the callee owes an answer. A compare-and-swap of the turn to `IDLE` decides which of
//!    them drops the answer. If the kernel refuses the heavy barrier, the caller sleeps briefly
//!    before it checks, so that the callee's store has left its CPU's store buffer by then. (Even
//!    if that failed, the callee would drop the answer when it leaves: the last end to leave sees
//!    everything.)
//! 4. The callee saw `LATE` as it left, but may not have read the turn yet. The callee would
//!    mistake another request for the late one, so the caller must not ask again.
//!
//! If an end is stopped between any two steps, the turn stays as it is, and the other end can wait,
//! time out or leave by the rules above. A callee that panics declines the request as it unwinds.
//! In a forked child, `state` is 0, which all methods treat as if the other end had left; the
//! values in the child's copy of the line are not dropped.

use std::mem::MaybeUninit;
#[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
use std::mem::offset_of;
use std::task::Waker;

use crate::sync::{
    self, Arc, AtomicU32, AtomicU64, CachePadded, Instant, Ordering, UnsafeCell, WipeOnFork, fence,
    light_barrier, mutate, prefetch_to_write,
};
pub(super) use crate::wait::ALIVE;
use crate::wait::{
    FenceOutcome, LastSleep, Needs, Parker, Wait, WaitOutcome, WaitStats, WakerCell,
    barrier_or_nap, wait, wake,
};

pub(super) const IDLE: u32 = 0;
pub(super) const ASKED: u32 = 1;
pub(super) const ANSWERED: u32 = 2;
pub(super) const UNANSWERED: u32 = 3;

// The bits of `Shared::state`. `ALIVE` is always set. The other bits match one row of each table
// below; any row of one table may occur together with any row of the other, with or without
// `FENCE_FOR_NOW`. `MUST_FENCE` is either set from the beginning or never. Whenever a bit is set, a
// debug assertion checks with `is_legal` that the tables allow the new state.
//
// | `CALLER_SLEEPS` | `CALLER_GONE` | `LATE` | the caller |
// |---|---|---|---|
// | 0 | 0 | 0 | has no call under way, or is awake in one |
// | 1 | 0 | 0 | sleeps until its answer comes, or is about to |
// | 0 | 1 | 0 | has left with no request unsettled |
// | 0 | 0 | 1 | gave up waiting for its last request |
// | 1 | 0 | 1 | calls again, and sleeps until that request is settled |
// | 0 | 1 | 1 | has left with that request unsettled |
//
// | `CALLEE_SLEEPS` | `CALLEE_GONE` | the callee |
// |---|---|---|
// | 0 | 0 | serves a request, or is awake and waits for one |
// | 1 | 0 | sleeps until a request comes, or is about to, also by a `Select` |
// | 0 | 1 | has left |
//
// Without `ALIVE`, this is a forked child, and the other bits are meaningless.
const CALLER_SLEEPS: u32 = 1 << 1;
const CALLEE_SLEEPS: u32 = 1 << 2;
pub(super) const CALLER_GONE: u32 = 1 << 3;
pub(super) const CALLEE_GONE: u32 = 1 << 4;
/// An end that has published something or is about to sleep executes a fence before it reads what
/// the other end has written.
const MUST_FENCE: u32 = 1 << 5;
/// Like `MUST_FENCE`, but only until an end has handed over many times without sleeping (see
/// `wait::for_now`).
const FENCE_FOR_NOW: u32 = 1 << 7;
const FENCES: u32 = MUST_FENCE | FENCE_FOR_NOW;
/// The last request timed out, and its answer has been neither taken nor declined.
pub(super) const LATE: u32 = 1 << 6;

/// Returns `true` if the tables above allow this state.
pub(super) fn is_legal(state: u32) -> bool {
    let both = |bits: u32| state & bits == bits;
    state & ALIVE == 0 || !both(CALLER_SLEEPS | CALLER_GONE) && !both(CALLEE_SLEEPS | CALLEE_GONE)
}

pub(super) const CALLER: usize = 0;
pub(super) const CALLEE: usize = 1;

const fn sleeps(side: usize) -> u32 {
    if side == CALLER { CALLER_SLEEPS } else { CALLEE_SLEEPS }
}

/// The data that moves between the two ends, in one cache line if it fits.
#[repr(C)]
struct Line<Q, R> {
    turn: AtomicU32,
    request: UnsafeCell<MaybeUninit<Q>>,
    answer: UnsafeCell<MaybeUninit<R>>,
}

pub(super) struct Shared<Q, R> {
    line: CachePadded<Line<Q, R>>,
    pub(super) state: WipeOnFork<AtomicU32>,
    sides: Sides,
}

/// State of ends that wait, or wake the other.
struct Sides {
    stats: WaitStats,
    /// The waker of a callee at which a `Select` waits.
    task: WakerCell,
    process: u32,
    /// Number of times that each side has called `pass` while `FENCE_FOR_NOW` was set.
    passes: [AtomicU64; 2],
    last_sleep: [LastSleep; 2],
}

// SAFETY: the ends write and read request and answer in turns, ordered by the release and acquire
// of `turn`. Values move between threads and are never shared.
unsafe impl<Q: Send, R: Send> Send for Shared<Q, R> {}
// SAFETY: as for `Send`.
unsafe impl<Q: Send, R: Send> Sync for Shared<Q, R> {}

impl<Q, R> Shared<Q, R> {
    pub(super) fn new(wait: Wait, must_fence: bool) -> Arc<Self> {
        let must_fence = must_fence || sync::senders_must_fence();
        let turn = AtomicU32::new(IDLE);
        let state =
            WipeOnFork::new(AtomicU32::new(ALIVE | if must_fence { MUST_FENCE } else { 0 }));
        let sides = Sides {
            stats: WaitStats::new(wait),
            task: WakerCell::new(),
            process: sync::process(),
            passes: [AtomicU64::new(0), AtomicU64::new(0)],
            last_sleep: [LastSleep::new(), LastSleep::new()],
        };
        Self::in_arc(turn, state, sides)
    }

    /// Constructs the shared state in place, because the stack may be too small for a request and
    /// an answer.
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    fn in_arc(turn: AtomicU32, state: WipeOnFork<AtomicU32>, sides: Sides) -> Arc<Self> {
        let mut shared = Arc::<Self>::new_uninit();
        if let Some(place) = Arc::get_mut(&mut shared).map(MaybeUninit::as_mut_ptr) {
            let field = |offset| place.wrapping_byte_add(offset);
            // SAFETY: the field has this type and offset.
            unsafe { field(offset_of!(Self, line.0.turn)).cast::<AtomicU32>().write(turn) };
            // SAFETY: the field has this type and offset.
            unsafe { field(offset_of!(Self, state)).cast::<WipeOnFork<AtomicU32>>().write(state) };
            // SAFETY: the field has this type and offset.
            unsafe { field(offset_of!(Self, sides)).cast::<Sides>().write(sides) };
        }
        // SAFETY: this is the only owner, so all was written, except for `request` and `answer`,
        // which may be uninitialised.
        unsafe { shared.assume_init() }
    }

    /// For the `Arc` of a model checker, which cannot be constructed in place.
    #[cfg(any(threadtoll_loom, threadtoll_shuttle))]
    fn in_arc(turn: AtomicU32, state: WipeOnFork<AtomicU32>, sides: Sides) -> Arc<Self> {
        let request = UnsafeCell::new(MaybeUninit::uninit());
        let answer = UnsafeCell::new(MaybeUninit::uninit());
        let line = CachePadded(Line { turn, request, answer });
        Arc::new(Shared { line, state, sides })
    }

    /// Returns `true` if the end that sets the bit `gone` has left, or if this is a forked child.
    pub(super) fn has_left(&self, gone: u32) -> bool {
        self.state.load(Ordering::Acquire) & (ALIVE | gone) != ALIVE
    }

    // Acquire: pairs with the release in `pass`.
    #[inline(always)]
    pub(super) fn turn(&self) -> u32 {
        self.line.turn.load(mutate!(see_turn, Acquire))
    }

    /// Waits until it is this end's turn. The outcome is `Found(None)` if the
    /// other end leaves before that.
    #[inline(always)]
    pub(super) fn wait_for_turn<const SIDE: usize>(
        &self,
        deadline: Option<Instant>,
    ) -> WaitOutcome<Option<u32>> {
        let gone = if SIDE == CALLER { CALLEE_GONE } else { CALLER_GONE };
        let find = || {
            let turn = self.turn();
            let found = if SIDE == CALLER { turn >= ANSWERED } else { turn == ASKED };
            found.then_some(turn)
        };
        // A thread that waits has left no waker: see `Callee::end_pending`.
        let parker = self.parker::<SIDE>(None);
        let poll = |_| {
            // Fetched for writing, so that this end need not fetch the line again before it writes.
            prefetch_to_write(&raw const self.line);
            let found = find();
            if found.is_some() {
                return Some(found);
            }
            if self.state.load(Ordering::Acquire) & gone != 0 {
                // Anything that the other end did before it left still counts.
                return Some(find());
            }
            if cfg!(any(threadtoll_loom, threadtoll_shuttle)) {
                // Lets the checker run the other end.
                sync::yield_now();
            }
            None
        };
        let announce = |state| {
            self.record_sleep::<SIDE>(state);
            self.announce(state)
        };
        wait(parker, deadline, announce, poll)
    }

    #[inline(always)]
    fn parker<'a, const SIDE: usize>(&'a self, task: Option<&'a WakerCell>) -> Parker<'a> {
        Parker {
            word: &self.state,
            bit: sleeps(SIDE),
            // With `MUST_FENCE` this bit has no effect, but setting it anyway is cheaper than
            // reading the state in each call.
            sticky_bits: FENCE_FOR_NOW,
            stats: &self.sides.stats,
            side: SIDE,
            task,
            pending_wakeups: None,
            spins_before_park: 0,
            process: self.sides.process,
        }
    }

    /// Called when an end has set its bit. `before` is the state without the bit.
    fn record_sleep<const SIDE: usize>(&self, before: u32) {
        debug_assert!(is_legal(before | sleeps(SIDE)));
        let passes = self.sides.passes[SIDE].load(Ordering::Relaxed);
        self.sides.last_sleep[SIDE].record(passes);
    }

    /// Makes the caller wake this waker when it asks or leaves. The callee executes the step that
    /// this returns, and then reads the turn.
    #[cold]
    pub(super) fn watch(&self, waker: &Waker) -> Needs {
        let parker = self.parker::<CALLEE>(Some(&self.sides.task));
        let Some(before) = parker.watch(waker) else { return Needs::Retry };
        self.record_sleep::<CALLEE>(before);
        if before & FENCES == 0 { Needs::Barrier } else { Needs::Fence }
    }

    /// Ends what [`Shared::watch`] began. `unsettled` is true if there was no barrier after it.
    #[cold]
    pub(super) fn unwatch(&self, unsettled: bool) {
        drop(self.parker::<CALLEE>(Some(&self.sides.task)).unwatch(unsettled));
    }

    /// Returns `true` in a forked child. May take a system call.
    #[cold]
    pub(super) fn is_forked(&self) -> bool {
        self.parker::<CALLEE>(None).is_forked()
    }

    /// Executes the barrier between this end's update of the state and its next reading of the
    /// turn. `before` is the state before the update.
    fn announce(&self, before: u32) -> FenceOutcome {
        if before & FENCES == 0 {
            return barrier_or_nap();
        }
        // Pairs with the fence in `pass_slow`.
        mutate!(fence_in_sleep, fence(Ordering::SeqCst) => ());
        FenceOutcome::Fenced
    }

    /// Passes the line to the other end, and wakes that end if it sleeps.
    #[inline(always)]
    pub(super) fn pass(&self, turn: u32, side: usize) {
        // Release: an end that sees the turn also sees the request or answer.
        self.line.turn.store(turn, mutate!(pass, Release));
        // Pairs with `announce`, which the other end calls between its update of the state and its
        // reading of the turn, before it sleeps and when it leaves.
        mutate!(barrier_in_pass, light_barrier() => ());
        if self.state.load(Ordering::Relaxed) != ALIVE {
            self.pass_slow(side);
        }
    }

    #[cold]
    fn pass_slow(&self, side: usize) {
        if self.state.load(Ordering::Relaxed) & FENCES != 0 {
            // Pairs with the fence in `announce`.
            mutate!(fence_in_attend, fence(Ordering::SeqCst) => ());
        }
        let state = self.state.load(Ordering::Acquire);
        if state & FENCE_FOR_NOW != 0 {
            let passes = self.sides.passes[side].load(Ordering::Relaxed) + 1;
            self.sides.passes[side].store(passes, Ordering::Relaxed);
            if self.sides.last_sleep[side].is_far(passes) {
                // AcqRel: see `wait::for_now`.
                self.state.fetch_and(!FENCE_FOR_NOW, Ordering::AcqRel);
            }
        }
        self.wake_other(state, side);
        let left_late = state & (LATE | CALLER_GONE) == LATE | CALLER_GONE;
        if side == CALLEE && (left_late || state & ALIVE == 0) {
            mutate!(callee_drops_answer, self.drop_answer() => ());
        }
    }

    fn wake_other(&self, state: u32, side: usize) {
        let other = if side == CALLER { CALLEE } else { CALLER };
        if state & sleeps(other) != 0 {
            let task = (other == CALLEE).then_some(&self.sides.task);
            wake(&self.state, sleeps(other), task, &self.sides.stats, side);
        }
    }

    /// Drops a late answer, unless the other end drops it.
    fn drop_answer(&self) {
        let taken = self.line.turn.compare_exchange(
            ANSWERED,
            IDLE,
            // Pairs with the release in `pass`.
            mutate!(claim_answer, Acquire),
            Ordering::Relaxed,
        );
        if mutate!(claim_answer_once, taken.is_ok() => self.turn() == IDLE) {
            // SAFETY: the turn said that there is an answer, and only the end that has set the turn
            // to `IDLE` takes the answer.
            drop(unsafe { self.take_answer() });
        }
    }

    pub(super) fn caller_leaves(&self) {
        let state = self.state.fetch_or(CALLER_GONE, Ordering::AcqRel);
        debug_assert!(is_legal(state | CALLER_GONE));
        mutate!(wake_in_call_leave, self.wake_other(state, CALLER) => ());
        if state & LATE == 0 {
            return;
        }
        if state & CALLEE_GONE == 0 && self.turn() == ASKED {
            mutate!(barrier_in_call_leave, self.announce(state) => FenceOutcome::Fenced).settle();
        }
        mutate!(caller_drops_answer, self.drop_answer() => ());
    }

    pub(super) fn callee_leaves(&self) {
        // Acquire: if `LATE` is set, the late request is visible.
        let state = self.state.fetch_or(CALLEE_GONE, mutate!(see_late, AcqRel));
        debug_assert!(is_legal(state | CALLEE_GONE));
        mutate!(wake_in_call_leave, self.wake_other(state, CALLEE) => ());
        if state & LATE == 0 {
            return;
        }
        if mutate!(callee_drops_request, self.turn() == ASKED => false) {
            // SAFETY: this end owes no answer, so it has not taken the request, and a late caller
            // does not take it back.
            drop(unsafe { self.take_request() });
        } else if state & CALLER_GONE != 0 {
            mutate!(callee_drops_answer_last, self.drop_answer() => ());
        }
    }

    /// # Safety
    ///
    /// It must be the caller's turn, and the callee must have answered or declined the previous
    /// request.
    #[inline(always)]
    pub(super) unsafe fn put_request(&self, request: Q) {
        self.line.request.with_mut(|place| {
            // SAFETY: the end whose turn it is has the line to itself.
            let place = unsafe { &mut *place };
            place.write(request);
        });
    }

    /// # Safety
    ///
    /// It must be the callee's turn.
    #[inline(always)]
    pub(super) unsafe fn put_answer(&self, answer: R) {
        self.line.answer.with_mut(|place| {
            // SAFETY: the end whose turn it is has the line to itself.
            let place = unsafe { &mut *place };
            place.write(answer);
        });
    }

    /// # Safety
    ///
    /// There must be a request, and nothing else may take it.
    #[inline(always)]
    pub(super) unsafe fn take_request(&self) -> Q {
        self.line.request.with_mut(|place| {
            // SAFETY: the end whose turn it is has the line to itself.
            let place = unsafe { &*place };
            // SAFETY: the caller's promise.
            unsafe { place.assume_init_read() }
        })
    }

    /// # Safety
    ///
    /// There must be an answer, and nothing else may take it.
    #[inline(always)]
    pub(super) unsafe fn take_answer(&self) -> R {
        self.line.answer.with_mut(|place| {
            // SAFETY: the end whose turn it is has the line to itself.
            let place = unsafe { &*place };
            // SAFETY: the caller's promise.
            unsafe { place.assume_init_read() }
        })
    }
}
