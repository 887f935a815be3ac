//! The call: one thread asks another and waits for the answer, through one cache line.
//!
//! Request, answer and the word that says whose turn it is lie side by side, and whoever waits for the line asks for it *in order to
//! write* (`prefetchw`): when the other side is done, the line comes over once, ready to be answered in. A round trip is two transfers of the
//! line, where a pair of queues needs four or more: a waiting reader's copy must be called back before it can be written again.
//!
//! ```
//! use std::thread;
//!
//! use threadtoll::call;
//!
//! let (mut caller, mut callee) = call::line();
//! thread::spawn(move || {
//!     while let Ok(number) = callee.recv() {
//!         callee.answer(number * 2u64);
//!     }
//! });
//! assert_eq!(caller.call(21), Ok(Some(42)));
//! ```
//!
//! # What is promised
//!
//! - Every request is received or dropped once, every answer likewise; a request that the callee never saw is handed back.
//! - A call whose callee goes away, or gives no answer, returns. Whoever sleeps is woken.
//!
//! # What is not
//!
//! - There is one call at a time. To have several under way, use [pipes](crate::pipe).
//! - A callee that computes for long while its caller spins loses the line to it once, and gets it back for its answer.

use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use crate::error::{CallError, RecvError};
use crate::sync::{
    self, Alone, Arc, AtomicU32, Kept, Ordering, UnsafeCell, fence, light_barrier, mutate, prefetch_to_write,
    spin_loop,
};
use crate::wait::{Adaptive, Meeting, Sleeper, Wait, Waited, by_barrier, wait, wake};

/// Nobody has asked.
const IDLE: u32 = 0;
/// There is a request.
const ASKED: u32 = 1;
/// The callee has the request.
const TAKEN: u32 = 2;
/// There is an answer.
const ANSWERED: u32 = 3;
/// There will be no answer.
const UNANSWERED: u32 = 4;

/// Always set, so that 0 means a forked child.
const ALIVE: u32 = 1;
const CALLER_SLEEPS: u32 = 1 << 1;
const CALLEE_SLEEPS: u32 = 1 << 2;
const CALLER_GONE: u32 = 1 << 3;
const CALLEE_GONE: u32 = 1 << 4;
const MUST_FENCE: u32 = 1 << 5;

const CALLER: usize = 0;
const CALLEE: usize = 1;

/// Looks before a wait reads the clock: each has a pause in it.
const LOOKS: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 64 };

/// The line that goes back and forth.
#[repr(C)]
struct Line<Q, R> {
    turn: AtomicU32,
    request: UnsafeCell<MaybeUninit<Q>>,
    answer: UnsafeCell<MaybeUninit<R>>,
}

struct Shared<Q, R> {
    line: Alone<Line<Q, R>>,
    /// Written only when somebody sleeps, wakes or leaves.
    state: Kept<AtomicU32>,
    meeting: Meeting,
    process: u32,
}

// SAFETY: request and answer are written and read in turns, which `turn` hands over by release and acquire; values are moved from
// thread to thread and never shared.
unsafe impl<Q: Send, R: Send> Send for Shared<Q, R> {}
// SAFETY: as above.
unsafe impl<Q: Send, R: Send> Sync for Shared<Q, R> {}

impl<Q, R> Shared<Q, R> {
    fn sleeper(&self, side: usize) -> Sleeper<'_> {
        let bit = if side == CALLER { CALLER_SLEEPS } else { CALLEE_SLEEPS };
        Sleeper {
            word: &self.state,
            bit,
            meeting: &self.meeting,
            side,
            many: false,
            bare: LOOKS,
            glances: 0,
            process: self.process,
        }
    }

    /// Waits, as `W` does, until it is one of these turns or the other side has gone.
    #[inline(always)]
    fn wait_for<W: Wait>(&self, side: usize, turns: &[u32], gone: u32) -> Waited<Option<u32>> {
        wait::<W, _>(self.sleeper(side), None, by_barrier, |_| {
            // To be read *and written*: the other side's last store brings it here for good.
            prefetch_to_write(&raw const self.line);
            // Acquire: the partner of the release in `pass`.
            let turn = self.line.turn.load(mutate!(see_turn, Acquire));
            if turns.contains(&turn) {
                return Some(Some(turn));
            }
            if self.state.load(Ordering::Acquire) & gone != 0 {
                // What was done before leaving counts.
                let turn = self.line.turn.load(Ordering::Acquire);
                return Some(turns.contains(&turn).then_some(turn));
            }
            spin_loop();
            None
        })
    }

    /// Gives the other side its turn, and wakes it if it sleeps.
    #[inline(always)]
    fn pass(&self, turn: u32, side: usize) {
        // Release: whoever sees the turn sees what was written before.
        self.line.turn.store(turn, mutate!(pass, Release));
        // Between the store above and the load below stands the barrier of the other side that goes to sleep.
        mutate!(barrier_in_pass, light_barrier() => ());
        if self.state.load(Ordering::Relaxed) != ALIVE {
            self.attend(side);
        }
    }

    #[cold]
    fn attend(&self, side: usize) {
        if self.state.load(Ordering::Relaxed) & MUST_FENCE != 0 {
            // The partner of the one in `heavy_barrier`.
            mutate!(call_fence_without_membarrier, fence(Ordering::SeqCst) => ());
        }
        let other = if side == CALLER { CALLEE_SLEEPS } else { CALLER_SLEEPS };
        if self.state.load(Ordering::Acquire) & other != 0 {
            wake(&self.state, other, &self.meeting, side);
        }
    }

    fn state(&self) -> u32 {
        self.state.load(Ordering::Acquire)
    }

    /// Moves the request out.
    ///
    /// # Safety
    ///
    /// There is one, and it is the caller's turn to take it.
    unsafe fn take_request(&self) -> Q {
        self.line.request.with_mut(|place| {
            // SAFETY: whose turn it is has the line to itself.
            let place = unsafe { &*place };
            // SAFETY: the caller's promise.
            unsafe { place.assume_init_read() }
        })
    }

    /// Moves the answer out.
    ///
    /// # Safety
    ///
    /// There is one, and it is the caller's turn to take it.
    unsafe fn take_answer(&self) -> R {
        self.line.answer.with_mut(|place| {
            // SAFETY: whose turn it is has the line to itself.
            let place = unsafe { &*place };
            // SAFETY: the caller's promise.
            unsafe { place.assume_init_read() }
        })
    }

    /// Somebody leaves.
    fn leave(&self, gone: u32, side: usize) {
        self.state.fetch_or(gone, Ordering::AcqRel);
        mutate!(wake_in_call_leave, self.attend(side) => ());
    }
}

impl<Q, R> Drop for Shared<Q, R> {
    fn drop(&mut self) {
        // A request without a callee was taken back by its caller; an answer without a caller is here.
        if self.line.turn.load(Ordering::Acquire) == ANSWERED {
            // SAFETY: the last owner is alone, and the caller would have set the turn to idle.
            drop(unsafe { self.take_answer() });
        }
    }
}

/// A line between one caller and one callee.
pub fn line<Q: Send, R: Send>() -> (Caller<Q, R>, Callee<Q, R>) {
    line_waiting(Adaptive)
}

/// The same with another way of waiting, for both ends.
///
/// ```
/// use threadtoll::call;
/// use threadtoll::wait::Spin;
///
/// let (caller, callee) = call::line_waiting::<u64, u64, _>(Spin);
/// ```
pub fn line_waiting<Q: Send, R: Send, W: Wait>(_: W) -> (Caller<Q, R, W>, Callee<Q, R, W>) {
    let fence = if sync::senders_must_fence() { MUST_FENCE } else { 0 };
    let shared = Arc::new(Shared {
        line: Alone(Line {
            turn: AtomicU32::new(IDLE),
            request: UnsafeCell::new(MaybeUninit::uninit()),
            answer: UnsafeCell::new(MaybeUninit::uninit()),
        }),
        state: Kept::new(AtomicU32::new(ALIVE | fence)),
        meeting: Meeting::new::<W>(),
        process: sync::process(),
    });
    (
        Caller { shared: Arc::clone(&shared), _wait: PhantomData },
        Callee { shared, owes: false, _wait: PhantomData },
    )
}

/// The end that asks.
pub struct Caller<Q, R, W: Wait = Adaptive> {
    shared: Arc<Shared<Q, R>>,
    _wait: PhantomData<W>,
}

impl<Q: Send, R: Send, W: Wait> Caller<Q, R, W> {
    /// Asks, and waits for the answer; null if the callee took the request and gave none.
    ///
    /// # Errors
    ///
    /// If the callee is gone and never saw the request; in a forked child.
    #[inline]
    pub fn call(&mut self, request: Q) -> Result<Option<R>, CallError<Q>> {
        let shared = &*self.shared;
        let state = shared.state.load(Ordering::Relaxed);
        if state & ALIVE == 0 {
            return Err(CallError::Forked(request));
        }
        if state & CALLEE_GONE != 0 {
            return Err(CallError::Disconnected(request));
        }
        shared.line.request.with_mut(|place| {
            // SAFETY: the turn is ours: no request is under way.
            let place = unsafe { &mut *place };
            place.write(request);
        });
        shared.pass(ASKED, CALLER);
        match shared.wait_for::<W>(CALLER, &[ANSWERED, UNANSWERED], CALLEE_GONE) {
            Waited::Found(Some(ANSWERED)) => {
                // SAFETY: the turn says so.
                let answer = unsafe { shared.take_answer() };
                // Relaxed: the callee waits for `ASKED`; for the drop of the line, which comes after this end's.
                shared.line.turn.store(IDLE, Ordering::Relaxed);
                Ok(Some(answer))
            }
            Waited::Found(Some(_)) => {
                shared.line.turn.store(IDLE, Ordering::Relaxed);
                Ok(None)
            }
            Waited::Found(None) | Waited::Late => self.abandoned(false),
            Waited::Forked => self.abandoned(true),
        }
    }

    /// The callee has gone without an answer, or this is a forked child.
    #[cold]
    fn abandoned(&mut self, forked: bool) -> Result<Option<R>, CallError<Q>> {
        let shared = &*self.shared;
        // Acquire: so that what the callee did with the line before it left has happened.
        if shared.line.turn.load(Ordering::Acquire) != ASKED {
            // Only in a child, whose copy of the callee has the request for ever: one that leaves answers or declines before.
            return Ok(None);
        }
        shared.line.turn.store(IDLE, Ordering::Relaxed);
        // SAFETY: the callee has not taken it, and cannot any more: it has gone, or it is in another process.
        let request = unsafe { shared.take_request() };
        Err(if forked { CallError::Forked(request) } else { CallError::Disconnected(request) })
    }

    /// Whether the callee is gone.
    pub fn is_disconnected(&self) -> bool {
        self.shared.state() & CALLEE_GONE != 0
    }
}

impl<Q, R, W: Wait> Drop for Caller<Q, R, W> {
    fn drop(&mut self) {
        self.shared.leave(CALLER_GONE, CALLER);
    }
}

impl<Q, R, W: Wait> fmt::Debug for Caller<Q, R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Caller")
    }
}

/// The end that answers.
pub struct Callee<Q, R, W: Wait = Adaptive> {
    shared: Arc<Shared<Q, R>>,
    /// Whether a request was received and not answered.
    owes: bool,
    _wait: PhantomData<W>,
}

impl<Q: Send, R: Send, W: Wait> Callee<Q, R, W> {
    /// Waits for the next request. One that was received before and not answered is left without an answer.
    ///
    /// # Errors
    ///
    /// If the caller is gone; in a forked child.
    #[inline]
    pub fn recv(&mut self) -> Result<Q, RecvError> {
        self.decline();
        match self.shared.wait_for::<W>(CALLEE, &[ASKED], CALLER_GONE) {
            Waited::Found(Some(_)) => {}
            Waited::Found(None) => return Err(RecvError::Disconnected),
            Waited::Late | Waited::Forked => return Err(RecvError::Forked),
        }
        self.owes = true;
        // So that a callee that leaves, and a caller that finds it gone, know that the request is not there any more. Relaxed: only
        // this end and a caller that has seen it leave look.
        self.shared.line.turn.store(TAKEN, Ordering::Relaxed);
        // SAFETY: the turn said that there is a request, and its caller takes it back only if we have gone.
        Ok(unsafe { self.shared.take_request() })
    }

    /// Answers the request that was received last.
    ///
    /// # Panics
    ///
    /// If there is none that waits for an answer.
    #[inline]
    pub fn answer(&mut self, answer: R) {
        assert!(self.owes, "no request waits for an answer");
        self.owes = false;
        self.shared.line.answer.with_mut(|place| {
            // SAFETY: the turn is the callee's until it passes it on.
            let place = unsafe { &mut *place };
            place.write(answer);
        });
        self.shared.pass(ANSWERED, CALLEE);
    }

    /// Answers requests by `body` until the caller is gone.
    pub fn serve(&mut self, mut body: impl FnMut(Q) -> R) {
        while let Ok(request) = self.recv() {
            let answer = body(request);
            self.answer(answer);
        }
    }

    /// Whether the caller is gone.
    pub fn is_disconnected(&self) -> bool {
        self.shared.state() & CALLER_GONE != 0
    }
}

impl<Q, R, W: Wait> Callee<Q, R, W> {
    /// Lets the caller go on without an answer, if it waits for one.
    #[inline(always)]
    fn decline(&mut self) {
        if self.owes {
            self.owes = false;
            self.shared.pass(UNANSWERED, CALLEE);
        }
    }
}

impl<Q, R, W: Wait> Drop for Callee<Q, R, W> {
    fn drop(&mut self) {
        self.decline();
        // A request that is there now is its caller's to take back.
        self.shared.leave(CALLEE_GONE, CALLEE);
    }
}

impl<Q, R, W: Wait> fmt::Debug for Callee<Q, R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callee")
    }
}
