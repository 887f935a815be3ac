use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::Duration;

use super::shared::{
    ALIVE, ANSWERED, ASKED, CALLEE_GONE, CALLER, LATE, Shared, UNANSWERED, is_legal,
};
use crate::error::{CallError, CallTimeoutError, RecvTimeoutError};
use crate::sync::{Arc, Instant, Ordering, mutate};
use crate::wait::WaitOutcome;

/// The end of a [line](crate::call) that sends requests and waits for the answers.
pub struct Caller<Q, R> {
    pub(super) shared: Arc<Shared<Q, R>>,
}

impl<Q, R> UnwindSafe for Caller<Q, R> {}
impl<Q, R> RefUnwindSafe for Caller<Q, R> {}

impl<Q, R> Caller<Q, R> {
    pub(super) fn new(shared: Arc<Shared<Q, R>>) -> Self {
        Caller { shared }
    }

    /// Returns `true` if the callee has been dropped, or if this is a forked child.
    pub fn is_disconnected(&self) -> bool {
        self.shared.has_left(CALLEE_GONE)
    }
}

impl<Q: Send, R: Send> Caller<Q, R> {
    /// Sends a request and waits for the answer, as long as it takes.
    ///
    /// If an earlier request [timed out](Self::call_timeout), first waits until the callee has
    /// answered or declined that request.
    ///
    /// # Errors
    ///
    /// [`CallError::Disconnected`] with the request if the callee is gone and never received it;
    /// [`CallError::Unanswered`] if the callee received the request and will not answer it.
    #[inline]
    pub fn call(&mut self, request: Q) -> Result<R, CallError<Q>> {
        self.exchange(request, None).map_err(|error| match error {
            CallTimeoutError::Disconnected(request) => CallError::Disconnected(request),
            // Without a deadline, nothing can time out.
            CallTimeoutError::Unanswered | CallTimeoutError::Timeout(_) => CallError::Unanswered,
        })
    }

    /// Sends a request and waits for the answer for at most `timeout`.
    ///
    /// A request cannot be withdrawn: if it times out, the callee may still receive it, and the
    /// answer is dropped. The next call first waits, within its own time limit, until the callee
    /// has answered or declined the late request. If that takes too long, the new request is
    /// returned.
    ///
    /// ```
    /// use std::thread;
    /// use std::time::Duration;
    ///
    /// use threadtoll::call;
    /// use threadtoll::error::CallTimeoutError;
    ///
    /// const SOON: Duration = Duration::from_millis(1);
    ///
    /// let (mut caller, mut callee) = call::line();
    /// // The callee does not serve yet.
    /// assert_eq!(caller.call_timeout(1, SOON), Err(CallTimeoutError::Timeout(None)));
    /// assert_eq!(caller.call_timeout(2, SOON), Err(CallTimeoutError::Timeout(Some(2))));
    ///
    /// let server = thread::spawn(move || callee.serve(|number| number * 10));
    /// assert_eq!(caller.call(3), Ok(30));
    /// drop(caller);
    /// server.join().unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Caller::call`], and [`CallTimeoutError::Timeout`] if there was no answer in
    /// time. `Timeout` contains the request if it was not sent.
    pub fn call_timeout(
        &mut self,
        request: Q,
        timeout: Duration,
    ) -> Result<R, CallTimeoutError<Q>> {
        if timeout.is_zero() {
            return Err(self.no_time_for(request));
        }
        // If the clock cannot represent the deadline, there is no limit.
        self.exchange(request, Instant::now().checked_add(timeout))
    }

    /// Sends a request and waits for the answer until `deadline`; see [`Caller::call_timeout`].
    ///
    /// # Errors
    ///
    /// The errors of [`Caller::call_timeout`].
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub fn call_deadline(
        &mut self,
        request: Q,
        deadline: Instant,
    ) -> Result<R, CallTimeoutError<Q>> {
        if Instant::now() >= deadline {
            return Err(self.no_time_for(request));
        }
        self.exchange(request, Some(deadline))
    }

    #[cold]
    fn no_time_for(&self, request: Q) -> CallTimeoutError<Q> {
        if self.is_disconnected() {
            CallTimeoutError::Disconnected(request)
        } else {
            CallTimeoutError::Timeout(Some(request))
        }
    }

    #[inline(always)]
    fn exchange(
        &mut self,
        request: Q,
        deadline: Option<Instant>,
    ) -> Result<R, CallTimeoutError<Q>> {
        let shared = &*self.shared;
        // Relaxed: if the callee's departure is not seen here, it is seen during the wait.
        let state = shared.state.load(Ordering::Relaxed);
        if mutate!(settle, state & (ALIVE | CALLEE_GONE | LATE) != ALIVE => false) {
            match shared.settle(deadline) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(CallTimeoutError::Timeout(Some(request)));
                }
                Err(_) => return Err(CallTimeoutError::Disconnected(request)),
            }
        }
        // SAFETY: no request is under way.
        unsafe { shared.put_request(request) };
        shared.pass(ASKED, CALLER);
        match shared.wait_for_turn::<CALLER>(deadline) {
            // SAFETY: the turn says that there is an answer, and this end takes it once.
            WaitOutcome::Found(Some(ANSWERED)) => Ok(unsafe { shared.take_answer() }),
            waited => shared.no_answer(waited),
        }
    }
}

// The cold parts of a call. They borrow only the shared state, so that a hot loop can keep its
// `Caller` in registers.
impl<Q, R> Shared<Q, R> {
    /// Waits until the callee has answered or declined the request that timed out.
    #[cold]
    fn settle(&self, deadline: Option<Instant>) -> Result<(), RecvTimeoutError> {
        let state = self.state.load(Ordering::Acquire);
        if state & ALIVE == 0 || state & LATE == 0 {
            return Err(RecvTimeoutError::Disconnected);
        }
        let turn = match self.wait_for_turn::<CALLER>(deadline) {
            WaitOutcome::Found(Some(turn)) => turn,
            WaitOutcome::TimedOut => return Err(RecvTimeoutError::Timeout),
            WaitOutcome::Found(None) | WaitOutcome::Forked => {
                return Err(RecvTimeoutError::Disconnected);
            }
        };
        // SAFETY: the turn says that there is an answer, which is taken once, since `LATE` is
        // cleared below.
        let late = (turn == ANSWERED).then(|| unsafe { self.take_answer() });
        // Relaxed: only the order relative to `CALLEE_GONE` matters, and that bit is in the same
        // word.
        let state = self.state.fetch_and(!LATE, Ordering::Relaxed);
        // Dropped after `LATE` is cleared, because the destructor of the answer may panic.
        drop(late);
        if mutate!(settled_too_late, state & CALLEE_GONE => 0) != 0 {
            return Err(RecvTimeoutError::Disconnected);
        }
        Ok(())
    }

    /// The result of a call whose wait ended without an answer.
    #[cold]
    fn no_answer(&self, waited: WaitOutcome<Option<u32>>) -> Result<R, CallTimeoutError<Q>> {
        if waited == WaitOutcome::TimedOut {
            // Release: a callee that leaves and sees this bit also sees the request. Acquire: if
            // the callee has left, everything that it did is visible below.
            let state = self.state.fetch_or(LATE, mutate!(say_late, AcqRel));
            debug_assert!(is_legal(state | LATE));
            if mutate!(late_and_callee_gone, state & CALLEE_GONE => 0) == 0 {
                return Err(CallTimeoutError::Timeout(None));
            }
            self.state.fetch_and(!LATE, Ordering::Relaxed);
        }
        match self.turn() {
            // SAFETY: the turn says that there is an answer, and this end takes it once.
            ANSWERED => Ok(unsafe { self.take_answer() }),
            UNANSWERED => Err(CallTimeoutError::Unanswered),
            // SAFETY: the callee is gone and has not taken the request: it would have answered or
            // declined the request first. In a forked child, nothing else moves this copy of the
            // request out.
            _ => Err(CallTimeoutError::Disconnected(unsafe { self.take_request() })),
        }
    }
}

impl<Q, R> Drop for Caller<Q, R> {
    fn drop(&mut self) {
        self.shared.caller_leaves();
    }
}

impl<Q, R> fmt::Debug for Caller<Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").finish_non_exhaustive()
    }
}
