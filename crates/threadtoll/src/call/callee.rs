use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::task::Waker;
use std::time::Duration;

use super::shared::{ALIVE, ANSWERED, ASKED, CALLEE, CALLER_GONE, Shared, UNANSWERED};
use crate::error::{RecvError, RecvTimeoutError, TryRecvError};
use crate::sync::{Arc, Instant, Ordering};
use crate::wait::{Needs, WaitOutcome, Watch};

/// The end of a [line](crate::call) that receives requests and answers them.
///
/// The caller waits until the callee answers or declines its request. The callee declines a request
/// that it has received but not answered when it receives the next one, when it is dropped, and
/// when the body of [`serve`](Self::serve) panics. The caller then gets
/// [`Unanswered`](crate::error::CallError::Unanswered).
///
/// The callee also receives a request whose caller has timed out or is gone; the answer is then
/// dropped. [`is_disconnected`](Self::is_disconnected) returns `true` if the caller is gone.
pub struct Callee<Q, R> {
    pub(super) shared: Arc<Shared<Q, R>>,
    pending: Pending,
}

/// Something that a callee has to end before it waits for a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pending {
    Nothing,
    /// A request was received and has not been answered.
    Request,
    /// A `Select` waits at this end.
    Select,
}

impl<Q, R> UnwindSafe for Callee<Q, R> {}
impl<Q, R> RefUnwindSafe for Callee<Q, R> {}

impl<Q, R> Callee<Q, R> {
    pub(super) fn new(shared: Arc<Shared<Q, R>>) -> Self {
        Callee { shared, pending: Pending::Nothing }
    }

    /// Returns `true` if the caller has been dropped, or if this is a forked child.
    pub fn is_disconnected(&self) -> bool {
        self.shared.has_left(CALLER_GONE)
    }

    /// Declines a request that was not answered, and makes the caller forget a `Select`.
    #[inline(always)]
    pub(crate) fn end_pending(&mut self) {
        if self.pending != Pending::Nothing {
            self.end_pending_slow();
        }
    }

    #[cold]
    fn end_pending_slow(&mut self) {
        match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Nothing => {}
            Pending::Request => self.shared.pass(UNANSWERED, CALLEE),
            Pending::Select => self.shared.unwatch(false),
        }
    }
}

impl<Q: Send, R: Send> Callee<Q, R> {
    /// Waits for the next request. Declines the previous one if it was not answered.
    ///
    /// ```
    /// use threadtoll::call;
    ///
    /// let (mut caller, mut callee) = call::line();
    /// let server = std::thread::spawn(move || {
    ///     let request: u64 = callee.recv().unwrap();
    ///     callee.answer(request + 1);
    /// });
    /// assert_eq!(caller.call(1), Ok(2));
    /// server.join().unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// If the caller is gone and its last request has been received.
    #[inline]
    pub fn recv(&mut self) -> Result<Q, RecvError> {
        self.recv_until(None).map_err(|_| RecvError)
    }

    /// Declines the previous request if it was not answered. Then receives a request if there is
    /// one.
    ///
    /// # Errors
    ///
    /// If there is no request, or if the caller is gone and its last request has been received.
    pub fn try_recv(&mut self) -> Result<Q, TryRecvError> {
        self.end_pending();
        // Loaded before the turn is read, and with acquire, so that if the caller has left, its
        // last request is visible.
        let state = self.shared.state.load(Ordering::Acquire);
        if state & ALIVE == 0 {
            Err(TryRecvError::Disconnected)
        } else if self.shared.turn() == ASKED {
            Ok(self.take())
        } else if state & CALLER_GONE != 0 {
            Err(TryRecvError::Disconnected)
        } else {
            Err(TryRecvError::Empty)
        }
    }

    /// Waits for the next request for at most `timeout`. Declines the previous one if it was not
    /// answered.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use threadtoll::call;
    /// use threadtoll::error::RecvTimeoutError;
    ///
    /// let (caller, mut callee) = call::line::<u64, u64>();
    /// let soon = Duration::from_millis(1);
    /// assert_eq!(callee.recv_timeout(soon), Err(RecvTimeoutError::Timeout));
    /// drop(caller);
    /// assert_eq!(callee.recv_timeout(soon), Err(RecvTimeoutError::Disconnected));
    /// ```
    ///
    /// # Errors
    ///
    /// If no request came in time, or if the caller is gone and its last request has been received.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Q, RecvTimeoutError> {
        // If the clock cannot represent the deadline, there is no limit.
        self.recv_until(Instant::now().checked_add(timeout))
    }

    /// Waits for the next request until `deadline`; see [`Callee::recv_timeout`].
    ///
    /// # Errors
    ///
    /// As for [`Callee::recv_timeout`].
    #[cfg(not(any(threadtoll_loom, threadtoll_shuttle)))]
    pub fn recv_deadline(&mut self, deadline: Instant) -> Result<Q, RecvTimeoutError> {
        self.recv_until(Some(deadline))
    }

    #[inline(always)]
    fn recv_until(&mut self, deadline: Option<Instant>) -> Result<Q, RecvTimeoutError> {
        self.end_pending();
        // Checked before the turn, because a forked child's copy of the turn may say that there is
        // a request.
        if self.shared.state.load(Ordering::Relaxed) & ALIVE == 0 {
            return Err(RecvTimeoutError::Disconnected);
        }
        match self.shared.wait_for_turn::<CALLEE>(deadline) {
            WaitOutcome::Found(Some(_)) => Ok(self.take()),
            WaitOutcome::TimedOut => Err(RecvTimeoutError::Timeout),
            WaitOutcome::Found(None) | WaitOutcome::Forked => Err(RecvTimeoutError::Disconnected),
        }
    }

    #[inline(always)]
    fn take(&mut self) -> Q {
        self.pending = Pending::Request;
        // SAFETY: the turn says that there is a request, and the caller takes it back only after
        // this end has left.
        unsafe { self.shared.take_request() }
    }

    /// Answers the request that was received last; see [`Callee::recv`].
    ///
    /// If the caller no longer waits, the answer is dropped: at once if the caller is gone,
    /// otherwise when the caller calls again.
    ///
    /// # Panics
    ///
    /// If no received request is waiting for an answer.
    #[inline]
    pub fn answer(&mut self, answer: R) {
        assert!(self.pending == Pending::Request, "no request waits for an answer");
        self.pending = Pending::Nothing;
        // SAFETY: it is the callee's turn until the callee passes it on.
        unsafe { self.shared.put_answer(answer) };
        self.shared.pass(ANSWERED, CALLEE);
    }

    /// Answers requests with `body` until the caller is gone.
    ///
    /// ```
    /// use threadtoll::call;
    ///
    /// let (mut caller, mut callee) = call::line();
    /// let server = std::thread::spawn(move || callee.serve(|word: String| word.to_uppercase()));
    /// assert_eq!(caller.call("toll".to_owned()).unwrap(), "TOLL");
    /// drop(caller);
    /// server.join().unwrap();
    /// ```
    pub fn serve(&mut self, mut body: impl FnMut(Q) -> R) {
        while let Ok(request) = self.recv() {
            let serving = Serving(self);
            let answer = body(request);
            serving.0.answer(answer);
        }
    }
}

/// Declines the request if the body panics. Without this, the callee might survive the panic while
/// its caller waits forever.
struct Serving<'a, Q, R>(&'a mut Callee<Q, R>);

impl<Q, R> Drop for Serving<'_, Q, R> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.end_pending();
    }
}

/// Waiting by a `Select`. A callee that owes an answer gets no request before it has answered or
/// declined, so it is neither ready nor watched.
impl<Q, R> Watch for Callee<Q, R> {
    fn is_ready(&mut self) -> bool {
        if self.pending == Pending::Request {
            return false;
        }
        let state = self.shared.state.load(Ordering::Relaxed);
        state & (ALIVE | CALLER_GONE) != ALIVE || self.shared.turn() == ASKED
    }

    fn settle(&mut self) -> bool {
        self.is_ready() || self.pending != Pending::Request && self.shared.is_forked()
    }

    fn watch(&mut self, waker: &Waker) -> Needs {
        if self.pending == Pending::Request {
            return Needs::Nothing;
        }
        self.pending = Pending::Select;
        self.shared.watch(waker)
    }

    fn unwatch(&mut self, unsettled: bool) {
        if self.pending == Pending::Select {
            self.pending = Pending::Nothing;
            self.shared.unwatch(unsettled);
        }
    }
}

impl<Q, R> Drop for Callee<Q, R> {
    fn drop(&mut self) {
        self.end_pending();
        self.shared.callee_leaves();
    }
}

impl<Q, R> fmt::Debug for Callee<Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callee").finish_non_exhaustive()
    }
}
